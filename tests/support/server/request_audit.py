"""Audits the requests of a simulated cluster for writes of the manager that break a rule.

Violations are recorded, not raised, because the writer would handle an exception as an API error.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from hack.apiserver.call import Call, call_of
from hack.apiserver.posting import NoPoster
from hack.cluster.embedded_backend import LEAST_LATENCY, MOST_LATENCY, EmbeddedBackend
from hack.faults.forwarding import Forwarding
from hack.virtual_time import virtual_now
from tests.support.managers.begun_while_paused import CREATED, begins
from tests.support.managers.status_rules import PlanRegistry
from upgrade_manager.api.keys import KIND as _PLAN_KIND
from upgrade_manager.api.keys import (
    LABEL_ACTIVE,
    LABEL_COMPONENT,
    LABEL_JOB_TYPE,
    LABEL_PLAN,
    LABEL_PLAN_UID,
    LABEL_REQUEST,
    Component,
    JobType,
)
from upgrade_manager.api.names import history_config_map
from upgrade_manager.cli.environment import USER_AGENT
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.transport import Request, Response, Transport

PLANS = "upgradeplans.management.harvesterhci.io"
#: Plans that undo changes of hosts, after an early end, too.
_UNDOING = (Component.AGENT_RELEASE, Component.SKIP_OFF)
#: Plans that are repeated where a node has lost their label or a report has expired, and those that undoing replaces.
_REPEATED = (Component.IMAGE_PRELOAD, Component.SURVEY, Component.AGENT_HOLD, Component.SKIP_ON, *_UNDOING)
_PREFIX = "management.harvesterhci.io/"
#: Prefixes of the paths that may change in other objects, by kind.
_MAY_CHANGE = {
    PLANS: ("metadata.finalizers", f"metadata.annotations.{_PREFIX}", f"metadata.labels.{LABEL_ACTIVE}", "status"),
    "nodes": (
        f"metadata.annotations.{_PREFIX}pendingOSImage",
        "metadata.labels.plan.upgrade.cattle.io/{plan}-",
        # After a repeated drain.
        "spec.taints",
    ),
    "secrets": tuple(
        f"metadata.annotations.{_PREFIX}{one}" for one in ("pre-hook", "post-hook", "acknowledged-request")
    ),
    "clusters.provisioning.cattle.io": (
        f"metadata.annotations.{_PREFIX}ledger",
        f"metadata.annotations.{_PREFIX}original-upgrade-strategy",
        f"metadata.annotations.{_PREFIX}unfinished-upgrade",
        "spec.kubernetesVersion",
        "spec.rkeConfig.provisionGeneration",
        "spec.rkeConfig.upgradeStrategy",
    ),
    "settings.longhorn.io": ("value",),
    "addons.harvesterhci.io": ("spec.enabled",),
    "managedcharts.management.cattle.io": (
        f"metadata.annotations.{_PREFIX}original-workload-update-methods",
        "spec.values.kubevirt.spec.workloadUpdateStrategy.workloadUpdateMethods",
        "spec.diff.comparePatches",
    ),
    "kubevirts.kubevirt.io": ("spec.workloadUpdateStrategy.workloadUpdateMethods",),
}
#: Resources without rules.
_FREE = frozenset({"events", "leases.coordination.k8s.io"})
_BOOKKEEPING = ("metadata.resourceVersion", "metadata.generation", "metadata.managedFields")
_OK = range(200, 300)
_CREATED = 201


class RequestAudit(Forwarding):
    """A transport that audits writes."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._created: Counter[str] = Counter()
        self._plans = PlanRegistry()
        #: One sentence for each violation.
        self.violations: list[str] = []

    async def send(self, request: Request) -> Response:
        """Forward it, and check its effect."""
        call = call_of(request)
        if not call.is_write:
            return await self._inner.send(request)
        manager = call.user_agent == USER_AGENT
        before = await self._now(call) if manager and call.name else None
        if not manager and call.verb == "delete" and call.resource == PLANS:
            self._plans.deleted(call.name)
        response = await self._inner.send(request)
        if response.status in _OK:
            if not manager and call.verb == "delete":
                self._recreatable(call)
            if call.resource == PLANS and call.subresource == "status":
                self._status(call, response, manager=manager)
            if manager:
                await self._check(request, call, response, before)
        return response

    async def _now(self, call: Call) -> Object | None:
        """Read the object of a write."""
        path = call.path.removesuffix(f"/{call.subresource}") if call.subresource else call.path
        response = await self._inner.send(Request(method="GET", path=path, headers={"accept": "application/json"}))
        found: Object | None = json.loads(response.body) if response.status in _OK else None
        return found

    def _status(self, call: Call, response: Response, *, manager: bool) -> None:
        if not manager:
            self._broken(call, f"{call.user_agent} wrote the plan's status")
        for violation in self._plans.status(json.loads(response.body)):
            self._broken(call, violation)

    async def _check(self, request: Request, call: Call, response: Response, before: Object | None) -> None:
        if call.verb == "create":
            self._creation(call, response)
        elif call.verb == "deletecollection":
            self._removal(request, call)
        elif before is not None and call.resource not in _FREE:
            after = await self._now(call)
            if call.verb == "delete":
                await self._deletion(call, before)
            elif after is not None and self._plans.held and begins(call.resource, after, before):
                self._broken(call, f"it was changed while {self._plans.held} hold")
            if call.resource == PLANS and not call.subresource:
                for violation in self._plans.changed(json.loads(response.body)):
                    self._broken(call, violation)
            self._change(call, before, after)

    async def _deletion(self, call: Call, before: Object) -> None:
        """Let the manager run a pre-drain Job again whose node was uncordoned, because VMs may be back on the node."""
        if objects.labels(before).get(LABEL_JOB_TYPE) != JobType.PRE_DRAIN:
            return
        path = f"/api/v1/nodes/{objects.spec(before)['template']['spec']['nodeName']}"
        response = await self._inner.send(Request(method="GET", path=path, headers={"accept": "application/json"}))
        if response.status in _OK and not objects.spec(json.loads(response.body)).get("unschedulable"):
            self._recreatable(call)

    def _recreatable(self, call: Call) -> None:
        """Let the manager create again what others delete."""
        title = f"{call.resource} {call.namespace}/{call.name} "
        for name in [name for name in self._created if name.startswith(title)]:
            del self._created[name]

    def _removal(self, request: Request, call: Call) -> None:
        selector = dict(request.query).get("labelSelector", "")
        uids = [part.partition("=")[2] for part in selector.split(",") if part.startswith(f"{LABEL_PLAN_UID}=")]
        record = self._plans.of(uids[0]) if uids else None
        if record is None:
            self._broken(call, f"deletes unowned objects: {selector}")
        elif not record.may_remove and not _has_any(selector, _REPEATED):
            self._broken(call, f"removes objects of {record.name}, which still runs")
        elif _has_any(selector, _REPEATED):
            for name in [name for name in self._created if name.startswith(f"{call.resource} {call.namespace}/")]:
                del self._created[name]

    def _creation(self, call: Call, response: Response) -> None:
        if response.status != _CREATED or not call.resource or call.resource.endswith(".k8s.io"):
            return
        made = json.loads(response.body)
        title = f"{call.resource} {call.namespace}/{objects.name(made)}"
        # Another plan of the same name creates objects of the same names, and so does another request of Rancher.
        uid, request = (objects.labels(made).get(key, "") for key in (LABEL_PLAN_UID, LABEL_REQUEST))
        creation = f"{title} {uid} {request}"
        self._created[creation] += 1
        if self._created[creation] > 1:
            self._broken(call, f"{title} was created again")
        if call.resource in _FREE:
            return
        record = self._plans.of(uid)
        if record is not None and not self._is_marked(made, record.name):
            self._broken(call, f"{title} lacks labels of plan and component, or has a wrong owner")
        is_undoing = objects.labels(made).get(LABEL_COMPONENT) in _UNDOING
        # A plan in the queue, and one that has failed, have a history, too.
        has_history = record is not None and _is_history(made, record.name) and not record.is_deleted
        if record is None or not (record.may_create or is_undoing or has_history):
            self._broken(call, f"{title} was created for a plan that does not run")
        if record is not None and record.name in self._plans.held and not self._may_hold(made, call):
            self._broken(call, f"{title} was created while the plan holds")

    @staticmethod
    def _may_hold(made: Object, call: Call) -> bool:
        """Return True for what a plan that holds may create: bookkeeping, and what a host's state needs at any time.

        The Job of a node of pauseNodes is suspended.
        """
        if objects.is_true(made, "spec", "suspend"):
            return True
        return call.resource not in CREATED or objects.labels(made).get(LABEL_COMPONENT) in _REPEATED

    def _is_marked(self, made: Object, plan: str) -> bool:
        labels = objects.labels(made)
        references = objects.metadata(made).get("ownerReferences") or []
        owners = [(owner["kind"], owner["name"]) for owner in references if owner.get("controller")]
        if _is_history(made, plan):
            # It belongs to the plan, to none of its components or attempts.
            return owners == [(_PLAN_KIND, plan)] and labels.keys() == {LABEL_PLAN, LABEL_PLAN_UID}
        # The garbage collector may delete these at any time.
        is_dependent = made["kind"] in {"Plan", "Secret"} or bool(objects.spec(made).get("suspend"))
        if owners != [(_PLAN_KIND, plan)] * is_dependent:
            return False
        return labels.get(LABEL_COMPONENT) in list(Component) and labels.get(LABEL_PLAN) == plan

    def _change(self, call: Call, before: Object, after: Object | None) -> None:
        if self._plans.of(objects.labels(before).get(LABEL_PLAN_UID) or "") is not None:
            return
        if call.resource == PLANS and objects.is_deleting(before):
            # The user deleted the plan.
            return
        if _is_left_behind(call):
            return
        if call.verb == "delete" or after is None:
            self._broken(call, "deletes an unowned object")
            return
        # Of deleted plans, too: a webhook may have refused the removal of their labels.
        names = self._plans.names
        starts = _MAY_CHANGE.get(call.resource, ())
        may = [start.format(plan=name) for start in starts for name in (names if "{plan}" in start else [""])]
        for path in _differences(before, after):
            if not path.startswith((*may, *_BOOKKEEPING)):
                self._broken(call, f"changes {path}")

    def _broken(self, call: Call, violation: str) -> None:
        self.violations.append(f"{virtual_now():%H:%M:%S} {call.verb} {call.path}: {violation}")


