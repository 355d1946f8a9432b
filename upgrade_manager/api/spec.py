"""The spec of an UpgradePlan."""

from __future__ import annotations

from pydantic import Field

from upgrade_manager.api.holds import HoldPoint
from upgrade_manager.api.migration_failure import OnMigrationFailure
from upgrade_manager.api.model import ApiModel, StringList
from upgrade_manager.api.names import NAME_PATTERN, NAMESPACE_PATTERN

MAX_OBJECT_NAME = 253
#: `namespace/name`.
MAX_QUALIFIED_NAME = 317
#: Shorter than a tag may be, because the system-upgrade-controller uses the tag as a label value.
MAX_IMAGE_TAG = 63
_NAME = f"^{NAME_PATTERN}$"
_QUALIFIED_NAME = f"^(?:{NAMESPACE_PATTERN}/)?{NAME_PATTERN}$"
_TAG = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
#: Largest cluster that Kubernetes supports.
MAX_NODES = 5000


class ImagePreloadOption(ApiModel):
    """Options of the image preload, which loads the release's images onto the nodes before the upgrade."""

    concurrency: int = Field(
        default=0,
        description="Number of nodes that load images at the same time. Unset or 0: all nodes. A positive number is "
        "capped at the number of nodes. A negative number skips the preload, unless it has started; nodes then pull "
        "images during their upgrade.",
        json_schema_extra={"format": "int32"},
    )


class NodeUpgradeOption(ApiModel):
    """Options of the node upgrade, which upgrades one node after the other."""

    pause_nodes: StringList = Field(
        default_factory=list,
        description="Names of nodes to pause before their upgrade. A listed node stays in state UpgradePaused, "
        "neither drained nor rebooted, until it is removed from the list; later nodes wait. The list may be changed at "
        "any time. Nodes whose upgrade has started are not paused. Names that match no node are ignored "
        "and reported in a Warning event.",
        json_schema_extra={
            "maxItems": MAX_NODES,
            "x-kubernetes-list-type": "set",
            "items": {
                "type": "string",
                "description": "Name of a node.",
                "minLength": 1,
                "maxLength": MAX_OBJECT_NAME,
                "pattern": _NAME,
            },
        },
    )
    on_migration_failure: str = Field(
        default="",
        description="What happens to a virtual machine that could be migrated before its node is drained, and whose "
        "migration fails. Wait: the upgrade waits until you migrate or stop it, and names it. Stop: the upgrade stops "
        "it. Unset: Wait with the manager's own toolkit; Stop with Harvester's, which cannot wait and refuses Wait. "
        "Annotation management.harvesterhci.io/on-migration-failure of a VirtualMachine decides for that one. The "
        "option may be changed at any time, and counts within seconds.",
        json_schema_extra={"enum": list(map(str, OnMigrationFailure))},
    )
    pause_before: StringList = Field(
        default_factory=list,
        description="Steps before which each node holds until you let it go on: upgrade-manager continue PLAN NODE. "
        "Drain: before its first Job. Reboot: after its operating system is written and checked; with Harvester's "
        "toolkit before the Job that does both. A step that has begun is not held.",
        json_schema_extra={
            "maxItems": len(HoldPoint),
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "description": "Name of a step.", "enum": list(map(str, HoldPoint))},
        },
    )
    pause_after: int | None = Field(
        default=None,
        description="Number of upgraded nodes after which the upgrade pauses itself, at most all nodes: then it pauses "
        "before it removes images. Raise or remove it to go on.",
        json_schema_extra={"format": "int32", "minimum": 1},
    )


class UpgradePlanSpec(ApiModel):
    """The release to upgrade to, and options. One of version and image is required."""

    version: str = Field(
        default="",
        description="Name of the Version in namespace harvester-system to upgrade to. Its ISO is downloaded. Ignored "
        "when image is set. Immutable.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_OBJECT_NAME, "pattern": _NAME},
    )
    image: str = Field(
        default="",
        description="VirtualMachineImage in namespace harvester-system that contains the release's ISO, as NAME or "
        'harvester-system/NAME, imported with annotation harvesterhci.io/os-upgrade-image: "True". It is kept after '
        "the upgrade. Immutable.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_QUALIFIED_NAME, "pattern": _QUALIFIED_NAME},
    )
    upgrade: str = Field(
        default="",
        description="Tag of the toolkit image, which the upgrade's Jobs run. Unset: the manager's --toolkit-tag; else "
        "version, for Harvester's toolkit, or the manager's version, for the manager's own. With image and without "
        "version, Harvester's toolkit gets the manager's version, which is a guess: set the release's name. It has no "
        "effect on an image that a digest names. Immutable.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_IMAGE_TAG, "pattern": _TAG},
    )
    force: bool = Field(
        default=False,
        description="Skip the check that the release supports an upgrade from the running version, and go on in spite "
        "of what the survey of the nodes finds, which status.survey records.",
    )
    attempt: int | None = Field(
        default=None,
        description="Number of the attempt; absent means 1. After a failure it may be raised by one: the plan goes on "
        "with the phase and the node that failed, and repeats nothing that is done.",
        json_schema_extra={"format": "int32", "minimum": 1},
    )
    paused: bool = Field(
        default=False,
        description="Hold the upgrade before the next phase or the next node's drain. What has begun is finished "
        "first. Condition Paused says where it holds. May be changed at any time.",
    )
    image_preload_option: ImagePreloadOption = Field(
        default_factory=ImagePreloadOption,
        description="Options of the image preload, which loads the release's images onto the nodes before the upgrade.",
    )
    node_upgrade_option: NodeUpgradeOption = Field(
        default_factory=NodeUpgradeOption,
        description="Options of the node upgrade, which upgrades one node after the other.",
    )
    restore_vm: bool = Field(
        default=False,
        alias="restoreVM",
        description="Restart the virtual machines that had to be shut down because they could not be migrated, as soon "
        "as their node is back. A failure is reported in a Warning event and does not fail the upgrade.",
    )
