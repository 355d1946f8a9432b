from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    TRUE,
    Condition,
    find_condition,
    set_condition,
)
from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.phases import FAILED, SUCCEEDED, TERMINAL
from upgrade_manager.api.status import node_entry, record_phase
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube.patch import merge_diff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from upgrade_manager.api.node_states import NodeState

#: Characters of a condition's or event's message, as a rule.
MESSAGE_LIMIT = 1000


def one_line(text: str, *, limit: int = MESSAGE_LIMIT) -> str:
    """Make any text fit for a condition or an event: one line, printable, of bounded length.

    Whitespace, control characters, line separators and bidirectional marks become single spaces.
    """
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


class StatusPatch:
    """The status as one reconcile will have it, for the engine and the phases; written as the difference only.

    Invariants: `phaseTransitionTimestamps` only grows and holds each value once; node states only move forward; a
    condition's time moves only with its status; what this version does not know stays as it is.
    """

    def __init__(self, plan: Mapping[str, Any], *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._written: dict[str, Any] = {}
        self._status: dict[str, Any] = {}
        self._generation = 0
        self.rebase(plan)

    def rebase(self, plan: Mapping[str, Any], *, keep: bool = False) -> None:
        """Start over from what the API server now holds; `keep` what is not written yet, else drop it."""
        self._written = plan.get("status") or {}
        if not keep:
            self._status = _copied(self._written)
        self._generation = plan["metadata"].get("generation", 0)

    def difference(self) -> dict[str, Any]:
        """The merge patch of the status that would write what has changed; empty where nothing has."""
        return merge_diff(self._written, self._status)

    def __getitem__(self, field: str) -> Any:
        """A field's value, None where it is absent."""
        return self._status.get(field)

    def __setitem__(self, field: str, value: Any) -> None:
        """Set a field of the status."""
        self._status[field] = value

    @property
    def phase(self) -> str:
        """The current phase value; empty before the plan is accepted."""
        return str(self._status.get("currentPhase") or "")

    @property
    def ended(self) -> bool:
        """Whether a terminal phase is reached."""
        return self.phase in TERMINAL

    def only_informs(self) -> bool:
        """Whether the changes are node states and messages only: nothing that anyone may wait for or build upon."""
        if not self.difference().keys() <= {"conditions", "nodeUpgradeStatuses"}:
            return False
        return self._verdicts(self._written) == self._verdicts(self._status)

    @staticmethod
    def _verdicts(status: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return [(c.get("type"), c.get("status"), c.get("reason")) for c in status.get("conditions") or []]

    def unwritten_phases(self) -> list[str]:
        """Phase values recorded since the last write, in order."""
        written = _phases(self._written)
        return [phase for phase in self.recorded_phases() if phase not in written]

    def recorded_phases(self) -> list[str]:
        """All phase values recorded, in order."""
        return _phases(self._status)

    def record(self, phase: str) -> None:
        """Make it the current phase; a value that is recorded already is not recorded again."""
        self._status["currentPhase"] = phase
        timestamps = record_phase(self._status.get("phaseTransitionTimestamps"), phase, self._now())
        self._status["phaseTransitionTimestamps"] = timestamps

    def node_state(self, node: str) -> NodeState | None:
        """The node's state; None where it has none, or one that only a newer version knows."""
        return state_of((self._nodes().get(node) or {}).get("state") or "")

    def has_node(self, node: str) -> bool:
        """Whether the node takes part, in whatever state."""
        return node in self._nodes()

    def known_nodes(self) -> frozenset[str]:
        """Names of the nodes that take part."""
        return frozenset(self._nodes())

    def move_node(self, node: str, state: NodeState, *, message: str = "") -> None:
        """Move a node forward; a move back is no move."""
        nodes = self._nodes()
        if not message and nodes.get(node) == {"state": state}:
            # Of a thousand nodes nearly all are where they were.
            return
        self._status["nodeUpgradeStatuses"] = nodes
        nodes[node] = node_entry(nodes.get(node), state, message=one_line(message))

    def age(self, obj: Mapping[str, Any]) -> float:
        """Seconds since the object was created; none where that cannot be read, and never below zero."""
        return self.seconds_since(obj["metadata"].get("creationTimestamp"))

    def seconds_since(self, moment: object) -> float:
        """Seconds since that time; none where it cannot be read, and never below zero."""
        parsed = parse_time(moment)
        return seconds_between(parsed, self._now()) if parsed else 0.0

    def accept(self, phase: str) -> None:
        """The plan may run: it holds the cluster from now on."""
        self.record(phase)
        self._condition(AVAILABLE, TRUE, EXECUTABLE, "UpgradePlan is being executed")
        self.waiting("")
        self.healthy()

    def block(self, other: str) -> None:
        """Another plan holds the cluster."""
        text = f"UpgradePlan {other} is in progress; delete this plan and create it again when that one has ended"
        self._condition(AVAILABLE, FALSE, CONCURRENT_UPGRADE_BLOCKED, text)

    def waiting(self, message: str, detail: str = "") -> None:
        """What the current phase waits for, and what else is known of it."""
        self._condition(PROGRESSING, TRUE, self.phase, f"{message}; {detail}" if detail else message)

    def only_details(self, message: str) -> bool:
        """Whether nothing has changed but what is said after `message` of what the current phase waits for."""
        if self.difference().keys() != {"conditions"}:
            return False
        before, after = (_by_type(status) for status in (self._written, self._status))
        said = before.get(PROGRESSING, {}).pop("message", "")
        after.get(PROGRESSING, {}).pop("message", "")
        return before == after and said.startswith(one_line(message))

    def healthy(self) -> None:
        """The last step raised no error."""
        self._condition(DEGRADED, FALSE, RECONCILE_SUCCESS, "")

    def degraded(self, message: str) -> None:
        """The last step raised an error, and will be tried again."""
        self._condition(DEGRADED, TRUE, RECONCILE_ERROR, message)

    def observe_generation(self) -> None:
        """The conditions are true of the spec as it is now; to `kubectl wait`, older ones are not met."""
        conditions = self._status.get("conditions")
        if isinstance(conditions, list):
            seen = {"observedGeneration": self._generation}
            self._status["conditions"] = [{**c, **seen} if isinstance(c, dict) else c for c in conditions]

    def succeed(self) -> None:
        """The end that everyone hopes for."""
        self._end(SUCCEEDED, "UpgradePlan has completed")
        self.healthy()

    def fail(self, cause: str) -> None:
        """The other end; the Degraded condition stays as it is."""
        self._end(FAILED, cause)

    def _end(self, phase: str, message: str) -> None:
        self.record(phase)
        self._condition(AVAILABLE, FALSE, EXECUTED, "Entered one of the terminal phases")
        # The cause names all that failed, which may be a thousand nodes.
        self._condition(PROGRESSING, FALSE, phase, message, limit=MAX_MESSAGE)

    def _condition(self, type_: str, status: str, reason: str, message: str, *, limit: int = MESSAGE_LIMIT) -> None:
        condition = Condition(
            type=type_,
            status=status,
            reason=reason,
            message=one_line(message, limit=limit),
            observed_generation=self._generation,
        )
        self._status["conditions"] = set_condition(self._since(type_, status), condition, self._now())

    def _since(self, type_: str, status: str) -> list[Any]:
        """The conditions; one that is back at what is written, which nobody saw leave, has the time that is written."""
        conditions = self._status.get("conditions") or []
        written = find_condition(self._written.get("conditions"), type_)
        if written is None or written.get("status") != status:
            return list(conditions)
        return [written if isinstance(c, dict) and c.get("type") == type_ else c for c in conditions]

    def _nodes(self) -> dict[str, Any]:
        return self._status.get("nodeUpgradeStatuses") or {}


def _phases(status: Mapping[str, Any]) -> list[str]:
    return [entry["phase"] for entry in status.get("phaseTransitionTimestamps") or [] if entry.get("phase")]


def _by_type(status: Mapping[str, Any]) -> dict[Any, dict[str, Any]]:
    return {c.get("type"): dict(c) for c in status.get("conditions") or [] if isinstance(c, dict)}


def _copied(status: Mapping[str, Any]) -> dict[str, Any]:
    """Deep enough: what stands inside a list or a map of the status is replaced as a whole, never changed."""
    return {key: value.copy() if isinstance(value, dict | list) else value for key, value in status.items()}
