"""engine.py runs the phase; blockers/imports.py finds the reason why an import makes no progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    HARVESTER_SYSTEM,
    Component,
)
from upgrade_manager.api.names import component_name
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.imports import FailedUploadWait
from upgrade_manager.blockers.wait import ImageWait
from upgrade_manager.facts import versions
from upgrade_manager.facts.image_import import IMPORT_AGAIN, has_failed_upload, import_obstacle, named, unmountable
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PERSISTENT_VOLUME_CLAIMS, VERSIONS
from upgrade_manager.pipeline.blocker_report import known_since
from upgrade_manager.pipeline.outcome import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.phases import iso_checksums, iso_import
from upgrade_manager.pipeline.selections import one_image

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

#: Percent between two progress updates, each of which is a status write.
STEP = 10
_OF_USER = "Check the image's source and import it again under the same name"
#: Retries of an import whose image does not specify them.
DEFAULT_RETRIES = 3


class ISODownload(Phase):
    """Imports the ISO as a VirtualMachineImage, or adopts the image that the plan names."""

    name = PhaseName.ISO_DOWNLOAD
    activity = "Importing the ISO"

    async def resume(self, ctx: ReconcileContext) -> Failed | None:
        """Read the Version again, which a user may have corrected; if it is deleted, the recorded one stays."""
        name = ctx.plan.spec.version
        version = None if ctx.plan.spec.image else await ctx.client.find(VERSIONS, name, namespace=HARVESTER_SYSTEM)
        if version is not None and objects.text(version, "spec", "isoURL"):
            ctx.status["version"] = versions.source(version)
        return await super().resume(ctx)

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Create the image, unless the plan names one, then wait for its import."""
        adopted = ctx.plan.spec.image.removeprefix(f"{HARVESTER_SYSTEM}/")
        name = adopted or component_name(ctx.owner.name, Component.ISO)
        ctx.status["isoImageID"] = name
        image = (await ctx.watch(one_image(HARVESTER_SYSTEM, name))).get(name, HARVESTER_SYSTEM)
        if image is None and adopted:
            return iso_import.missing(ctx, name)
        if image is not None and (adopted or ctx.owner.owns(image)):
            iso_checksums.record_iso(ctx, checksum=objects.text(image, "spec", "checksum"))
            result = _result(ctx, image, adopted=bool(adopted))
            return await _check_volume(ctx, name) if adopted and isinstance(result, Completed) else result
        iso_checksums.record_iso(ctx, checksum=ctx.status["version"].get("isoChecksum", ""))
        return await iso_import.create(ctx, name)


async def _check_volume(ctx: ReconcileContext, image: str) -> Completed | Failed:
    """Fail if the replicas of the upgrade repository cannot mount the image's volume at the same time."""
    claim = await ctx.client.find(PERSISTENT_VOLUME_CLAIMS, image, namespace=HARVESTER_SYSTEM) or {}
    problem = unmountable(claim)
    if not problem:
        return Completed()
    return Failed(
        cause=f"{named(image)}: several Pods cannot mount its PersistentVolumeClaim ({problem})",
        advice=f"Delete {named(image)}. {IMPORT_AGAIN}, under the same name, then retry",
    )


def _result(ctx: ReconcileContext, image: Object, *, adopted: bool) -> PhaseResult:
    """Return the result of the import; a failed attempt that is retried counts as importing."""
    about = named(objects.name(image))
    if objects.is_condition_true(image, "Imported"):
        return Completed()
    obstacle = import_obstacle(image)
    if obstacle is not None and obstacle.ways_out:
        return Waiting(message=f"{about}: {obstacle.why}. {remedy_text(obstacle.ways_out)}", waits=(_wait(ctx, image),))
    if obstacle is not None and obstacle.is_final:
        check = _OF_USER if adopted else "Check the Version's spec.isoURL and spec.isoChecksum"
        return Failed(cause=f"{about}: {obstacle.why}", advice=f"{check}, then retry")
    progress = (objects.status(image).get("progress") or 0) // STEP * STEP
    return Waiting(message=f"{about}: importing, {_attempt(image)}{progress} %", waits=(_wait(ctx, image),))


def _wait(ctx: ReconcileContext, image: Object) -> ImageWait:
    """Return the wait for the import, whose object has no time of its last progress."""
    name, progress = objects.name(image), objects.number(image, "status", "progress") or 0
    seen = (progress, objects.number(image, "status", "failed"))
    known = known_since(ctx, ImageWait, name)
    progressed = ctx.informers.first_seen.since(objects.uid(image), seen, now=ctx.now(), known=known)
    wait = FailedUploadWait if has_failed_upload(image) else ImageWait
    return wait(
        namespace=objects.namespace(image),
        name=name,
        since=parse_time(objects.metadata(image).get("creationTimestamp")) or progressed,
        imported=progressed,
        detail=f"{progress} % imported",
    )


def _attempt(image: Object) -> str:
    """Return the number of the attempt and the last failure; empty for the first attempt."""
    failed, obstacle = objects.status(image).get("failed") or 0, import_obstacle(image)
    if not failed or obstacle is None:
        return ""
    retry = objects.spec(image).get("retry")
    retries = retry if isinstance(retry, int) else DEFAULT_RETRIES
    return f"attempt {min(failed, retries) + 1} of {retries + 1} ({obstacle.why}), "
