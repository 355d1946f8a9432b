"""The three conditions of a plan, in the shape of metav1.Condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

AVAILABLE = "Available"
PROGRESSING = "Progressing"
DEGRADED = "Degraded"

TRUE = "True"
FALSE = "False"

EXECUTABLE = "Executable"
EXECUTED = "Executed"
CONCURRENT_UPGRADE_BLOCKED = "ConcurrentUpgradeBlocked"
RECONCILE_SUCCESS = "ReconcileSuccess"
RECONCILE_ERROR = "ReconcileError"
#: Reasons of Progressing at the end; before, its reason is the current phase value.
SUCCEEDED = "Succeeded"
FAILED = "Failed"

# metav1.Condition's limits, in characters.
MAX_TYPE = 316
MAX_MESSAGE = 32768
MAX_REASON = 1024


class Condition(
    ApiModel, json_schema_extra={"required": ["type", "status", "lastTransitionTime", "reason", "message"]}
):
    """One aspect of the plan's state, in the form that `kubectl wait --for=condition` understands."""

    type: str = Field(
        default="",
        description="Which aspect this is: Available, Progressing or Degraded.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_TYPE},
    )
    status: str = Field(
        default="Unknown",
        description="Whether the aspect holds: True, False or Unknown.",
        json_schema_extra={"enum": ["True", "False", "Unknown"]},
    )
    observed_generation: int = Field(
        default=0,
        description="The metadata.generation of the plan that this was judged by; a smaller number is out of date.",
        json_schema_extra={"format": "int64", "minimum": 0},
    )
    last_transition_time: str = Field(
        default="",
        description="When the status last changed from one value to another; a new reason or message does not count.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str = Field(
        default="",
        description="One word for the cause of the status, made for programs; while the plan runs, Progressing has "
        "the current phase here.",
        json_schema_extra={
            "minLength": 1,
            "maxLength": MAX_REASON,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
    )
    message: str = Field(
        default="",
        description="What is going on, for people: what the plan waits for, which error is retried, or why it failed.",
        json_schema_extra={"maxLength": MAX_MESSAGE},
    )


def find_condition(conditions: object, type_: str) -> dict[str, Any] | None:
    """The raw condition of that type; None where there is none, or no list of conditions at all."""
    for entry in _entries(conditions):
        if entry.get("type") == type_:
            return entry
    return None


def set_condition(conditions: object, new: Condition, now: datetime) -> list[dict[str, Any]]:
    """The raw list with `new` in the place of the condition of its type, or at the end.

    `lastTransitionTime` becomes `now` only where the status differs or there was no time. Other conditions, unknown
    fields of this one and the order stay as they are; a message is cut to what the API server accepts. The input is
    not changed, so that equality of input and output tells that nothing is to be written.
    """
    written = {
        "type": new.type,
        "status": new.status,
        "observedGeneration": new.observed_generation,
        "reason": new.reason,
        "message": _clipped(new.message),
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


def _entries(conditions: object) -> Sequence[dict[str, Any]]:
    if not isinstance(conditions, list):
        return []
    return [entry for entry in conditions if isinstance(entry, dict)]


def _transition(entry: dict[str, Any], new: Condition, now: datetime) -> str:
    kept = entry.get("lastTransitionTime")
    if entry.get("status") == new.status and isinstance(kept, str) and kept:
        return kept
    return format_time(now)


def _clipped(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
