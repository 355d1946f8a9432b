"""What the manager reports: the status of an UpgradePlan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from upgrade_manager.api.conditions import Condition  # noqa: TC001  # pydantic reads it
from upgrade_manager.api.image_reference import ImageReference
from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.node_states import NodeState, merge
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED
from upgrade_manager.api.timestamps import format_time, parse_time

if TYPE_CHECKING:
    from datetime import datetime


def _objects(value: Any) -> Any:
    return [item for item in value if isinstance(item, dict | ApiModel)] if isinstance(value, list) else value


class PhaseTransitionTimestamp(ApiModel, json_schema_extra={"required": ["phase", "phaseTransitionTimestamp"]}):
    """When the plan reached a phase value."""

    phase: str = Field(
        default="",
        description="The value that currentPhase took.",
        json_schema_extra={"minLength": 1, "maxLength": 64},
    )
    phase_transition_timestamp: str = Field(
        default="",
        description="When currentPhase took that value, in UTC and whole seconds.",
        json_schema_extra={"format": "date-time"},
    )


class NodeUpgradeStatus(ApiModel):
    """How far one node is."""

    state: str = Field(
        default="",
        description="The step that the node is at, or that step's result. A node only goes forward through them: "
        f"{', '.join(NodeState)}.",
    )
    reason: str = Field(
        default="",
        description="One word for the cause of the state, made for programs.",
    )
    message: str = Field(
        default="",
        description="What is going on with the node, for people; the cause, where something failed or is retried.",
    )


class ReleaseMetadata(ApiModel):
    """What the new release consists of, read from its ISO."""

    harvester: str = Field(default="", description="Version of Harvester that is upgraded to.")
    harvester_chart: str = Field(default="", description="Version of Harvester's Helm chart.")
    os: str = Field(
        default="", description="Name of the operating system's image, as nodes report it after their restart."
    )
    kubernetes: str = Field(default="", description="Version of Kubernetes (RKE2) that the nodes get.")
    rancher: str = Field(default="", description="Version of Rancher.")
    monitoring_chart: str = Field(default="", description="Version of the monitoring chart.")
    min_upgradable_version: str = Field(
        default="", description="Oldest version of Harvester that this release can be reached from; empty for any."
    )


class VersionSnapshot(ApiModel):
    """The Version object as it was when the plan began; later changes to it have no effect on the plan."""

    iso_url: str = Field(default="", alias="isoURL", description="Where the ISO is downloaded from.")
    iso_checksum: str = Field(default="", description="SHA-512 of the ISO in hex digits, where one is given.")


class UpgradePlanStatus(ApiModel):
    """How far the plan is; written by the upgrade manager only."""

    conditions: Annotated[list[Condition], BeforeValidator(_objects)] = Field(
        default_factory=list,
        description="Available: the plan may be carried out. Progressing: it is being carried out; False means that it "
        "has ended. Degraded: a step has raised an error, which is retried.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    current_phase: str = Field(
        default="",
        description=f"How far the plan is: {', '.join(PHASE_VALUES)}; at the end {SUCCEEDED} or {FAILED}.",
    )
    phase_transition_timestamps: Annotated[list[PhaseTransitionTimestamp], BeforeValidator(_objects)] = Field(
        default_factory=list,
        description="When each phase value was reached, in order and each one once. Nothing is ever taken off it.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["phase"]},
    )
    iso_image_id: str = Field(
        default="",
        alias="isoImageID",
        description="The VirtualMachineImage that holds the ISO, made by the manager or named in the spec; with its "
        "namespace in front where that is not harvester-system.",
    )
    node_upgrade_statuses: dict[str, NodeUpgradeStatus] = Field(
        default_factory=dict,
        description="How far each node is, by the node's name.",
    )
    previous_version: str = Field(default="", description="The version of Harvester that ran before the upgrade.")
    provision_generation: int | None = Field(
        default=None,
        description="The provisionGeneration that this plan gave to Rancher's cluster object to start the upgrade of "
        "the nodes. Absent before that, and on a cluster of one node.",
        json_schema_extra={"format": "int64"},
    )
    release_metadata: ReleaseMetadata = Field(
        default_factory=ReleaseMetadata, description="What the new release consists of, read from its ISO."
    )
    single_node: str = Field(
        default="", description="The node's name where the cluster has only one; absent on larger clusters."
    )
    version: VersionSnapshot = Field(
        default_factory=VersionSnapshot,
        description="The Version object as it was when the plan began. Absent where the spec names an image.",
    )

    @property
    def iso_image(self) -> ImageReference | None:
        """Where the image that holds the ISO is; None as long as there is none."""
        return ImageReference.parse(self.iso_image_id)

    def node_state(self, node: str) -> str:
        """The node's state as written, also one that only a newer version knows; empty where it has none."""
        return self.node_upgrade_statuses[node].state if node in self.node_upgrade_statuses else ""

    def reached_at(self, phase_value: str) -> datetime | None:
        """When the plan reached that phase value; None where it did not, or the time is unreadable."""
        for entry in self.phase_transition_timestamps:
            if entry.phase == phase_value:
                return parse_time(entry.phase_transition_timestamp)
        return None


def record_phase(timestamps: object, value: str, now: datetime) -> list[Any]:
    """The raw list of timestamps with `value` at its end; as it was where the value is already in it."""
    entries = list(timestamps) if isinstance(timestamps, list) else []
    if any(isinstance(entry, dict) and entry.get("phase") == value for entry in entries):
        return entries
    return [*entries, {"phase": value, "phaseTransitionTimestamp": format_time(now)}]


def node_entry(old: object, state: NodeState, *, reason: str = "", message: str = "") -> dict[str, Any]:
    """The raw entry of a node after `state` was observed on it, merged forward-only into what stands there.

    Reason and message belong to their state: an observation that loses against the state that stands changes nothing,
    one that confirms it replaces them, and empty ones are left out. Unknown fields survive.
    """
    entry = dict(old) if isinstance(old, dict) else {}
    standing = entry.get("state")
    merged = merge(standing if isinstance(standing, str) else None, state)
    if merged != state:
        return entry
    entry["state"] = merged
    for key, text in (("reason", reason), ("message", message)):
        if text:
            entry[key] = text
        else:
            entry.pop(key, None)
    return entry
