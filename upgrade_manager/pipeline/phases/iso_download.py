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

#: Percent between two progress updates, each of which is a status write.
STEP = 10
#: Retries of an import whose image does not specify them.
DEFAULT_RETRIES = 3


class ISODownload(Phase):
    """Imports the ISO as a VirtualMachineImage, or adopts the one that the plan names."""

    name = PhaseName.ISO_DOWNLOAD
    activity = "Importing the ISO"

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Create the image, unless the plan names one, then wait for its import."""
        reference = _reference(ctx)
        if reference is None:
            return Failed(
                cause=f"spec.image {ctx.plan.spec.image!r} is invalid. "
                f"Create a new plan with the NAME of an image in {HARVESTER_SYSTEM}"
            )
        namespace, name = reference
        ctx.status["isoImageID"] = str(reference)
        if namespace != HARVESTER_SYSTEM:
            return Failed(
                cause=f"VirtualMachineImage {namespace}/{name}: the upgrade repository can only mount images in "
                f"namespace {HARVESTER_SYSTEM}. Import the ISO there, then create a new plan"
            )
        image = (await ctx.watch(one_image(namespace, name))).get(name, namespace)
        adopted = bool(ctx.plan.spec.image)
        if image is not None and (adopted or ctx.owner.owns(image)):
            return _result(image, adopted=adopted)
        if adopted:
            return Waiting(message=f"VirtualMachineImage {namespace}/{name} does not exist; create it to continue")
        source = ctx.status["version"]
        url, checksum = source["isoURL"], source.get("isoChecksum", "")
        manifest = iso_image(ctx.owner, version=ctx.plan.spec.version, url=url, checksum=checksum)
        await ctx.ensure(VIRTUAL_MACHINE_IMAGES, manifest)
        return Waiting(message=f"VirtualMachineImage {namespace}/{name}: importing, 0 %")


def _reference(ctx: ReconcileContext) -> ImageReference | None:
    if ctx.plan.spec.image:
        return ImageReference.parse(ctx.plan.spec.image)
    return ImageReference(HARVESTER_SYSTEM, component_name(ctx.owner.name, Component.ISO))


def _result(image: Object, *, adopted: bool) -> PhaseResult:
    """Return the result of the import; a failed attempt that is retried counts as importing."""
    named = f"VirtualMachineImage {objects.namespace(image)}/{objects.name(image)}"
    if objects.is_condition_true(image, "Imported"):
        return Completed()
    if objects.is_condition_true(image, "RetryLimitExceeded"):
        condition = objects.condition(image, "RetryLimitExceeded") or {}
        reason = condition.get("message") or condition.get("reason") or "reason unknown"
        check = "the image's source" if adopted else "the Version's spec.isoURL and spec.isoChecksum"
        return Failed(cause=f"{named}: import failed: {reason}. Check {check}, then create a new plan")
    imported = objects.condition(image, "Imported") or {}
    if imported.get("status") == "False":
        reason = imported.get("message") or imported.get("reason")
        return Waiting(message=f"{named}: import failed ({reason}); upload the image again")
    progress = (objects.status(image).get("progress") or 0) // STEP * STEP
    return Waiting(message=f"{named}: importing, {_attempt(image)}{progress} %")


def _attempt(image: Object) -> str:
    """Return the number of the attempt and the last failure; empty for the first attempt."""
    failed = objects.status(image).get("failed") or 0
    if not failed:
        return ""
    retry = objects.spec(image).get("retry")
    retries = retry if isinstance(retry, int) else DEFAULT_RETRIES
    message = (objects.condition(image, "RetryLimitExceeded") or {}).get("message")
    failure = f"last failure: {message}" if message else "the last attempt failed"
    return f"attempt {min(failed, retries) + 1} of {retries + 1} ({failure}), "
