"""The status of an UpgradePlan: its models, and updates of its raw form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.advised import MAX_ADVISED, AdvisedStatus
from upgrade_manager.api.attempts import MAX_ATTEMPTS
from upgrade_manager.api.blocker_status import BlockerStatus, RemedyStatus  # noqa: TC001  # pydantic reads them
from upgrade_manager.api.blockers import MAX_BLOCKERS
from upgrade_manager.api.condition_model import Condition  # noqa: TC001  # pydantic reads it
from upgrade_manager.api.display import DisplayStatus
from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.names import MAX_NAME
from upgrade_manager.api.node_status import NodeUpgradeStatus  # noqa: TC001  # pydantic reads it
from upgrade_manager.api.past_blockers import MAX_PAST, PastBlockerStatus
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED
from upgrade_manager.api.survey_status import SurveyStatus
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from datetime import datetime


class PhaseTransitionTimestamp(ApiModel, json_schema_extra={"required": ["phase", "phaseTransitionTimestamp"]}):
    """The time at which the plan reached a phase."""

    phase: str = Field(
        default="",
        description="Value of currentPhase.",
        json_schema_extra={"minLength": 1, "maxLength": 64},
    )
    phase_transition_timestamp: str = Field(
        default="",
        description="Time at which currentPhase took that value, in UTC.",
        json_schema_extra={"format": "date-time"},
    )


class AttemptStatus(ApiModel, json_schema_extra={"required": ["attempt", "begin"]}):
    """An attempt: one that has failed, or the present one after a failure."""

    attempt: int = Field(default=0, description="Number of the attempt.", json_schema_extra={"format": "int32"})
    begin: str = Field(
        default="", description="Time at which it began, in UTC.", json_schema_extra={"format": "date-time"}
    )
    end: str = Field(
        default="",
        description="Time at which it failed, in UTC; absent for the present attempt, and for one that succeeded.",
        json_schema_extra={"format": "date-time"},
    )
    phase: str = Field(default="", description="Phase in which it failed, such as NodeUpgrade.")
    node: str = Field(default="", description="Node on which it failed; absent if that was not one node.")
    cause: str = Field(default="", description="Cause of the failure, in one sentence.")


class ReleaseMetadata(ApiModel):
    """Versions of the new release's components, read from its ISO."""

    harvester: str = Field(default="", description="Target version of Harvester.")
    harvester_chart: str = Field(default="", description="Version of the Harvester Helm chart.")
    os: str = Field(
        default="", description="Name of the OS image, as in a Node's status.nodeInfo.osImage after the reboot."
    )
    kubernetes: str = Field(default="", description="Target version of Kubernetes (RKE2).")
    rancher: str = Field(default="", description="Version of Rancher.")
    monitoring_chart: str = Field(default="", description="Version of the monitoring chart.")
    min_upgradable_version: str = Field(
        default="", description="Oldest version of Harvester that can be upgraded to this release; empty for any."
    )


class ToolkitImageStatus(ApiModel, json_schema_extra={"required": ["repository", "tag", "kind"]}):
    """The toolkit image of the upgrade, decided once; later changes of annotations and flags have no effect."""

    repository: str = Field(default="", description="Registry and name of the image.")
    tag: str = Field(default="", description="Tag of the image. It has no effect where a digest is set.")
    digest: str = Field(
        default="",
        description="Digest of the image, sha256:DIGEST. Absent for an image that only a tag names, which a push to "
        "the registry can move.",
    )
    kind: str = Field(
        default="",
        description=f"Which toolkit the image holds: {ToolkitKind.OWN} (that of this manager) or "
        f"{ToolkitKind.HARVESTER} (Harvester's).",
    )
    guessed: bool = Field(
        default=False,
        description="True if the tag is the manager's version, because nothing names the release; absent otherwise.",
    )
    annotated_image: str = Field(
        default="",
        description="Value of the plan's annotation upgrade-toolkit-image at the decision; absent without it.",
    )
    annotated_kind: str = Field(
        default="",
        description="Value of the plan's annotation upgrade-toolkit-kind at the decision; absent without it.",
    )


class ChecksumsStatus(ApiModel):
    """Checks against checksums: of the ISO at its import, and of its files when Jobs download them."""

    iso_checked: bool = Field(
        default=False,
        description="True if the VirtualMachineImage has the SHA-512 of the ISO, which its import is checked against. "
        "If false, nothing shows that the ISO is the release's.",
    )
    checked: bool = Field(
        default=False,
        description="True if the Jobs check the files that they download from the upgrade repository, which is plain "
        "HTTP. Absent until that is known.",
    )
    message: str = Field(default="", description="Why checked is false; absent otherwise.")
    files: dict[str, str] = Field(
        default_factory=dict,
        description="SHA-256 in hexadecimal of the ISO's files, by their path on the ISO, as a Job has computed them "
        "from the mounted ISO.",
        json_schema_extra={"additionalProperties": {"type": "string", "description": "SHA-256 of the file."}},
    )


