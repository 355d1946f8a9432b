"""What a user asks for: the spec of an UpgradePlan."""

from __future__ import annotations

from pydantic import Field

from upgrade_manager.api.image_reference import ImageReference
from upgrade_manager.api.model import ApiModel, StringList

#: An object's name and `namespace/name` have at most so many characters.
MAX_OBJECT_NAME = 253
MAX_QUALIFIED_NAME = 317
#: A tag may be longer, but the system-upgrade-controller makes a label's value of it.
MAX_IMAGE_TAG = 63
#: The largest cluster that Kubernetes supports.
MAX_NODES = 5000


class ImagePreloadOption(ApiModel):
    """How the new release's container images get onto the nodes before the upgrade."""

    concurrency: int = Field(
        default=0,
        description="How many nodes load images at the same time. Left out or 0 means all nodes at once, a positive "
        "number is cut to the number of nodes, and a negative one leaves this step out: the nodes then fetch their "
        "images while they are upgraded.",
        json_schema_extra={"format": "int32"},
    )


class NodeUpgradeOption(ApiModel):
    """How the nodes are upgraded one after the other."""

    pause_nodes: StringList = Field(
        default_factory=list,
        description="Names of nodes to hold back. When such a node's turn comes it stays in the state UpgradePaused, "
        "neither drained nor restarted, until its name is taken off this list; the nodes after it wait. The list may "
        "be changed at any time and takes effect at once; a node whose upgrade has begun is not stopped by it. A name "
        "that no node has holds nobody back, which a Warning event tells.",
        json_schema_extra={
            "maxItems": MAX_NODES,
            "x-kubernetes-list-type": "set",
            "items": {
                "type": "string",
                "description": "A node's name.",
                "minLength": 1,
                "maxLength": MAX_OBJECT_NAME,
            },
        },
    )


class UpgradePlanSpec(ApiModel):
    """What to upgrade to, and how.

    One of version and image is needed. These two and the field upgrade are fixed once the plan exists; for another
    release, delete the plan and create a new one.
    """

    version: str = Field(
        default="",
        description="Name of the Version object in the namespace harvester-system that describes the release to "
        "upgrade to; its ISO is downloaded. Not read when an image is given. Fixed once the plan exists.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_OBJECT_NAME},
    )
    image: str = Field(
        default="",
        description="An existing VirtualMachineImage that holds the release's ISO, marked by the annotation "
        'harvesterhci.io/os-upgrade-image: "True". A name alone is looked for in the namespace harvester-system; write '
        "namespace/name for one elsewhere. The image is kept when the plan ends. Fixed once the plan exists.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_QUALIFIED_NAME},
    )
    upgrade: str = Field(
        default="",
        description="Tag of the upgrade toolkit's container image, where it is not to be the release's own. Meant for "
        "trying out a corrected toolkit. Fixed once the plan exists.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_IMAGE_TAG},
    )
    force: bool = Field(
        default=False,
        description="Upgrade even if the release does not support the step from the running version: the check of "
        "versions before the images are loaded is left out.",
    )
    image_preload_option: ImagePreloadOption = Field(
        default_factory=ImagePreloadOption,
        description="How the new release's container images get onto the nodes before the upgrade.",
    )
    node_upgrade_option: NodeUpgradeOption = Field(
        default_factory=NodeUpgradeOption,
        description="How the nodes are upgraded one after the other.",
    )
    restore_vm: bool = Field(
        default=False,
        alias="restoreVM",
        description="Start the virtual machines again that had to be shut down because they could not move to another "
        "node, as soon as their node is back. One that cannot be started is told by a Warning event and does not fail "
        "the upgrade.",
    )

    @property
    def image_reference(self) -> ImageReference | None:
        """Where `image` is; None where none is given, and where the text cannot name one."""
        return ImageReference.parse(self.image)
