"""Rules for changes of plan statuses: the history of each plan, and which plan has the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.managers.begun_while_paused import holds
from upgrade_manager.api.in_progress import blocks_next_plan
from upgrade_manager.api.keys import FINALIZER, LABEL_ACTIVE
from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED, PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

#: The only ways back of a node, in the write that begins an attempt.
_WAYS_BACK = {
    "ImagePreloadFailed": "ImagePreloading",
    "PreDrainFailed": "PreDraining",
    "PostDrainFailed": "PostDraining",
    "SingleNodeUpgradeFailed": "SingleNodeUpgrading",
}
#: The conditions of a plan in the queue, before its start or its next attempt.
_QUEUED = {"Reconciling": "True", "Available": "False", "Ready": "Unknown"}


class StatusHistory:
    """Checks the successive statuses of a plan."""

    def __init__(self) -> None:
        self._entries: list[Object] = []
        self._nodes: dict[str, str] = {}
        self._conditions: dict[str, Object] = {}
        self._attempt = 1
        #: True while it waits in the queue, before its start or its next attempt.
        self.is_queued = False
        #: True while it says that it holds, and that nothing of it runs.
        self.is_held = False

    @property
    def last(self) -> str:
        """The last recorded phase value, or an empty string."""
        return (_values(self._entries) or [""])[-1]

    def see(self, plan: Object) -> list[str]:
        """Check the next status and return one sentence for each violation."""
        status = objects.status(plan)
        violations = [
            *self._begun(status),
            *self._phases(status),
            *self._states(status),
            *self._check_conditions(plan, status),
            *_readiness(plan, status),
            *self._queued(plan, status),
        ]
        self._entries = status.get("phaseTransitionTimestamps") or []
        self._nodes = {name: entry["state"] for name, entry in (status.get("nodeUpgradeStatuses") or {}).items()}
        self._conditions = {entry["type"]: entry for entry in status.get("conditions") or []}
        self.is_queued = "queuedSince" in status
        self.is_held = holds(plan)
        return violations

    def _queued(self, plan: Object, status: Object) -> Iterator[str]:
        if "queuedSince" not in status:
            return
        # An error of a reconcile is shown until the plan starts.
        is_failing = objects.text(objects.condition(plan, "Degraded"), "reason") == "ReconcileError"
        shown = {
            one["type"]: one["status"] for one in status["conditions"] if one["type"] != "Degraded" or not is_failing
        }
        reasons = {objects.text(objects.condition(plan, one), "reason") for one in ("Reconciling", "Ready")}
        if shown != _QUEUED or reasons != {"Queued"} or status["display"]["state"] != "Queued":
            yield f"a plan in the queue has conditions of one that runs, or has failed: {status['conditions']}"

    def _begun(self, status: Object) -> Iterator[str]:
        """Check a new attempt, which takes back the failure alone."""
        attempt = status.get("attempt") or 1
        if attempt != self._attempt and (attempt != self._attempt + 1 or self.last != FAILED):
            yield f"attempt {attempt} began after attempt {self._attempt} in {self.last}"
        if attempt != self._attempt:
            self._entries = self._entries[:-1]
            self._nodes = {name: _WAYS_BACK.get(state, state) for name, state in self._nodes.items()}
        self._attempt = attempt

    def _phases(self, status: Object) -> Iterator[str]:
        entries = status.get("phaseTransitionTimestamps") or []
        if entries[: len(self._entries)] != self._entries:
            yield f"recorded phases changed from {_values(self._entries)} to {_values(entries)}"
        values = _values(entries)
        ended = values[-1:] in ([SUCCEEDED], [FAILED])
        healthy = values[:-1] if ended else values
        if healthy != list(PHASE_VALUES[: len(healthy)]):
            yield f"phases are out of order: {values}"
        if values[-1:] == [SUCCEEDED] and len(healthy) != len(PHASE_VALUES):
            yield f"Succeeded after {values}"
        if values and status.get("currentPhase") != values[-1]:
            yield f"currentPhase is {status.get('currentPhase')}, recorded last is {values[-1]}"
        times = [entry["phaseTransitionTimestamp"] for entry in entries]
        if times != sorted(times):
            yield f"phases were reached in the past: {times}"

    def _states(self, status: Object) -> Iterator[str]:
        now = status.get("nodeUpgradeStatuses") or {}
        for name, old in self._nodes.items():
            before, after = state_of(old), state_of((now.get(name) or {}).get("state"))
            if before is None or after is None:
                yield f"node {name} had state {old}, and now {now.get(name)}"
            elif after is not before and after.group <= before.group:
                yield f"node {name} went back from {before} to {after}"

    def _check_conditions(self, plan: Object, status: Object) -> Iterator[str]:
        generation = objects.metadata(plan).get("generation") or 0
        for entry in status.get("conditions") or []:
            about, old = f"condition {entry['type']}", self._conditions.get(entry["type"], {})
            observed = entry.get("observedGeneration") or 0
            if not (old.get("observedGeneration") or 0) <= observed <= generation or not observed:
                yield f"{about} observed generation {observed} of {generation}"
            if old and (old["status"] == entry["status"]) and old["lastTransitionTime"] != entry["lastTransitionTime"]:
                yield f"{about} changed its time without its status"


def _readiness(plan: Object, status: Object) -> Iterator[str]:
    """Yield what other tools would read wrongly."""
    types = [entry["type"] for entry in status["conditions"]]
    stalled = objects.condition(plan, "Stalled")
    # A failed plan that is resumed may be queued.
    has_failed = status.get("currentPhase") == FAILED and "queuedSince" not in status
    # A process that has died before it removed the finalizer may have its repeated removals refused.
    is_refused = stalled.get("status") == "True"
    is_done = status.get("currentPhase") == SUCCEEDED and not status.get("cleanupPending") and not is_refused
    expected = "False" if has_failed else "True" if is_done else "Unknown"
    if objects.condition(plan, "Ready").get("status") != expected:
        yield f"Ready should be {expected}: {status['conditions']}"
    if ("Reconciling" in types) is (has_failed or is_done) or "Reconciling" in types[1:]:
        yield f"Reconciling should be the first condition until the end: {types}"
    if has_failed and stalled.get("status") != "True":
        yield f"a failed plan should be Stalled: {types}"
    if status.get("observedGeneration") != max(entry["observedGeneration"] for entry in status["conditions"]):
        yield f"observed generation {status.get('observedGeneration')}: {status['conditions']}"
    if any(entry["lastTransitionTime"] < "2000" for entry in status["conditions"]):
        yield f"kept the default of the schema: {status['conditions']}"


def _values(entries: list[Any]) -> list[str]:
    return [entry["phase"] for entry in entries]


#: Phases after which an upgrade creates nothing and removes its objects.
_ENDED = {PhaseName.IMAGE_CLEANUP.completed, SUCCEEDED, FAILED}


@dataclass(kw_only=True)
class PlanRecord:
    """A plan that was accepted, or waits in the queue."""

    name: str
    uid: str
    history: StatusHistory = field(default_factory=StatusHistory)
    is_restored: bool = False
    is_deleting: bool = False
    is_deleted: bool = False
    #: True if it has the label of the active plan.
    is_active: bool = False

    @property
    def has_cluster(self) -> bool:
        """True while no other plan may have the cluster."""
        last = self.history.last
        if self.is_deleted or last in {"", SUCCEEDED}:
            return False
        return last != FAILED or not self.is_restored

    @property
    def may_remove(self) -> bool:
        """True when the plan may remove its objects."""
        return self.is_deleting or self.history.last in _ENDED

    @property
    def may_create(self) -> bool:
        """True while the plan may create objects."""
        return not self.is_deleted and self.history.last not in {"", *_ENDED}


class PlanRegistry:
    """All plans by uid, because a name may be used again."""

    def __init__(self) -> None:
        self._plans: dict[str, PlanRecord] = {}

    @property
    def living(self) -> list[PlanRecord]:
        """Return the plans that are neither deleted nor in the queue."""
        return [one for one in self._plans.values() if not (one.is_deleted or one.history.is_queued)]

    @property
    def names(self) -> set[str]:
        """The names of all plans, also of deleted ones."""
        return {one.name for one in self._plans.values()}

    def named(self, name: str) -> PlanRecord | None:
        """Return the living plan with this name."""
        return next((one for one in self.living if one.name == name), None)

    def of(self, uid: str) -> PlanRecord | None:
        """Return the plan with this uid."""
        return self._plans.get(uid)

    @property
    def held(self) -> list[str]:
        """The names of the plans that say that nothing of them runs, because they hold."""
        return [one.name for one in self._plans.values() if one.history.is_held and not one.is_deleting]

    def deleted(self, name: str) -> None:
        """Record a request to delete the plan."""
        for one in self._plans.values():
            one.is_deleting = one.is_deleting or one.name == name

    def status(self, plan: Object) -> Iterator[str]:
        """Record a write of the plan's status and yield its violations."""
        record = self._record(plan)
        yield from record.history.see(plan)
        self._update(record, plan)
        holders = [one.name for one in self._plans.values() if one.has_cluster]
        if len(holders) > 1:
            yield f"plans {holders} have the cluster at the same time"

    def changed(self, plan: Object) -> Iterator[str]:
        """Record another write of the plan and yield its violations."""
        record = self._record(plan)
        self._update(record, plan)
        active = [one.name for one in self._plans.values() if one.is_active and not one.is_deleted]
        if len(active) > 1:
            yield f"plans {active} have the label {LABEL_ACTIVE} at the same time"
        if record.is_active and FINALIZER not in objects.finalizers(plan):
            yield f"plan {record.name} has the label {LABEL_ACTIVE} without the finalizer"

    def _record(self, plan: Object) -> PlanRecord:
        uid = objects.uid(plan)
        return self._plans.setdefault(uid, PlanRecord(name=objects.name(plan), uid=uid))

    def _update(self, record: PlanRecord, plan: Object) -> None:
        metadata = objects.metadata(plan)
        record.is_restored = not blocks_next_plan(objects.status(plan))
        record.is_deleting = objects.is_deleting(plan)
        record.is_active = LABEL_ACTIVE in objects.labels(plan)
        record.is_deleted = record.is_deleting and not metadata.get("finalizers")
