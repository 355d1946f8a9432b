"""The conditions of an UpgradePlan, as raw metav1.Conditions, also for commands without pydantic.

condition_model.py has the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from upgrade_manager.api.condition_model import Condition

AVAILABLE = "Available"
PROGRESSING = "Progressing"
DEGRADED = "Degraded"
#: Present while something holds the upgrade up, and after a failure, as in kstatus.
STALLED = "Stalled"
#: True only once the cluster is upgraded.
READY = "Ready"
#: Present until the end, and the first of the list: kstatus judges by the first one of Reconciling and Stalled.
RECONCILING = "Reconciling"
#: Present while the upgrade is paused.
PAUSED = "Paused"
#: Present while a plan waits for so long that Harvester's recovery of VMs matters.
VM_RECOVERY_OFF = "VMRecoveryOff"
#: Present only if the images of the previous release stay on nodes.
IMAGES_NOT_REMOVED = "ImagesNotRemoved"

#: All of them.
CONDITION_TYPES = (
    RECONCILING,
    AVAILABLE,
    PROGRESSING,
    DEGRADED,
    READY,
    STALLED,
    PAUSED,
    VM_RECOVERY_OFF,
    IMAGES_NOT_REMOVED,
)

TRUE = "True"
FALSE = "False"
UNKNOWN = "Unknown"

EXECUTABLE = "Executable"
EXECUTED = "Executed"
CONCURRENT_UPGRADE_BLOCKED = "ConcurrentUpgradeBlocked"
#: Reasons of Available while the next attempt waits: for its checks or its user, and for the end of the failed one.
WAITING, CLEANING_UP = "Waiting", "CleaningUp"
RECONCILE_SUCCESS = "ReconcileSuccess"
RECONCILE_ERROR = "ReconcileError"
#: Reasons of Progressing after the end; until then its reason is the current phase.
SUCCEEDED = "Succeeded"
FAILED = "Failed"
REFUSED = "Refused"
#: Reason of Degraded and Stalled after a failure.
UPGRADE_FAILED = "UpgradeFailed"
#: Its reason once another plan was accepted, which has taken over what the failed one has left.
TAKEN_OVER = "TakenOver"
#: Reason of ImagesNotRemoved.
CLEANUP_FAILED = "CleanupFailed"

#: Reasons of Paused, beside Paused itself: something that has begun still runs, a node holds before a step.
PAUSING = "Pausing"
PAUSE_AFTER = "PauseAfter"
PAUSE_BEFORE = "PauseBefore"

# A limit of metav1.Condition, in characters.
MAX_MESSAGE = 32768


def find_condition(conditions: object, type_: str) -> dict[str, Any] | None:
    """Return the raw condition of that type, or None."""
    for entry in _entries(conditions):
        if entry.get("type") == type_:
            return entry
    return None


def set_condition(conditions: object, new: Condition, now: datetime) -> list[dict[str, Any]]:
    """Return a copy of the raw list with `new` replacing the condition of its type, or appended.

    `lastTransitionTime` becomes `now` only if the status changes. Other conditions, unknown fields and the order are
    kept. A message is truncated to what the API server accepts.
    """
    written = {
        "type": new.type,
        "status": new.status,
        "observedGeneration": new.observed_generation,
        "reason": new.reason,
        "message": _truncated(new.message),
    }
    result: list[dict[str, Any]] = []
    placed = False
    for entry in _entries(conditions):
        if entry.get("type") != new.type:
            result.append(entry)
        elif not placed:
            placed = True
            result.append({**entry, **written, "lastTransitionTime": _transition(entry, new, now)})
    if not placed:
        result.append({**written, "lastTransitionTime": format_time(now)})
    return result


def remove_condition(conditions: object, type_: str) -> list[dict[str, Any]]:
    """Return a copy of the raw list without the condition of that type."""
    return [entry for entry in _entries(conditions) if entry.get("type") != type_]


def _entries(conditions: object) -> Sequence[dict[str, Any]]:
    if not isinstance(conditions, list):
        return []
    return [entry for entry in conditions if isinstance(entry, dict)]


def _transition(entry: dict[str, Any], new: Condition, now: datetime) -> str:
    kept = entry.get("lastTransitionTime")
    if entry.get("status") == new.status and isinstance(kept, str) and kept:
        return kept
    return format_time(now)


def _truncated(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