class VersionSnapshot(ApiModel):
    """Snapshot of the Version when the plan started; later changes to the Version have no effect."""

    iso_url: str = Field(default="", alias="isoURL", description="URL of the ISO.")
    iso_checksum: str = Field(
        default="", description="SHA-512 checksum of the ISO in hexadecimal, if the Version has one."
    )


class LedgerEntry(ApiModel, json_schema_extra={"required": ["id", "kind", "object", "since"]}):
    """Something that the upgrade has changed elsewhere, has stopped or owes."""

    id: str = Field(
        default="",
        description="Identity of the entry.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_NAME},
    )
    kind: str = Field(default="", description=f"What the entry stands for: {', '.join(LedgerKind)}.")
    object: str = Field(default="", description="Kind and name of the object, such as Setting NAMESPACE/NAME.")
    node: str = Field(default="", description="Node for whose upgrade it happened; absent if that is not one node.")
    field: str = Field(default="", description="Path of the field in the object; absent for a whole object.")
    original: Any = Field(
        default=None,
        description="Value before the upgrade; absent if the field was not set, or if no record of it exists.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    applied: Any = Field(
        default=None,
        description="Value that the upgrade sets. The original is given back only in place of this value.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    attempt: int | None = Field(
        default=None,
        description="Attempt of the plan that recorded the entry; absent for the first one.",
        json_schema_extra={"format": "int32"},
    )
    since: str = Field(
        default="",
        description="Time at which the entry was recorded, in UTC.",
        json_schema_extra={"format": "date-time"},
    )


