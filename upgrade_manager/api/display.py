"""The state of a plan in one word, and the conditions that say the same, for every tool that judges objects.

pipeline/status.py writes both with every change of the status. `status.display` is for `kubectl get`, the displays and
wrangler, by which Rancher's UI and Fleet judge an object: it reads state, transitioning, error and message before any
condition. Reconciling, Ready and Stalled are for kstatus (Flux, Helm), Argo CD and `kubectl wait`: docs/gitops.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.condition_model import Condition
from upgrade_manager.api.conditions import (
    AVAILABLE,
    DEGRADED,
    FALSE,
    PAUSED,
    PROGRESSING,
    READY,
    RECONCILING,
    REFUSED,
    STALLED,
    TRUE,
    UNKNOWN,
    UPGRADE_FAILED,
    find_condition,
)
from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.node_states import recorded_states, upgraded_nodes
from upgrade_manager.api.phases import (
    FAILED,
    SUCCEEDED,
    TERMINAL,
    PhaseName,
    failed_phase,
    last_value,
    phase_of,
    recorded_phases,
)
from upgrade_manager.api.text import bounded_line, name_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DisplayState(StrEnum):
    """The first word of `status.display.state`; Stalled and Failed are followed by their reason."""

    #: The manager has not accepted the plan.
    PENDING = "Pending"
    #: Another plan, or another holder of the cluster, is in progress; it starts afterwards.
    QUEUED = "Queued"
    RUNNING = "Running"
    #: The upgrade holds until a user continues it.
    PAUSED = "Paused"
    #: Something holds the upgrade up for longer than it should.
    STALLED = "Stalled"
    #: All nodes are upgraded; images and the upgrade's objects are being removed.
    CLEANING_UP = "CleaningUp"
    #: The cluster is upgraded, and the upgrade's objects are removed.
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    #: The plan is being deleted, and gives back what it has changed.
    DELETING = "Deleting"

    @property
    def transitioning(self) -> bool:
        """True while the state changes by itself."""
        return self not in {DisplayState.SUCCEEDED, DisplayState.FAILED}

    @property
    def error(self) -> bool:
        """True if the plan will not upgrade the cluster."""
        return self is DisplayState.FAILED


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


#: The message of a plan that no manager has reconciled.
WAITING_FOR_MANAGER = "Waiting for the upgrade manager"
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
#: The time in UNSEEN_STATUS, which no manager writes.
_UNSEEN_SINCE = "1970-01-01T00:00:00Z"
#: The schema's default, in place of no status, which kstatus would take for an object that is complete.
UNSEEN_STATUS: Mapping[str, Any] = {
    "conditions": [
        {
            "type": RECONCILING,
            "status": TRUE,
            "reason": str(DisplayState.PENDING),
            "message": WAITING_FOR_MANAGER,
            "lastTransitionTime": _UNSEEN_SINCE,
        }
    ],
    "display": {
        "state": str(DisplayState.PENDING),
        "transitioning": DisplayState.PENDING.transitioning,
        "error": DisplayState.PENDING.error,
    },
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


def is_unseen(status: Mapping[str, Any]) -> bool:
    """Return True for the schema's default: no manager has written the status."""
    conditions = status.get("conditions")
    return isinstance(conditions, list) and [_transition(entry) for entry in conditions] == [_UNSEEN_SINCE]


def _transition(entry: object) -> object:
    return entry.get("lastTransitionTime") if isinstance(entry, dict) else None


def readiness_of(status: Mapping[str, Any]) -> Mapping[str, Condition | None]:
    """Return the conditions by which other tools judge a plan, by type; None for one that is absent.

    They follow from the state that a plan has before its deletion. kstatus takes a plan for failed if Stalled comes
    without Reconciling, so that Reconciling stays until the upgrade's objects are removed.
    """
    state = _state(status, is_deleting=False)
    message = _message(status, state)
    if state is DisplayState.SUCCEEDED:
        return {RECONCILING: None, READY: _condition(READY, TRUE, SUCCEEDED, message)}
    if state.error:
        return {
            RECONCILING: None,
            READY: _condition(READY, FALSE, _reason(status, state), message),
            STALLED: _condition(STALLED, TRUE, UPGRADE_FAILED, message),
        }
    reason = _reason_of_progress(status, state)
    return {
        RECONCILING: _condition(RECONCILING, TRUE, reason, message or WAITING_FOR_MANAGER),
        READY: _condition(READY, UNKNOWN, reason, _of_condition(status, AVAILABLE, "message")),
    }


