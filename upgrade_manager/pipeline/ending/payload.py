"""The payload that a failed plan keeps for its next attempt: image, repository and the list of stopped VMs.

cleanup.py keeps it, failure.py names its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext

_GIB = 2**30


def is_kept(ctx: ReconcileContext) -> bool:
    """Return True once the ISO is imported; a new attempt repeats an import that has failed."""
    return PhaseName.ISO_DOWNLOAD.completed in ctx.status.recorded_phases()


async def room(ctx: ReconcileContext) -> str:
    """Return how much room the payload takes, and until when; empty without one, and for an image of the user."""
    if not is_kept(ctx) or ctx.plan.spec.image:
        return ""
    size = await _size(ctx)
    takes = f", {size / _GIB:.1f} GiB in each replica of its volume," if size else ""
    return f"The image of the ISO stays{takes} until this plan is deleted or another one has passed its checks"


async def _size(ctx: ReconcileContext) -> int:
    """Return the bytes of the image; 0 if they cannot be read, which must not hold up the record of the failure."""
    try:
        image = await ctx.client.find(VIRTUAL_MACHINE_IMAGES, ctx.status["isoImageID"], namespace=HARVESTER_SYSTEM)
    except KubeError:
        return 0
    return objects.number(image or {}, "status", "size") or 0
