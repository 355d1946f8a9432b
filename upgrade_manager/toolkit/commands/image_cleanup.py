"""`image-cleanup`: removes images that only the previous release needs from this node."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.pipeline.image_lists import parse_list
from upgrade_manager.resources.image_list import LIST_KEY, LIST_PATH
from upgrade_manager.toolkit.errors import BadArchive
from upgrade_manager.toolkit.images import Images
from upgrade_manager.toolkit.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.context import ToolkitContext

_log = structlog.get_logger(__name__)


async def remove(context: ToolkitContext) -> None:
    """Remove each image of the mounted list; one that a container uses, or that is absent, is skipped."""
    images = Images(context.programs)
    for reference in mounted_list(Path(LIST_PATH)):
        output = await images.remove(reference)
        if output.status == 0:
            _log.info("image removed", image=reference)
        else:
            _log.info("image kept", image=reference, reason=output.last_line)


def mounted_list(prefix: Path) -> list[str]:
    """Return the references in the chunks below `prefix-NN`. Raises BadArchive for an incomplete list."""
    chunks = sorted(prefix.parent.glob(f"{prefix.name}-*"))
    try:
        packed = b"".join((chunk / LIST_KEY).read_bytes() for chunk in chunks)
        return parse_list(gzip.decompress(packed)) if packed else []
    except (OSError, EOFError) as error:
        raise BadArchive(f"the mounted list of images is not readable: {error}") from error


STEPS = (Step(name="remove-images", timeout=6 * 3600, act=remove),)
