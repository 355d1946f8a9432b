"""The state of the ISO's import into a VirtualMachineImage, and the image's volume that several Pods mount.

The phase ISODownload (pipeline/phases/iso_download.py) reports the import, the finder (blockers/imports.py) reports an
import without progress, and the webhook (webhook/checks/image.py) refuses images that several Pods cannot mount.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    ANNOTATION_OS_UPGRADE_IMAGE,
    HARVESTER_SYSTEM,
    IMAGE_STORAGE_CLASS,
    OS_UPGRADE_IMAGE_VALUE,
)
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Access modes of a volume that Pods on several nodes can mount.
SHARED_MODES = frozenset({"ReadOnlyMany", "ReadWriteMany"})
#: The annotation with which Harvester creates such a volume for an image.
SHARED_ANNOTATION = f'{ANNOTATION_OS_UPGRADE_IMAGE}: "{OS_UPGRADE_IMAGE_VALUE}"'
#: The remedy for an image that several Pods cannot mount: Harvester reads the annotation only at the import.
_SETTINGS = f"with backend cdi, storage class {IMAGE_STORAGE_CLASS} and annotation {SHARED_ANNOTATION}"
IMPORT_AGAIN = f"Import the ISO again {_SETTINGS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportObstacle:
    """The last failure of an import."""

    #: A clause that follows the image's name in messages.
    why: str
    #: The remedies; empty while Harvester tries again, or if they depend on the image's source.
    ways_out: tuple[Remedy, ...] = ()
    #: True if Harvester does not try again.
    is_final: bool = False


def named(image: str) -> str:
    """Return an image of the upgrade in messages."""
    return f"VirtualMachineImage {HARVESTER_SYSTEM}/{image}"


def missing(image: str) -> ImportObstacle:
    """Return the obstacle of a plan whose image does not exist: only a user can import that image."""
    other = f"kubectl get {VIRTUAL_MACHINE_IMAGES.name} -n {HARVESTER_SYSTEM}"
    ways_out = (
        Remedy(f"Import the ISO as image {image} {_SETTINGS}"),
        Remedy("Or create a plan for another image", command=other),
    )
    return ImportObstacle(why="does not exist", ways_out=ways_out)


def import_obstacle(image: Object) -> ImportObstacle | None:
    """Return the last failure of the import; None for an import that has succeeded or has no failure."""
    imported, limit = (objects.condition(image, type_) for type_ in ("Imported", "RetryLimitExceeded"))
    if objects.text(imported, "status") == "True":
        return None
    failure = condition_words(limit)
    if objects.text(limit, "status") == "True":
        return ImportObstacle(why=f"import failed: {failure or 'reason unknown'}", is_final=True)
    if objects.text(imported, "status") == "False":
        # Harvester retries downloads alone; an upload is a request of the user's browser.
        why = f"upload failed ({condition_words(imported) or 'reason unknown'})"
        return ImportObstacle(why=why, ways_out=(Remedy("Upload the image again"),), is_final=True)
    message = objects.excerpt(limit, "message")
    if message:
        return ImportObstacle(why=f"the last attempt failed: {message}")
    return ImportObstacle(why="the last attempt failed") if objects.number(image, "status", "failed") else None


def has_failed_upload(image: Object) -> bool:
    """Return True for an image whose upload has failed, which only its user repeats."""
    obstacle = import_obstacle(image)
    return obstacle is not None and bool(obstacle.ways_out)


def unmountable(claim: Object) -> str:
    """Return why Pods on several nodes cannot mount the image's PersistentVolumeClaim; empty if the Pods can.

    An empty `claim` does not exist.
    """
    if not claim:
        return "it does not exist"
    modes, mode = objects.items(claim, "spec", "accessModes"), objects.text(claim, "spec", "volumeMode")
    if not SHARED_MODES.isdisjoint(map(str, modes)) and mode != "Block":
        return ""
    return f"it is {' '.join(map(str, modes))} {mode}".rstrip()
