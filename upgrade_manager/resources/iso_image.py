"""The VirtualMachineImage of the release's ISO.

The phase ISODownload (pipeline/phases/iso_download.py) creates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ANNOTATION_OS_UPGRADE_IMAGE,
    HARVESTER_SYSTEM,
    IMAGE_STORAGE_CLASS,
    OS_UPGRADE_IMAGE_VALUE,
    Component,
)
from upgrade_manager.api.names import component_name, image_display_name
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner

#: Retries before the image controller gives up.
DOWNLOAD_RETRIES = 3


def iso_image(owner: Owner, *, version: str, url: str, checksum: str) -> dict[str, Any]:
    """Build the VirtualMachineImage that downloads the ISO."""
    image = owner.manifest(
        VIRTUAL_MACHINE_IMAGES, component_name(owner.name, Component.ISO), Component.ISO, namespace=HARVESTER_SYSTEM
    )
    image["metadata"]["annotations"] = {ANNOTATION_OS_UPGRADE_IMAGE: OS_UPGRADE_IMAGE_VALUE}
    image["spec"] = {
        "backend": "cdi",
        "displayName": image_display_name(owner.name, version),
        "sourceType": "download",
        "url": url,
        "checksum": checksum,
        "retry": DOWNLOAD_RETRIES,
        # Its volumes can be mounted by several Pods.
        "targetStorageClassName": IMAGE_STORAGE_CLASS,
    }
    return image
