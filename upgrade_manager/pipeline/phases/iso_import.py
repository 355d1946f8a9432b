"""The VirtualMachineImage that imports the ISO, from its creation to the last phase that reads the repository.

iso_download.py creates it and follows the import; repository.py ensures it in later phases, whose Pods mount its
volume. blockers/repository_outage.py finds the Pods that wait for the volume of an image that was created again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import MissingImageWait
from upgrade_manager.blockers.wait import ImageWait
from upgrade_manager.facts import image_import
from upgrade_manager.facts.image_import import named
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.ending import repository_handover
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

    Only its user can create an image again that the plan names.
    """
    name = ctx.status["isoImageID"]
    if ctx.plan.spec.image:
        return missing(ctx, name)
    return await create(ctx, name) if ctx.status["version"] else None


def missing(ctx: ReconcileContext, name: str) -> Waiting:
    """Return the wait for an image that the plan names and that does not exist."""
    absent = image_import.missing(name)
    wait = MissingImageWait(
        namespace=HARVESTER_SYSTEM,
        name=name,
        since=first_seen(ctx, MissingImageWait, name),
        detail=f"it {absent.why}, and spec.image of the plan names it",
        remedies=absent.ways_out,
    )
    return Waiting(message=f"{named(name)} {absent.why}. {remedy_text(absent.ways_out)}", waits=(wait,))


def _new_wait(ctx: ReconcileContext, image: str) -> ImageWait:
    now = ctx.now()
    return ImageWait(namespace=HARVESTER_SYSTEM, name=image, since=now, imported=now, detail="0 % imported")
