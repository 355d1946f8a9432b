"""The status of a plan: context.py pins its patch to a resourceVersion, and calls `rebase` with the response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.attempts import attempt_began, with_failed, work_text
from upgrade_manager.api.blockers import BlockerReason, entries_of
from upgrade_manager.api.condition_model import Condition
from upgrade_manager.api.conditions import (
    AVAILABLE,
    CONCURRENT_UPGRADE_BLOCKED,
    DEGRADED,
    EXECUTABLE,
    EXECUTED,
    FALSE,
    MAX_MESSAGE,
    PROGRESSING,
    RECONCILE_ERROR,
    RECONCILE_SUCCESS,
    RECONCILING,
    REFUSED,
    STALLED,
    TAKEN_OVER,
    TRUE,
    UPGRADE_FAILED,
    find_condition,
    remove_condition,
    set_condition,
)
from upgrade_manager.api.display import display_of, failure_reason, is_unseen, readiness_of, where_it_failed
from upgrade_manager.api.in_progress import taken_over
from upgrade_manager.api.next_steps import step_entries, with_reminders
from upgrade_manager.api.node_states import node_entry, state_of, upgraded_nodes
from upgrade_manager.api.past_blockers import with_ended
from upgrade_manager.api.phases import FAILED, SUCCEEDED, TERMINAL, failed_phase, recorded_phases
from upgrade_manager.api.status import record_phase
from upgrade_manager.api.text import MESSAGE_LIMIT, bounded_line, success_message
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube.patch import merge_diff
from upgrade_manager.nodes.model import Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.api.remedy import Remedy

_BLOCKED = frozenset(map(str, BlockerReason))
_TIMESTAMPS = "phaseTransitionTimestamps"
#: The fields of a node's entry without a message.
_PLAIN = frozenset({"state", "since"})


class StatusPatch:
    """The status during one reconcile; only the difference from the stored status is written.

    Invariants: `phaseTransitionTimestamps` only grows and holds each value once; node states only move forward; a
    condition's transition time changes only with its status; unknown fields and values are kept.
    """

    def __init__(self, plan: Mapping[str, Any], *, now: Callable[[], datetime]) -> None:
        self._now = now
        #: The status on the API server, and the part of it that a manager has written: all or nothing.
        self._written: dict[str, Any] = {}
        self._known: dict[str, Any] = {}
        self._status: dict[str, Any] = {}
        self._generation = 0
        self._is_deleting = False
        self.rebase(plan)

    def rebase(self, plan: Mapping[str, Any], *, keep: bool = False) -> None:
        """Continue from the stored plan; keep unwritten changes with `keep`, else drop them."""
        self._written = plan.get("status") or {}
        self._known = {} if is_unseen(self._written) else self._written
        if not keep:
            self._status = _copied(self._known)
        self._generation = plan["metadata"].get("generation", 0)
        self._is_deleting = "deletionTimestamp" in plan["metadata"]

    def difference(self) -> dict[str, Any]:
        """Return the changes as a merge patch of the status; empty if there are none."""
        return merge_diff(self._written, self._status)

    def summarize(self) -> None:
        """Set the fields that follow from the others, before each write."""
        for type_, condition in readiness_of(self._status).items():
            if condition is None:
                self.unmark(type_)
            else:
                self._condition(type_, condition.status, condition.reason, condition.message)
        self._observe_generation()
        self._status["display"] = display_of(self._status, is_deleting=self._is_deleting)

    def __getitem__(self, field: str) -> Any:
        """Return a field's value, or None."""
        return self._status.get(field)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The raw status, for functions that read one."""
        return self._status

    @property
    def written(self) -> Mapping[str, Any]:
        """The status on the API server."""
        return self._written

    def __setitem__(self, field: str, value: Any) -> None:
        """Set a field of the status."""
        self._status[field] = value

    @property
    def phase(self) -> str:
        """The current phase value; empty before the plan is accepted."""
        return str(self._status.get("currentPhase") or "")

    @property
    def ended(self) -> bool:
        """True in a terminal phase."""
        return self.phase in TERMINAL

    def unwritten_phases(self) -> list[str]:
        """Return the phase values recorded since the last write, in order."""
        is_new = self._status.get("attempt") != self._written.get("attempt")
        if not is_new and self._status.get(_TIMESTAMPS) == self._written.get(_TIMESTAMPS):
            # Fast path: most writes reach no phase.
            return []
        # An attempt whose checks fail begins and fails in one write.
        written = {phase for phase in recorded_phases(self._written) if not is_new or phase != FAILED}
        return [phase for phase in self.recorded_phases() if phase not in written]

    def recorded_phases(self) -> list[str]:
        """Return all recorded phase values, in order."""
        return recorded_phases(self._status)

    def record(self, phase: str) -> None:
        """Set the current phase, and the phase's timestamp unless the timestamp exists."""
        self._status["currentPhase"] = phase
        timestamps = record_phase(self._status.get(_TIMESTAMPS), phase, self._now())
        self._status[_TIMESTAMPS] = timestamps

    def node_state(self, node: str) -> NodeState | None:
        """Return the node's state; None for a node without a state, or with a state that this version does not know."""
        return state_of((self._nodes().get(node) or {}).get("state") or "")

    def node_requests(self, node: str) -> Requests:
        """Return the record of Rancher's requests to drain the node."""
        return Requests.read(self._nodes().get(node) or {})

    def record_requests(self, node: str, record: Requests) -> None:
        """Record Rancher's requests to drain the node, in its entry."""
        nodes = self._nodes()
        if record != self.node_requests(node):
            self._status["nodeUpgradeStatuses"] = nodes
            nodes[node] = {**(nodes.get(node) or {}), "drain": record.entry()}

    @property
    def nodes(self) -> Mapping[str, Any]:
        """The entries by node."""
        return self._nodes()

    def known_nodes(self) -> frozenset[str]:
        """Return the names of the nodes that have an entry."""
        return frozenset(self._nodes())

    @property
    def has_holds(self) -> bool:
        """True while a node is recorded to hold before a step."""
        return any("holds" in (entry or ()) for entry in self._nodes().values())

    def move_node(self, node: str, state: NodeState, *, message: str = "") -> None:
        """Move a node forward and set its message; a state never moves back, a warning stays until another message."""
        nodes = self._nodes()
        old = nodes.get(node) or {}
        if not message and old.get("state") == state and old.keys() <= _PLAIN:
            # Fast path: most nodes are unchanged.
            return
        self._status["nodeUpgradeStatuses"] = nodes
        reason = "" if message else old.get("reason") or ""
        text = bounded_line(message) or (old.get("message", "") if reason else "")
        nodes[node] = node_entry(old, state, now=self._now(), reason=reason, message=text)

    def warn_node(self, node: str, reason: str, message: str, *, limit: int = MESSAGE_LIMIT) -> None:
        """Record a problem of a node that does not fail it."""
        nodes = self._nodes()
        if node in nodes:
            nodes[node] = {**nodes[node], "reason": reason, "message": bounded_line(message, limit=limit)}

    def node_reason(self, node: str) -> str:
        """Return the reason of the node's warning; empty without a warning."""
        return str((self._nodes().get(node) or {}).get("reason") or "")

    def node_message(self, node: str) -> str:
        """Return the node's message; empty without a message."""
        return str((self._nodes().get(node) or {}).get("message") or "")

    def age(self, obj: Mapping[str, Any]) -> float:
        """Return the seconds since the object was created; 0 if that cannot be parsed."""
        return self.seconds_since(obj["metadata"].get("creationTimestamp"))

    def seconds_since(self, moment: object) -> float:
        """Return the seconds since that time; 0 if it cannot be parsed or is in the future."""
        return seconds_between(parsed, self._now()) if (parsed := parse_time(moment)) else 0.0

    def accept(self, phase: str, target: str) -> None:
        """Start the upgrade in its first phase, with an empty ledger."""
        self.record(phase)
        self._status["ledger"] = []
        self.upgrading(target)
        self.waiting("")
        self.healthy()

    def queue(self, text: str, *, since: str | None, reason: str = CONCURRENT_UPGRADE_BLOCKED) -> None:
        """Let the plan, or its next attempt, wait for its start; the conditions of an earlier failure go."""
        self._status["queuedSince"] = since
        # The record that another plan has taken over stays: such a plan has no further attempt.
        is_over = self.ended and not taken_over(self._status)
        self.unmark(PROGRESSING, STALLED, *([DEGRADED] if is_over else []))
        self._condition(AVAILABLE, FALSE, reason, text)

    def upgrading(self, target: str) -> None:
        """Set the condition Available, because the plan holds the cluster."""
        self._condition(AVAILABLE, TRUE, EXECUTABLE, f"Upgrading {self._route(target)}")

    def waiting(self, message: str, detail: str = "") -> None:
        """Set the condition Progressing to the wait of the current phase."""
        self._condition(PROGRESSING, TRUE, self.phase, f"{message}; {detail}" if detail else message)

    def healthy(self) -> None:
        """Clear the condition Degraded."""
        self._condition(DEGRADED, FALSE, RECONCILE_SUCCESS, "")

    def degraded(self, message: str) -> None:
        """Set the condition Degraded, because the last reconcile raised an error that is retried."""
        self._condition(DEGRADED, TRUE, RECONCILE_ERROR, message)

    def blocked(self, blockers: Sequence[Blocker]) -> None:
        """Set the blockers, the condition Stalled and the nodes' reasons; remove these fields without blockers."""
        if blockers or self._status.get("blockers"):
            self._block_nodes(blockers)
            known, past = self._status.get("blockers"), self._status.get("pastBlockers")
            self._status["pastBlockers"] = with_ended(past, known, blockers, now=self._now()) or past
            self._status["blockers"] = entries_of(blockers) or None
        stalling = [blocker for blocker in blockers if blocker.reason.stalls]
        if not stalling:
            self.unmark(STALLED)
            return
        # A blocker makes the estimate wrong.
        self._status["estimatedCompletion"] = None
        first, others = stalling[0], len(blockers) - 1
        more = f" {others} more in status.blockers." if others else ""
        # A command at the end is not followed by a full stop.
        self._condition(STALLED, TRUE, first.reason, f"{first.message}.{more} {first.remedy}")

    def _block_nodes(self, blockers: Sequence[Blocker]) -> None:
        """Set reason and message of nodes to their first blocker; remove reasons and messages of earlier blockers."""
        nodes = self._nodes()
        first = {blocker.node: blocker for blocker in reversed(blockers)}
        for name in nodes:
            if name in first:
                self.warn_node(name, first[name].reason, first[name].message)
            elif nodes[name].get("reason") in _BLOCKED:
                nodes[name] = {key: value for key, value in nodes[name].items() if key not in {"reason", "message"}}

    def mark(self, type_: str, reason: str, message: str) -> None:
        """Set a condition that is present only while it holds."""
        self._condition(type_, TRUE, reason, message)

    def unmark(self, *types: str) -> None:
        """Remove conditions that do not hold any more."""
        for type_ in types:
            if find_condition(self._status.get("conditions"), type_):
                self._status["conditions"] = remove_condition(self._status["conditions"], type_)

    def _observe_generation(self) -> None:
        """Mark all conditions as up to date, because `kubectl wait` ignores outdated ones; put Reconciling first."""
        seen = {"observedGeneration": self._generation}
        conditions = [{**c, **seen} for c in self._status.get("conditions") or [] if isinstance(c, dict)]
        self._status["conditions"] = sorted(conditions, key=lambda one: one.get("type") != RECONCILING)
        self._status.update(seen)

    @property
    def is_cleanup_pending(self) -> bool:
        """True from the end until the objects of the upgrade are removed."""
        return bool(self._status.get("cleanupPending"))

    def cleaned_up(self) -> None:
        """Record that the clean-up is complete."""
        self._status["cleanupPending"] = None

    def succeed(self, target: str, remarks: str = "") -> None:
        """End the upgrade with success; `remarks` has what users have to do about what the upgrade could not settle."""
        self.record(SUCCEEDED)
        self._status.update({"cleanupPending": True, "estimatedCompletion": None})
        self._condition(AVAILABLE, FALSE, EXECUTED, "The upgrade succeeded")
        text = f"Upgraded {self._route(target)} in {work_text(self._status, self._now())}"
        text = success_message(text, nodes=upgraded_nodes(self._status), remarks=remarks)
        self._condition(PROGRESSING, FALSE, SUCCEEDED, text, limit=MAX_MESSAGE)
        self.healthy()

    def fail(
        self,
        message: str,
        *,
        cause: str,
        todo: str,
        node: str = "",
        cordoned: Sequence[str] = (),
        steps: Sequence[Remedy] = (),
        is_refusal: bool = False,
    ) -> None:
        """End the attempt with a failure; `cause` and `todo` are a sentence each, `cordoned` nodes stay cordoned.

        An attempt is refused before it begins, also if an earlier one has reached a later phase.
        """
        phase = str(failed_phase(self.recorded_phases()))
        self._status["attempts"] = with_failed(self._status, phase=phase, node=node, cause=cause, now=self._now())
        self.record(FAILED)
        self._status.update({"cleanupPending": True, "estimatedCompletion": None, "nextSteps": step_entries(steps)})
        where = where_it_failed(self._status, cordoned=cordoned)
        self._condition(AVAILABLE, FALSE, EXECUTED, f"{where}. Next step: see Degraded")
        # The cause may name 1,000 nodes that failed.
        reason = REFUSED if is_refusal or failure_reason(self.recorded_phases()) == REFUSED else FAILED
        self._condition(PROGRESSING, FALSE, reason, message, limit=MAX_MESSAGE)
        self._condition(DEGRADED, TRUE, UPGRADE_FAILED, f"{cause.rstrip('.')}. {todo}", limit=MAX_MESSAGE)

    def remind(self, steps: Sequence[Remedy]) -> None:
        """Add steps to those of a failure, each once, after the first, which has what to do."""
        self._status["nextSteps"] = with_reminders(list(self._status.get("nextSteps") or []), steps)

    def taken_over(self, successor: str) -> None:
        """Name the plan that has taken over, once, in place of what to do about a failure."""
        if taken_over(self._status):
            return
        cause = (find_condition(self._status.get("conditions"), PROGRESSING) or {}).get("message") or "It failed"
        # The cause may end with a command.
        text = f"UpgradePlan {successor} has taken over. {cause}"
        self._condition(DEGRADED, TRUE, TAKEN_OVER, text, limit=MAX_MESSAGE)

    def _route(self, target: str) -> str:
        previous = self["previousVersion"]
        return f"from {previous} to {target}" if previous else f"to {target}"

    def seconds_in_phase(self) -> float:
        """Return the seconds since the current phase began."""
        return seconds_between(self.phase_began, self._now()) if self.phase_began else 0.0

    @property
    def phase_began(self) -> datetime | None:
        """The begin of the current phase, or of the attempt in it; None before the plan is accepted."""
        times = (self.phase_reached, parse_time(attempt_began(self._status)))
        return max((time for time in times if time is not None), default=None)

    @property
    def phase_reached(self) -> datetime | None:
        """The time at which the current phase was reached, in this or an earlier attempt."""
        return parse_time(self._entry_time(-1))

    @property
    def attempt_accepted(self) -> datetime | None:
        """The time of the plan's acceptance, or of the begin of its present attempt; None before the acceptance."""
        return parse_time(attempt_began(self._status)) or parse_time(self._entry_time(0))

    def _entry_time(self, number: int) -> object:
        entries = self._status.get(_TIMESTAMPS) or [{}]
        return entries[number].get("phaseTransitionTimestamp")

    def _condition(self, type_: str, status: str, reason: str, message: str, *, limit: int = MESSAGE_LIMIT) -> None:
        text = bounded_line(message, limit=limit)
        wanted = {"status": status, "observedGeneration": self._generation, "reason": reason, "message": text}
        present = find_condition(self._status.get("conditions"), type_)
        if present and present.get("lastTransitionTime") and present.items() >= wanted.items():
            # As after most reconciles.
            return
        # The values are the manager's own and need no validation.
        condition = Condition.model_construct(
            type=type_, status=status, reason=reason, message=text, observed_generation=self._generation
        )
        self._status["conditions"] = set_condition(self._since(type_, status), condition, self._now())

    def _since(self, type_: str, status: str) -> list[Any]:
        """Return the conditions; a condition that returns to its stored status gets the stored transition time."""
        conditions = self._status.get("conditions") or []
        written = find_condition(self._known.get("conditions"), type_)
        if written is None or written.get("status") != status:
            return list(conditions)
        if find_condition(conditions, type_) is None:
            return [*conditions, written]
        return [written if isinstance(c, dict) and c.get("type") == type_ else c for c in conditions]

    def _nodes(self) -> dict[str, Any]:
        return self._status.get("nodeUpgradeStatuses") or {}


def _copied(status: Mapping[str, Any]) -> dict[str, Any]:
    """Copy two levels, because values inside a list or map of the status are replaced and never changed."""
    return {key: value.copy() if isinstance(value, dict | list) else value for key, value in status.items()}
