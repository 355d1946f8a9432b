"""`status.display`: the state of a plan in one word, for `kubectl get`, the displays and Rancher's UI.

pipeline/status.py writes it with every change of the status. wrangler, by which Rancher's UI and Fleet judge an object,
reads state, transitioning, error and message of it before any condition.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.conditions import AVAILABLE, DEGRADED, PROGRESSING, STALLED, find_condition
from upgrade_manager.api.in_progress import is_blocked
from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.node_states import recorded_states, upgraded_nodes
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, PHASES, SUCCEEDED, PhaseName, phase_of, recorded_phases
from upgrade_manager.api.text import bounded_line, name_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DisplayState(StrEnum):
    """The first word of `status.display.state`; Stalled and Failed are followed by their reason."""

    #: The manager has not accepted the plan.
    PENDING = "Pending"
    #: Another plan was in progress when it was created; it never starts.
    BLOCKED = "Blocked"
    RUNNING = "Running"
    #: Something holds the upgrade up for longer than it should.
    STALLED = "Stalled"
    #: All nodes are upgraded; images and the upgrade's objects are being removed.
    CLEANING_UP = "CleaningUp"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    #: The plan is being deleted, and gives back what it has changed.
    DELETING = "Deleting"

    @property
    def transitioning(self) -> bool:
        """True while the state changes by itself."""
        return self not in {DisplayState.BLOCKED, DisplayState.SUCCEEDED, DisplayState.FAILED}

    @property
    def error(self) -> bool:
        """True if the plan will not upgrade the cluster."""
        return self in {DisplayState.BLOCKED, DisplayState.FAILED}


class FailureReason(StrEnum):
    """The reason of a failed plan, by what failed."""

    #: A check before anything was created.
    REFUSED = "Refused"
    IMPORT_FAILED = "ImportFailed"
    #: The release on the ISO, which this cluster cannot be upgraded to.
    NOT_ELIGIBLE = "NotEligible"
    PRELOAD_FAILED = "PreloadFailed"
    CLUSTER_UPGRADE_FAILED = "ClusterUpgradeFailed"
    NODE_UPGRADE_FAILED = "NodeUpgradeFailed"


#: By the phase that ran, or that could not be entered.
_FAILURES = {
    PhaseName.INITIALIZE: FailureReason.REFUSED,
    PhaseName.ISO_DOWNLOAD: FailureReason.IMPORT_FAILED,
    PhaseName.REPO_CREATE: FailureReason.IMPORT_FAILED,
    PhaseName.METADATA_POPULATE: FailureReason.IMPORT_FAILED,
    PhaseName.IMAGE_PRELOAD: FailureReason.PRELOAD_FAILED,
    PhaseName.CLUSTER_UPGRADE: FailureReason.CLUSTER_UPGRADE_FAILED,
    PhaseName.NODE_UPGRADE: FailureReason.NODE_UPGRADE_FAILED,
    PhaseName.IMAGE_CLEANUP: FailureReason.NODE_UPGRADE_FAILED,
}
#: The values after which a failure is that of a check, and not of the next phase's work.
_CHECKED = {
    PhaseName.INITIALIZE.completed: FailureReason.REFUSED,
    PhaseName.METADATA_POPULATE.completed: FailureReason.NOT_ELIGIBLE,
}


class DisplayStatus(ApiModel, json_schema_extra={"required": ["state", "transitioning", "error"]}):
    """The state of the plan in one word."""

    state: str = Field(
        default="",
        description=f"{', '.join(DisplayState)}. {DisplayState.STALLED} and {DisplayState.FAILED} are followed by a "
        f"colon and the reason: that of the first blocker, or {', '.join(FailureReason)}.",
    )
    transitioning: bool = Field(default=False, description="True while the state changes by itself.")
    error: bool = Field(default=False, description="True if the plan will not upgrade the cluster.")
    message: str = Field(
        default="", description="What the upgrade waits for, why it failed, or what it has done, as in its conditions."
    )
    nodes: str = Field(
        default="",
        description="Number of upgraded nodes and of all recorded nodes, such as 1/3; absent before nodes are "
        "recorded.",
    )


def display_of(status: Mapping[str, Any], *, is_deleting: bool) -> dict[str, Any]:
    """Return the raw `status.display` of a raw status."""
    state = _state(status, is_deleting=is_deleting)
    reason = _reason(status, state)
    shown = {
        "state": f"{state}: {reason}" if reason else str(state),
        "transitioning": state.transitioning,
        "error": state.error,
    }
    texts = {"message": _message(status, state), "nodes": _nodes(status)}
    return shown | {key: text for key, text in texts.items() if text}


def failure_reason(recorded: list[str]) -> FailureReason:
    """Return the reason of a failed plan from its recorded phase values."""
    return _CHECKED.get(_last(recorded)) or _FAILURES[failed_phase(recorded)]


def where_it_failed(status: Mapping[str, Any], *, cordoned: Sequence[str] = ()) -> str:
    """Return the phase in which a plan failed, and what it has upgraded; an earlier plan may have upgraded more."""
    left = f", {name_list(cordoned)} cordoned" if cordoned else ""
    phase = failed_phase(recorded_phases(status))
    if phase in {PhaseName.NODE_UPGRADE, PhaseName.IMAGE_CLEANUP}:
        return f"Failed in {phase}: {upgraded_nodes(status)} of {len(recorded_states(status))} nodes upgraded{left}"
    unchanged = "no node" if phase is PhaseName.CLUSTER_UPGRADE else "neither components nor nodes"
    return f"Failed in {phase}: this plan has upgraded {unchanged}{left}"


def _last(recorded: list[str]) -> str:
    """Return the last value before the end."""
    return next((value for value in reversed(recorded) if value in PHASE_VALUES), PhaseName.INITIALIZE.active)


def failed_phase(recorded: list[str]) -> PhaseName:
    """Return the phase that ran, or that was to begin."""
    last = _last(recorded)
    phase = phase_of(last) or PhaseName.INITIALIZE
    following = PHASES[PHASES.index(phase) + 1 :]
    return following[0] if following and last == phase.completed else phase


def _state(status: Mapping[str, Any], *, is_deleting: bool) -> DisplayState:
    phase = status.get("currentPhase") or ""
    is_cleaning = phase_of(phase) is PhaseName.IMAGE_CLEANUP or (phase == SUCCEEDED and status.get("cleanupPending"))
    found = (
        (is_deleting, DisplayState.DELETING),
        (phase == FAILED, DisplayState.FAILED),
        (find_condition(status.get("conditions"), STALLED), DisplayState.STALLED),
        (is_cleaning, DisplayState.CLEANING_UP),
        (phase == SUCCEEDED, DisplayState.SUCCEEDED),
        (phase, DisplayState.RUNNING),
        (not phase and is_blocked(status), DisplayState.BLOCKED),
    )
    return next((state for holds, state in found if holds), DisplayState.PENDING)


def _reason(status: Mapping[str, Any], state: DisplayState) -> str:
    if state is DisplayState.FAILED:
        return failure_reason(recorded_phases(status))
    return _of_condition(status, STALLED, "reason") if state is DisplayState.STALLED else ""


def _message(status: Mapping[str, Any], state: DisplayState) -> str:
    """Return the message of the condition that explains the state."""
    source = {
        DisplayState.PENDING: AVAILABLE,
        DisplayState.BLOCKED: AVAILABLE,
        DisplayState.STALLED: STALLED,
        DisplayState.FAILED: DEGRADED,
    }.get(state, PROGRESSING)
    return bounded_line(_of_condition(status, source, "message"))


def _of_condition(status: Mapping[str, Any], type_: str, field: str) -> str:
    return str((find_condition(status.get("conditions"), type_) or {}).get(field) or "")


def _nodes(status: Mapping[str, Any]) -> str:
    states = recorded_states(status)
    return f"{upgraded_nodes(status)}/{len(states)}" if states else ""