class OriginalValue(ApiModel, json_schema_extra={"required": ["object", "field"]}):
    """An entry of the ledger as version 0.1 recorded it."""

    object: str = Field(default="", description="Kind and name of the object, such as Setting NAMESPACE/NAME.")
    field: str = Field(default="", description="Path of the field in the object.")
    original: Any = Field(
        default=None,
        description="Value before the upgrade; absent if the field was not set.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    applied: Any = Field(
        default=None,
        description="Value that the upgrade sets. The original is given back only in place of this value.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )


class UpgradePlanStatus(ApiModel):
    """Progress of the upgrade. Written by the upgrade manager only."""

    advised: list[AdvisedStatus] = Field(
        default_factory=list,
        description=f"Changes that the remedies of blockers have advised, with what gives them back; at most "
        f"{MAX_ADVISED}. Absent while there is nothing.",
        json_schema_extra={"maxItems": MAX_ADVISED, "x-kubernetes-list-type": "atomic"},
    )
    attempt: int | None = Field(
        default=None,
        description="Number of the attempt that the manager runs, or has run; absent for the first one.",
        json_schema_extra={"format": "int32"},
    )
    attempts: list[AttemptStatus] = Field(
        default_factory=list,
        description=f"The attempts of a plan that has failed, with their causes; at most {MAX_ATTEMPTS}. Absent before "
        "a failure.",
        json_schema_extra={"maxItems": MAX_ATTEMPTS, "x-kubernetes-list-type": "atomic"},
    )
    blockers: list[BlockerStatus] = Field(
        default_factory=list,
        description=f"What the upgrade waits for longer than it should; at most {MAX_BLOCKERS}. Absent while there is "
        "nothing.",
    )
    cleanup_pending: bool = Field(
        default=False,
        description="True from the end of the upgrade until its objects are removed; absent otherwise.",
    )
    checksums: ChecksumsStatus = Field(
        default_factory=ChecksumsStatus,
        description="What of the ISO is checked against checksums.",
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        description="Reconciling: the plan has not ended, or its objects are being removed; absent otherwise. "
        "Available: the plan can be executed. Progressing: the upgrade is running; False after its end, and for a plan "
        "that another one blocks. Degraded: an error is being retried. Ready: the cluster is upgraded; Unknown until "
        "the end. Stalled: something holds the upgrade up, or it has failed; absent otherwise. Paused: a user has "
        "paused the upgrade; absent otherwise. VMRecoveryOff: it has been paused for an hour, during which Harvester "
        "does not recover the VMs of a node that fails; absent otherwise. ImagesNotRemoved: the upgrade succeeded, and "
        "nodes keep images of the previous release; absent otherwise.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    created_by: str = Field(
        default="",
        description="User who created the plan, as admission recorded it in the annotation created-by when the plan "
        "was accepted. Absent if it was not recorded.",
    )
    current_phase: str = Field(
        default="",
        description=f"Current phase: {', '.join(PHASE_VALUES)}; at the end {SUCCEEDED} or {FAILED}.",
    )
    display: DisplayStatus = Field(
        default_factory=DisplayStatus, description="The state of the plan in one word, with its explanation."
    )
    estimated_completion: str = Field(
        default="",
        description="Estimated end of the upgrade, in UTC, from the nodes that it has upgraded so far. Absent where "
        "that says too little: before the first one, while nodes are paused, and for the last steps.",
        json_schema_extra={"format": "date-time"},
    )
    holds: str = Field(
        default="",
        description="Where the paused upgrade holds, such as before phase ClusterUpgrade; absent otherwise, and while "
        "something of it still runs.",
    )
    past_blockers: list[PastBlockerStatus] = Field(
        default_factory=list,
        description=f"What held the upgrade up, in the order of its end; at most {MAX_PAST}, the longest ones. Absent "
        "while there is nothing.",
        json_schema_extra={"maxItems": MAX_PAST, "x-kubernetes-list-type": "atomic"},
    )
    paused_by: str = Field(default="", description="User who paused the upgrade; absent while it is not paused.")
    paused_since: str = Field(
        default="",
        description="Time since which the upgrade is paused, in UTC, also while the cause changes; absent otherwise.",
        json_schema_extra={"format": "date-time"},
    )
    pauses: int | None = Field(
        default=None,
        description="Number of pauses, one for each cause; absent before the first one.",
        json_schema_extra={"format": "int32"},
    )
    queued_since: str = Field(
        default="",
        description="Time since which it waits for what holds the cluster, in UTC; after 24 hours it is refused.",
        json_schema_extra={"format": "date-time"},
    )
    phase_transition_timestamps: list[PhaseTransitionTimestamp] = Field(
        default_factory=list,
        description="Time at which each phase was reached, in order. Append-only within an attempt; a new attempt "
        "removes Failed.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["phase"]},
    )
    iso_image_id: str = Field(
        default="",
        alias="isoImageID",
        description="VirtualMachineImage that contains the ISO; NAMESPACE/NAME if it is not in harvester-system.",
    )
    ledger: list[LedgerEntry] = Field(
        default_factory=list,
        description="What the upgrade has changed elsewhere, has stopped or owes. An entry is recorded before the "
        "change, and removed once it is settled.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
    )
    next_steps: list[RemedyStatus] = Field(
        default_factory=list,
        description="The steps after the end, in order. After a failure: what to do, what not to do, and what is left; "
        "absent after another plan has taken over. After a success: what to give back that remedies advised to "
        "change. Absent while there is nothing.",
    )
    node_upgrade_statuses: dict[str, NodeUpgradeStatus] = Field(
        default_factory=dict,
        description="Upgrade state of each node, by node name.",
    )
    observed_generation: int | None = Field(
        default=None,
        description="The metadata.generation that the manager has seen; with a smaller number, the status is that of "
        "an earlier spec.",
        json_schema_extra={"format": "int64", "minimum": 0},
    )
    originals: list[OriginalValue] = Field(
        default_factory=list,
        description="The ledger of a plan that version 0.1 began, which is moved to ledger.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["object", "field"]},
    )
    previous_version: str = Field(default="", description="Harvester version before the upgrade.")
    provision_generation: int | None = Field(
        default=None,
        description="The provisionGeneration that this plan set on the Rancher cluster to start the node upgrade. "
        "Absent before, and on single-node clusters.",
        json_schema_extra={"format": "int64"},
    )
    release_metadata: ReleaseMetadata = Field(
        default_factory=ReleaseMetadata, description="Versions of the new release's components, read from its ISO."
    )
    same_kubernetes: list[str] = Field(
        default_factory=list,
        description="Nodes that may have run the release's Kubernetes before the node upgrade began; absent if "
        "unknown. Rancher has to drain all others.",
        json_schema_extra={"x-kubernetes-list-type": "set", "items": {"type": "string", "description": "Node name."}},
    )
    stale_hooks: list[str] = Field(
        default_factory=list,
        description="Machine-plan Secrets with a drain that an earlier upgrade had begun when this plan started its "
        "node upgrade.",
        json_schema_extra={
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "description": "Name of a Secret in fleet-local."},
        },
    )
    single_node: str = Field(default="", description="Name of the node of a single-node cluster; absent otherwise.")
    survey: SurveyStatus = Field(
        default_factory=SurveyStatus,
        description="What the nodes report in ImagePreload, with the toolkit of this manager. Findings fail the plan "
        "there, unless spec.force is true. Absent with Harvester's toolkit.",
    )
    toolkit_image: ToolkitImageStatus = Field(
        default_factory=ToolkitImageStatus,
        description="The toolkit image of all Jobs, Plans and of the upgrade repository. Decided in Initialize, before "
        "anything is created, and unchanged until the upgrade ends.",
    )
    version: VersionSnapshot = Field(
        default_factory=VersionSnapshot,
        description="Snapshot of the Version when the plan started. Absent if spec.image is set.",
    )


def record_phase(timestamps: object, value: str, now: datetime) -> list[Any]:
    """Append `value` to the raw list of timestamps, unless it is recorded already."""
    entries = list(timestamps) if isinstance(timestamps, list) else []
    if any(isinstance(entry, dict) and entry.get("phase") == value for entry in entries):
        return entries
    return [*entries, {"phase": value, "phaseTransitionTimestamp": format_time(now)}]