def _reason_of_progress(status: Mapping[str, Any], state: DisplayState) -> str:
    phase = str(status.get("currentPhase") or DisplayState.PENDING)
    if state is DisplayState.QUEUED or (state is DisplayState.PAUSED and phase in TERMINAL):
        return state
    return DisplayState.CLEANING_UP if phase in TERMINAL else phase


def _condition(type_: str, status: str, reason: str, message: str) -> Condition:
    # The values are the manager's own and need no validation.
    return Condition.model_construct(type=type_, status=status, reason=reason, message=message)


def failure_reason(recorded: list[str]) -> FailureReason:
    """Return the reason of a failed plan from its recorded phase values."""
    return _CHECKED.get(last_value(recorded)) or _FAILURES[failed_phase(recorded)]


def where_it_failed(status: Mapping[str, Any], *, cordoned: Sequence[str] = ()) -> str:
    """Return the phase in which a plan failed, and what it has upgraded; an earlier plan may have upgraded more."""
    left = f", {name_list(cordoned)} cordoned" if cordoned else ""
    phase = failed_phase(recorded_phases(status))
    if phase in {PhaseName.NODE_UPGRADE, PhaseName.IMAGE_CLEANUP}:
        return f"Failed in {phase}: {upgraded_nodes(status)} of {len(recorded_states(status))} nodes upgraded{left}"
    unchanged = "no node" if phase is PhaseName.CLUSTER_UPGRADE else "neither components nor nodes"
    return f"Failed in {phase}: this plan has upgraded {unchanged}{left}"


def _state(status: Mapping[str, Any], *, is_deleting: bool) -> DisplayState:
    phase = status.get("currentPhase") or ""
    is_cleaning = phase_of(phase) is PhaseName.IMAGE_CLEANUP or (phase == SUCCEEDED and status.get("cleanupPending"))
    is_paused = _of_condition(status, PAUSED, "status") == TRUE
    found = (
        (is_deleting, DisplayState.DELETING),
        # A failed plan that is resumed may be queued.
        (status.get("queuedSince") and not find_condition(status.get("conditions"), PROGRESSING), DisplayState.QUEUED),
        # So may one whose next attempt waits for its user.
        (phase == FAILED and is_paused, DisplayState.PAUSED),
        (phase == FAILED, DisplayState.FAILED),
        (find_condition(status.get("conditions"), STALLED), DisplayState.STALLED),
        (is_paused, DisplayState.PAUSED),
        (is_cleaning, DisplayState.CLEANING_UP),
        (phase == SUCCEEDED, DisplayState.SUCCEEDED),
        (phase, DisplayState.RUNNING),
    )
    return next((state for holds, state in found if holds), DisplayState.PENDING)


def _reason(status: Mapping[str, Any], state: DisplayState) -> str:
    if state is DisplayState.FAILED:
        # An attempt that a check refuses has not reached the phase in which the plan has failed before.
        is_refused = _of_condition(status, PROGRESSING, "reason") == REFUSED
        return FailureReason.REFUSED if is_refused else failure_reason(recorded_phases(status))
    return _of_condition(status, STALLED, "reason") if state is DisplayState.STALLED else ""


def _message(status: Mapping[str, Any], state: DisplayState) -> str:
    """Return the message of the condition that explains the state."""
    source = {
        DisplayState.PENDING: AVAILABLE,
        DisplayState.QUEUED: AVAILABLE,
        DisplayState.PAUSED: PAUSED,
        DisplayState.STALLED: STALLED,
        DisplayState.FAILED: DEGRADED,
    }.get(state, PROGRESSING)
    return bounded_line(_of_condition(status, source, "message"))


def _of_condition(status: Mapping[str, Any], type_: str, field: str) -> str:
    return str((find_condition(status.get("conditions"), type_) or {}).get(field) or "")


def _nodes(status: Mapping[str, Any]) -> str:
    nodes = status.get("nodeUpgradeStatuses")
    return f"{upgraded_nodes(status)}/{len(nodes)}" if nodes else ""
