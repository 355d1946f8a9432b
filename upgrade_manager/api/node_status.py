"""The status of a node in `status.nodeUpgradeStatuses`; status.py has the status of the plan."""

from __future__ import annotations

from pydantic import Field

from upgrade_manager.api.holds import HoldPoint
from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.node_states import NodeState


class DrainStatus(ApiModel):
    """Rancher's requests to drain one node, of which each has a number."""

    seen: int = Field(default=0, description="Number of the latest pre-drain hook that was seen.")
    acknowledged: int = Field(
        default=0, description="Number of hooks that were acknowledged, by the manager or by others, or withdrawn."
    )
    generation: int = Field(default=0, description="The provisionGeneration of Rancher's cluster at that hook.")
    secret_version: str = Field(
        default="",
        description="The resourceVersion of the machine-plan Secret before the manager's latest acknowledgement.",
    )
    rebooted: int = Field(default=0, description="Number of the request whose post-drain Job is complete.")
    uncordoned: int = Field(
        default=0, description="Number of the request whose node was uncordoned after its drain, and is drained again."
    )


class NodeUpgradeStatus(ApiModel):
    """Upgrade state of one node."""

    state: str = Field(
        default="",
        description=f"State of the node. Nodes move forward only: {', '.join(NodeState)}.",
    )
    since: str = Field(
        default="",
        description="Time at which the node reached the state, in UTC; absent if version 0.1 recorded it.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str = Field(
        default="",
        description="Machine-readable reason for the state.",
    )
    message: str = Field(
        default="",
        description="Human-readable details: progress, or the cause of a failure or retry.",
    )
    drain: DrainStatus = Field(default_factory=DrainStatus, description="Rancher's requests to drain the node.")
    holds: str = Field(default="", description=f"Step before which it holds: {', '.join(HoldPoint)}; else absent.")
    continued: list[str] = Field(
        default_factory=list,
        description="Steps before which users have let the node go on.",
        json_schema_extra={"items": {"type": "string", "description": "Step."}},
    )
