from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.names import ImageReference, component_name
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline.phases.base import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.selections import one_image
from upgrade_manager.resources.iso_image import iso_image

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

#: Progress is shown in steps of so many percent, for each step costs a write.
STEP = 10
#: How often an import that failed is tried again where the image does not say.
RETRIES = 3


class ISODownload(Phase):
    """Brings the ISO into the cluster as a VirtualMachineImage, or adopts the one that the plan names."""

    name = PhaseName.ISO_DOWNLOAD

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Create the image where it is ours, then wait for its import."""
        place = _place(ctx)
        if place is None:
            return Failed(cause=f"spec.image {ctx.plan.spec.image!r} is no name of a VirtualMachineImage")
        namespace, name = place
        ctx.status["isoImageID"] = str(place)
        if namespace != HARVESTER_SYSTEM:
            return Failed(
                cause=f"VirtualMachineImage {namespace}/{name}: the upgrade repository can only mount images of "
                f"namespace {HARVESTER_SYSTEM}; import the ISO there and create the plan again"
            )
        image = (await ctx.watch(one_image(namespace, name))).get(name, namespace)
        if image is not None and (ctx.plan.spec.image or ctx.owner.owns(image)):
            return _judge(image)
        if ctx.plan.spec.image:
            return Waiting(message=f"waiting for VirtualMachineImage {namespace}/{name}, which does not exist yet")
        source = ctx.status["version"]
        await ctx.ensure(
            VIRTUAL_MACHINE_IMAGES,
            iso_image(
                ctx.owner,
                version=ctx.plan.spec.version,
                url=source["isoURL"],
                checksum=source.get("isoChecksum", ""),
            ),
        )
        return Waiting(message=f"waiting for VirtualMachineImage {namespace}/{name} to be imported: 0 % done")


def _place(ctx: ReconcileContext) -> ImageReference | None:
    if ctx.plan.spec.image:
        return ImageReference.parse(ctx.plan.spec.image)
    return ImageReference(HARVESTER_SYSTEM, component_name(ctx.owner.name, Component.ISO))


def _judge(image: Object) -> PhaseResult:
    """The image controller's verdict: a failed attempt that will be repeated is none."""
    named = f"VirtualMachineImage {objects.namespace(image)}/{objects.name(image)}"
    if objects.is_condition_true(image, "Imported"):
        return Completed()
    if objects.is_condition_true(image, "RetryLimitExceeded"):
        condition = objects.condition(image, "RetryLimitExceeded") or {}
        reason = condition.get("message") or condition.get("reason") or "no reason given"
        return Failed(cause=f"{named}: the import failed for good: {reason}")
    imported = objects.condition(image, "Imported") or {}
    if imported.get("status") == "False":
        said = imported.get("message") or imported.get("reason")
        return Waiting(message=f"waiting for {named} to be imported: that has failed ({said}); upload the image again")
    progress = (objects.status(image).get("progress") or 0) // STEP * STEP
    return Waiting(message=f"waiting for {named} to be imported: {_attempt(image)}{progress} % done")


def _attempt(image: Object) -> str:
    """Which attempt it is and what became of the last one; nothing at the first."""
    failed = objects.status(image).get("failed") or 0
    if not failed:
        return ""
    asked = objects.spec(image).get("retry")
    retries = asked if isinstance(asked, int) else RETRIES
    said = (objects.condition(image, "RetryLimitExceeded") or {}).get("message")
    return f"attempt {min(failed, retries) + 1} of {retries + 1} (the last one failed{f': {said}' if said else ''}), "