def _differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Return the paths that differ, as deep as both are mappings."""
    if before == after:
        return []
    if not isinstance(before, dict) or not isinstance(after, dict):
        # A mapping that is added or removed differs in its members.
        only = next((value for value in (before, after) if isinstance(value, dict) and value), None)
        if only is None or not (before is None or after is None):
            return [path]
        return [inner for key, value in only.items() for inner in _differences(None, value, f"{path}.{key}")]
    keys = [*before, *(key for key in after if key not in before)]
    inside = f"{path}." if path else ""
    return [inner for key in keys for inner in _differences(before.get(key), after.get(key), f"{inside}{key}")]


class AuditedBackend(EmbeddedBackend):
    """The embedded server behind an audit."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed=seed, now=virtual_now, poster=NoPoster(), least=LEAST_LATENCY, most=MOST_LATENCY)
        self.audit = RequestAudit(self.line)
        self.transport = self.audit
        self.client_transport = self.audit


def _is_history(made: Object, plan: str) -> bool:
    return made["kind"] == "ConfigMap" and objects.name(made) == history_config_map(plan)


def _has_any(selector: str, components: Collection[Component]) -> bool:
    return any(f"{LABEL_COMPONENT}={one}" in selector for one in components)


def _is_left_behind(call: Call) -> bool:
    """Return True for the list of VMs of an earlier plan, or of Harvester's toolkit."""
    return call.resource == "configmaps" and call.name.endswith("-restore-vm")
