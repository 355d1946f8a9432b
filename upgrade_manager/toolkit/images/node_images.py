"""The images of a node as the kubelet sees them, and their removal.

The command image_cleanup removes the images; containerd.py lists the images by the program ctr.

containerd removes an image even while a container uses it, and `crictl rmi` removes an image under all of its names.
This module checks containers and names, because a container that starts again may find no registry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.facts.old_images import CRICTL, CRICTL_CONFIG
from upgrade_manager.release.image_lists import identities
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.toolkit.host.host_programs import HostPrograms, Output

_ENVIRONMENT = {"CRI_CONFIG_FILE": CRICTL_CONFIG}
#: Seconds.
_LIST_TIMEOUT = 120.0
_REMOVE_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeImage:
    """One image, under all of its names."""

    id: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]
    #: True for an image that containerd itself needs, such as the image of Pod sandboxes.
    pinned: bool

    @property
    def name(self) -> str:
        """A name by which crictl finds it."""
        return next(iter((*self.tags, *self.digests)), self.id)


class NodeImages:
    """All images of a node, read once."""

    def __init__(self, images: Iterable[NodeImage], used: Iterable[str]) -> None:
        self._by_name = {
            key: image for image in images for name in (*image.tags, *image.digests) for key in identities(name)
        }
        #: Ids and names of images in containers, including stopped containers.
        self._used = frozenset(used)

    def find(self, reference: str) -> NodeImage | None:
        """Return the image that has this name."""
        return next((self._by_name[key] for key in identities(reference) if key in self._by_name), None)

    def reason_to_keep(self, image: NodeImage, removed: frozenset[str]) -> str:
        """Return why the image must stay if the names with these identities are removed; empty without a reason."""
        if image.pinned:
            return "pinned"
        if not self._used.isdisjoint((image.id, *image.tags, *image.digests)):
            return "used by a container"
        kept = [tag for tag in image.tags if removed.isdisjoint(identities(tag))]
        return f"also named {kept[0]}" if kept else ""


async def read_images(programs: HostPrograms) -> NodeImages:
    """List the images and containers by crictl. Raises StepFailed."""
    images = await _list(programs, "images", "images")
    containers = await _list(programs, "ps", "containers", "--all")
    used = [text for one in containers for text in _container_images(one)]
    return NodeImages([_image(one) for one in images], used)


async def remove_image(programs: HostPrograms, reference: str) -> Output:
    """Remove an image. Raises ProgramTimedOut."""
    call = Call(argv=(CRICTL, "rmi", reference), timeout=_REMOVE_TIMEOUT, environment=_ENVIRONMENT)
    return await programs.run(call)


async def _list(programs: HostPrograms, command: str, key: str, *options: str) -> list[dict[str, Any]]:
    call = Call(argv=(CRICTL, command, *options, "--output", "json"), timeout=_LIST_TIMEOUT, environment=_ENVIRONMENT)
    output = await run_program(programs, call)
    try:
        found = json.loads(output.stdout)[key]
    except (ValueError, KeyError, TypeError) as error:
        raise StepFailed(f"the output of crictl {command} is not a list of {key}") from error
    return [one for one in found or [] if isinstance(one, dict)]


def _image(content: dict[str, Any]) -> NodeImage:
    return NodeImage(
        id=str(content.get("id", "")),
        tags=tuple(map(str, content.get("repoTags") or ())),
        digests=tuple(map(str, content.get("repoDigests") or ())),
        pinned=content.get("pinned") is True,
    )


def _container_images(content: dict[str, Any]) -> list[str]:
    image = content.get("image")
    named = image.get("image") if isinstance(image, dict) else None
    return [str(text) for text in (named, content.get("imageRef"), content.get("imageId")) if text]
