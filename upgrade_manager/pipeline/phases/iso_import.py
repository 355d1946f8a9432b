"""The VirtualMachineImage that imports the ISO, from its creation to the last phase that reads the repository.

iso_download.py creates it and follows the import; repository.py ensures it in later phases, whose Pods mount its
volume. blockers/repository_outage.py finds the Pods that wait for the volume of an image that was created again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.blockers.wait import ImageWait
from upgrade_manager.facts.image_import import missing, named
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline.ending import repository_handover
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.resources.iso_image import iso_image

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext


async def create(ctx: ReconcileContext, name: str) -> Waiting:
    """Create the image from the recorded Version; return the wait for its import."""
    source = ctx.status["version"]
    url, checksum = source["isoURL"], source.get("isoChecksum", "")
    manifest = iso_image(ctx.owner, version=ctx.plan.spec.version, url=url, checksum=checksum)
    waiting = await repository_handover.ensure(ctx, VIRTUAL_MACHINE_IMAGES, manifest)
    return waiting or Waiting(message=f"{named(name)}: importing, 0 %", waits=(_new_wait(ctx, name),))


async def create_again(ctx: ReconcileContext) -> Waiting | None:
    """Create the image that another client has deleted; None for a plan of an earlier version without its source.

    Raises MissingObject for an image that the plan names, which only its user can create again.
    """
    name = ctx.status["isoImageID"]
    if ctx.plan.spec.image:
        absent = missing(name)
        raise MissingObject(f"{named(name)} {absent.why}, and the nodes read the release from it. {absent.way_out}")
    return await create(ctx, name) if ctx.status["version"] else None


def _new_wait(ctx: ReconcileContext, image: str) -> ImageWait:
    now = ctx.now()
    return ImageWait(namespace=HARVESTER_SYSTEM, name=image, since=now, imported=now, detail="0 % imported")
