"""The model of `status.blockers`, for status.py; blockers.py reads and writes the entries without pydantic."""

from __future__ import annotations

from pydantic import Field

from upgrade_manager.api.blockers import MAX_OTHERS, BlockerReason
from upgrade_manager.api.model import ApiModel, NamedObject
from upgrade_manager.api.remedy import MAX_REMEDIES


class RemedyStatus(ApiModel, json_schema_extra={"required": ["text"]}):
    """One action of a user against a blocker."""

    text: str = Field(default="", description="What to do.")
    command: str = Field(
        default="", description="The command that does it, in one line; absent if the action has no command."
    )
    undo: str = Field(
        default="",
        description="The command that gives back, after the upgrade, what the command changes; absent if nothing is.",
    )


class BlockerStatus(
    NamedObject, json_schema_extra={"required": ["kind", "name", "reason", "message", "remedy", "since"]}
):
    """Something for which the upgrade waits longer than it should."""

    others: list[str] = Field(
        default_factory=list,
        description="Names of other objects with the same cause, of the same kind and namespace.",
        json_schema_extra={
            "maxItems": MAX_OTHERS,
            "x-kubernetes-list-type": "atomic",
            "items": {"type": "string", "description": "Name of an object."},
        },
    )
    node: str = Field(default="", description="Node whose upgrade waits; absent if that is not one node.")
    reason: str = Field(default="", description=f"Machine-readable reason: {', '.join(BlockerReason)}.")
    message: str = Field(default="", description="Human-readable details, with the message of the object.")
    remedy: str = Field(default="", description="What to do, where possible a command: all remedies in one line.")
    remedies: list[RemedyStatus] = Field(
        default_factory=list,
        description="What to do, each action with its command.",
        json_schema_extra={"maxItems": MAX_REMEDIES, "x-kubernetes-list-type": "atomic"},
    )
    since: str = Field(
        default="", description="Time at which the wait began, in UTC.", json_schema_extra={"format": "date-time"}
    )
