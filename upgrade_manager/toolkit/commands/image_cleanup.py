"""`image-cleanup`: removes images that only the previous release needs from this node."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.release.image_lists import SIZE_LIMIT, identities, parse_list
from upgrade_manager.resources.image_list import LIST_KEY, LIST_PATH
from upgrade_manager.toolkit.images.node_images import read_images, remove_image
from upgrade_manager.toolkit.run.errors import BadArchive, BadEnvironment, ProgramTimedOut, StepFailed
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_programs import HostPrograms
    from upgrade_manager.toolkit.images.node_images import NodeImage
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: Consecutive removals that may time out before the command fails, because containerd does not respond.
_MAX_TIMEOUTS = 3
#: Window bits of a gzip stream, for zlib.
_GZIP = 31

_log = structlog.get_logger(__name__)


async def remove(context: ToolkitContext) -> None:
    """Remove each image of the mounted list that the node has and does not need; a failed removal is only logged."""
    references = mounted_list(Path(LIST_PATH))
    images = await read_images(context.programs)
    names = frozenset(key for reference in references for key in identities(reference))
    found = {image.id: image for reference in references if (image := images.find(reference)) is not None}
    removal = _Removal(context.programs)
    for image in found.values():
        reason = images.reason_to_keep(image, names) or await removal.remove(image)
        _log.info("image kept" if reason else "image removed", image=image.name, reason=reason)
        removal.count += not reason
    _log.info("clean-up ended", removed=removal.count, kept=len(found) - removal.count, listed=len(references))


class _Removal:
    """Removes images one by one."""

    def __init__(self, programs: HostPrograms) -> None:
        self._programs = programs
        #: Removals in a row that timed out.
        self._timeouts = 0
        self.count = 0

    async def remove(self, image: NodeImage) -> str:
        """Return why the image was not removed, or an empty text. Raises StepFailed if containerd does not respond."""
        try:
            output = await remove_image(self._programs, image.name)
        except ProgramTimedOut as error:
            self._timeouts += 1
            if self._timeouts >= _MAX_TIMEOUTS:
                raise StepFailed(
                    f"{self._timeouts} removals in a row timed out; check containerd on the node"
                ) from error
            return str(error)
        self._timeouts = 0
        return (output.last_line or f"crictl returned {output.status}") if output.status else ""


def mounted_list(prefix: Path) -> list[str]:
    """Return the references in the chunks `prefix-NN`. Raises BadEnvironment, and BadArchive for an incomplete list."""
    chunks = sorted(prefix.parent.glob(f"{prefix.name}-*"))
    if not chunks:
        raise BadEnvironment(f"no list of images is mounted at {prefix}-00")
    try:
        packed = b"".join((chunk / LIST_KEY).read_bytes() for chunk in chunks)
        stream = zlib.decompressobj(wbits=_GZIP)
        content = stream.decompress(packed, SIZE_LIMIT)
    except (OSError, zlib.error) as error:
        raise BadArchive(f"the mounted list of images is not readable: {error}") from error
    if not stream.eof:
        raise BadArchive(f"the mounted list of images is incomplete, or has more than {SIZE_LIMIT} bytes")
    return parse_list(content)


STEPS = (Step(name="remove-images", timeout=6 * 3600, act=remove),)
