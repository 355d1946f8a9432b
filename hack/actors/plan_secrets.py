"""Rancher's plan-secret controller: records what the system-agents report in the machine-plan Secrets.

The rules are those of rancher/rancher v2.14.0, pkg/controllers/capr/plansecret/plansecret.go. system_agent.py writes
the reports, planner.py reads the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.controller import PlanController
from hack.actors.machine_plan import PROBES_PASSED
from hack.actors.machine_state import checksum, failing_probes
from upgrade_manager.api.keys import FLEET_LOCAL, RKE_MACHINE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object

_APPLIED = "PlanApplied"
_ERROR = (
    "error applying plan -- check rancher-system-agent.service and rke2-server.service logs on node for more"
    " information"
)


class PlanSecrets(PlanController):
    """Reconciles the machine-plan Secrets, and the condition PlanApplied of their Machines."""

    def __init__(self, context: ActorContext) -> None:
        super().__init__(context, user_agent="rancher-plan-secret", loop="plan secrets")

    async def _reconcile(self, key: str) -> RequeueAfter:
        secret = self._cached(key)
        if secret is None:
            return None
        body = self._records(secret)
        if body:
            patch = MergePatch(body).at(objects.resource_version(secret))
            await self._cache.seen(await self._client.patch(SECRETS, key, patch, namespace=FLEET_LOCAL))
        machine = self._machines.store.get(objects.labels(secret).get(RKE_MACHINE_NAME) or "", FLEET_LOCAL)
        if machine is not None:
            has_failed = plans.data(secret, "failed-checksum").decode() == checksum(plans.data(secret, "plan"))
            await self._report(machine, has_failed=has_failed)
        return None

    def _records(self, secret: Object) -> Object:
        plan = plans.data(secret, "plan")
        body: Object = {}
        is_applied = plans.data(secret, "applied-checksum").decode() == checksum(plan)
        if is_applied and plans.data(secret, "appliedPlan") != plan:
            body["data"] = {"appliedPlan": plans.encoded(plan)}
        passes = plans.data(secret, "probe-statuses") and not failing_probes(secret)
        if passes and not objects.annotations_of(secret).get(PROBES_PASSED):
            body["metadata"] = {"annotations": {PROBES_PASSED: self._context.timestamp()}}
        return body

    async def _report(self, machine: Object, *, has_failed: bool) -> None:
        state, reason, message = ("False", "Error", _ERROR) if has_failed else ("True", _APPLIED, "")
        known = objects.condition(machine, _APPLIED) or {}
        if known.get("status") == state:
            return
        old, at = objects.status(machine).get("conditions") or [], self._context.timestamp()
        new = with_condition(old, _APPLIED, state, reason=reason, message=message, at=at, time=TRANSITION)
        patch = MergePatch({"status": {"conditions": new}}).at(objects.resource_version(machine))
        await self._machines.patch(self._client, machine, patch)
