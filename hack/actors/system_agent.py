"""rancher-system-agent on every node: applies the plan in the machine's Secret, and reports the plan's probes.

Applying a plan may upgrade the kubelet. The Secret's keys are those that Rancher v2.14.0 reads (SecretToNode in
pkg/capr/planner/store.go), for which plan_secrets.py is the other half. Guesses: all machines have the same probes,
which fail once after each boot and each plan, for `durations.probes`; a plan that fails is tried again after 5 s.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.controller import PlanController
from hack.actors.machine_state import checksum, failing_probes
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

#: Seconds between two attempts to apply a plan.
_RETRY = 5.0
_PROBES = ("calico", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")


def probes(*, healthy: bool) -> str:
    """Return the statuses of a plan's probes."""
    return json.dumps({name: {"healthy": healthy} for name in _PROBES})


class SystemAgent(PlanController):
    """Simulates the agents of all nodes."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, user_agent="rancher-system-agent", loop="system agent")
        #: The boots of each host whose probes were reported last.
        self._boots: dict[str, int] = {}
        #: Attempts to apply a plan that failed, by Secret.
        self._failures: dict[str, int] = {}
        context.hosts.subscribe(self._wake)

    def _wake(self, node: str) -> None:
        for secret in self._cache.store.list():
            if plans.node_name(secret, self._machines.store) == node:
                self._loop.add(objects.name(secret))

    async def _reconcile(self, key: str) -> RequeueAfter:
        secret = self._cached(key)
        if secret is None:
            return None
        host = self._context.hosts.of(plans.node_name(secret, self._machines.store))
        if not host.up:
            return None
        plan = plans.data(secret, "plan")
        if plan and plans.data(secret, "applied-checksum").decode() != checksum(plan):
            return await self._apply(secret, host.name, plan)
        if self._boots.setdefault(key, host.boots) != host.boots:
            self._boots[key] = host.boots
            await self._write(secret, {"probe-statuses": probes(healthy=False)})
            # The write may have changed nothing, which no watch reports.
            return 0.0
        return await self._probe(secret)

    async def _apply(self, secret: Object, node: str, plan: bytes) -> RequeueAfter:
        name, digest = objects.name(secret), checksum(plan)
        failures = self._failures.get(name, 0)
        seconds = self._context.seconds(self._context.scenario.durations.kubelet_upgrade + (_RETRY if failures else 0))
        left = self._timers.left(name, (digest, failures), seconds)
        if left > 0:
            return left
        self._timers.forget(name)
        if failures < self._context.scenario.node_faults.failing_plans.get(node, 0):
            self._failures[name] = failures + 1
            await self._write(secret, {"failed-checksum": digest, "failure-count": str(failures + 1)})
            return 0.0
        self._context.hosts.upgrade_kubelet(node, plans.kubernetes_of(plan))
        count = int(plans.data(secret, "success-count").decode() or "0") + 1
        data = {"applied-checksum": digest, "success-count": str(count), "last-apply-time": self._context.timestamp()}
        data |= {"failed-checksum": "", "failure-count": "0", "probe-statuses": probes(healthy=False)}
        await self._write(secret, data)
        return None

    async def _probe(self, secret: Object) -> RequeueAfter:
        """Report that the probes pass, some time after they failed or the plan was written."""
        name = objects.name(secret)
        if plans.data(secret, "probe-statuses") and not failing_probes(secret):
            return None
        left = self._timers.left(name, "probes", self._context.seconds(self._context.scenario.durations.probes))
        if left > 0:
            return left
        self._timers.forget(name)
        await self._write(secret, {"probe-statuses": probes(healthy=True)})
        return None

    async def _write(self, secret: Object, data: dict[str, str]) -> None:
        patch = MergePatch({"data": {key: plans.encoded(value) for key, value in data.items()}})
        written = await self._client.patch(SECRETS, objects.name(secret), patch, namespace=FLEET_LOCAL)
        await self._cache.seen(written)
