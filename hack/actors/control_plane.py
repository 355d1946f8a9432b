"""Rancher's controllers between the provisioning Cluster and its planner, which planner.py is.

They copy the Cluster's spec to the RKEControlPlane, which the planner reads, and copy its conditions back (rancher
v2.14.0, pkg/controllers/provisioningv2/provisioningcluster). Each takes its time: a planner may ask for a hook with
the drain options before the last patch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.actors.conditions import with_condition
from hack.actors.machine_plan import Plans
from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import ControllerLoop, RequeueAfter
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

#: Seconds from a patch of the Cluster to the planner, and from the planner to the Cluster's conditions, as recorded.
_DELIVERY, _TRAIL = (0.3, 2.5), (1.0, 2.0)
#: Both conditions have the planner's words.
_CONDITIONS = ("Provisioned", "Updated")
_SPEC, _STATUS = "spec", "status"


class ControlPlane:
    """The Cluster as the planner knows it, None before it is delivered; `changed` is called at each delivery."""

    def __init__(self, context: ActorContext, client: Client, *, changed: Callable[[], None]) -> None:
        self._context = context
        self._client = client
        self._clusters = context.caches.of(PROVISIONING_CLUSTERS)
        self._loop: ControllerLoop[str] = context.loop("control plane", self._reconcile)
        self._notify = changed
        self._waits_for = ""
        self.cluster: Object | None = None
        self.plans = Plans({})
        self._clusters.subscribe(self._changed)

    @property
    def kubernetes(self) -> str:
        """Return the version that all machines should run."""
        return str(objects.spec(self.cluster or {}).get("kubernetesVersion") or "")

    async def run(self, planner: ControllerLoop[str]) -> None:
        """Run until cancelled, with the planner's loop."""
        self._deliver()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._loop.run(), name="control plane")
            group.create_task(planner.run(), name="planner")

    def report(self, waits_for: str) -> None:
        """Take over the planner's words, empty when all machines are finished."""
        if waits_for != self._waits_for:
            self._waits_for = waits_for
            self._loop.add(_STATUS, after=self._between(*_TRAIL))

    def _between(self, least: float, most: float) -> float:
        return self._context.random.uniform(least, most) * self._context.scale

    def _changed(self, change: Change) -> None:
        """Deliver a new spec later; labels, annotations and the status do not count."""
        if objects.metadata(change.old or {}).get("generation") != objects.metadata(change.obj).get("generation"):
            self._loop.add(_SPEC, after=self._between(*_DELIVERY))

    async def _reconcile(self, key: str) -> RequeueAfter:
        if key == _SPEC:
            self._deliver()
        else:
            await self._write_conditions()
        return None

    def _deliver(self) -> None:
        found = self._clusters.store.get(PROVISIONING_CLUSTER, FLEET_LOCAL)
        if found is None or objects.is_deleting(found):
            self.cluster = None
            return
        self.cluster, self.plans = found, Plans(found)
        self._loop.add(_STATUS, after=self._between(*_TRAIL))
        self._notify()

    async def _write_conditions(self) -> None:
        found = self._clusters.store.get(PROVISIONING_CLUSTER, FLEET_LOCAL)
        if found is None:
            return
        old, at = objects.status(found), self._context.timestamp()
        state, reason = ("Unknown", "Waiting") if self._waits_for else ("True", "")
        conditions = old.get("conditions") or []
        for type_ in _CONDITIONS:
            conditions = with_condition(conditions, type_, state, reason=reason, message=self._waits_for, at=at)
        new = {**old, "conditions": conditions, "observedGeneration": objects.metadata(found).get("generation") or 1}
        difference = merge_diff(old, new)
        if difference:
            await self._clusters.patch(self._client, found, MergePatch({"status": difference}))
