"""The model of a metav1.Condition: a field of status.py, and what pipeline/status.py writes."""

from __future__ import annotations

from pydantic import Field

from upgrade_manager.api.conditions import CONDITION_TYPES, MAX_MESSAGE
from upgrade_manager.api.model import ApiModel

# Limits of metav1.Condition, in characters.
MAX_TYPE = 316
MAX_REASON = 1024


class Condition(
    ApiModel, json_schema_extra={"required": ["type", "status", "lastTransitionTime", "reason", "message"]}
):
    """One condition, for `kubectl wait --for=condition`."""

    type: str = Field(
        default="",
        description=f"{', '.join(CONDITION_TYPES[:-1])} or {CONDITION_TYPES[-1]}.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_TYPE},
    )
    status: str = Field(
        default="Unknown",
        description="True, False or Unknown.",
        json_schema_extra={"enum": ["True", "False", "Unknown"]},
    )
    observed_generation: int = Field(
        default=0,
        description="The metadata.generation for which the condition was set; a smaller number is out of date.",
        json_schema_extra={"format": "int64", "minimum": 0},
    )
    last_transition_time: str = Field(
        default="",
        description="Time of the last change of status; changes of reason and message do not count.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str = Field(
        default="",
        description="Machine-readable reason. While the upgrade runs, Progressing has the current phase here.",
        json_schema_extra={
            "minLength": 1,
            "maxLength": MAX_REASON,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
    )
    message: str = Field(
        default="",
        description="Human-readable details: what the upgrade waits for, the error being retried, or why it failed.",
        json_schema_extra={"maxLength": MAX_MESSAGE},
    )
