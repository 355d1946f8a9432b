"""Checksums of the ISO's files, which one Job computes, and by which the toolkit's Jobs check their downloads.

iso_download.py and metadata_populate.py call it; toolkit/iso/checksums.py compares the checksums in the Jobs.

Without checksums the upgrade continues, and the status and a Warning event report the reason. resources/checksums
builds the Job.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.checksums import read_checksums
from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.text import bounded_line
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.blockers.job_failures import job_failure_message
from upgrade_manager.blockers.jobs import LABEL_JOB_NAME
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Terminal
from upgrade_manager.kube.resources import JOBS, PODS
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.phases.job_progress import job_progress, new_job_progress
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.release.errors import BadRepository
from upgrade_manager.resources.checksums import DEADLINE, checksums_job
from upgrade_manager.resources.jobs import BACKOFF_LIMIT

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import Waiting

#: Files that the result for a Harvester ISO must contain.
_REQUIRED = frozenset({"/harvester-release.yaml", "/bundle/metadata.yaml", "/rootfs.squashfs"})
#: Seconds until Pods are listed again, because Pods are not watched.
_RETRY = 2.0
#: Seconds beyond the Job's deadline after which the manager gives up a Job that does not end.
_GRACE = 5.0
HARVESTERS_TOOLKIT = "Harvester's toolkit does not check what it downloads from the upgrade repository"
NOT_CHECKED = "ISOFilesNotChecked"


def record_iso(ctx: ReconcileContext, *, checksum: str) -> None:
    """Record whether the import of the ISO was checked against a checksum."""
    ctx.status["checksums"] = {**_recorded(ctx), "isoChecked": bool(checksum)}


async def compute(ctx: ReconcileContext) -> Waiting | None:
    """Return Waiting until the Job has a result or cannot have one any more; record the outcome and return None."""
    if "checked" in _recorded(ctx):
        return None
    if not is_own(ctx.status["toolkitImage"]):
        _record(ctx, checked=False, message=HARVESTERS_TOOLKIT)
        return None
    name = ctx.owner.name_of(Component.CHECKSUMS)
    job = (await ctx.watch(UPGRADE_JOBS)).get(name, HARVESTER_SYSTEM)
    if job is not None and ctx.owner.owns(job):
        return await _follow(ctx, job)
    try:
        await ctx.ensure(JOBS, checksums_job(ctx.owner, ctx.job_settings, claim=ctx.status["isoImageID"]))
    except (Terminal, RetryError) as error:
        if ctx.status.seconds_in_phase() < DEADLINE:
            raise
        _give_up(ctx, f"Job {HARVESTER_SYSTEM}/{name} cannot be created: {error}")
        return None
    return new_job_progress(ctx, name, backoff_limit=BACKOFF_LIMIT, work=Component.CHECKSUMS)


def verify_release(ctx: ReconcileContext, path: str, content: bytes) -> None:
    """Check a file that the manager has read itself. Raises BadRepository."""
    expected, found = ctx.checksums.get(path, ""), hashlib.sha256(content).hexdigest()
    if expected and found != expected:
        raise BadRepository(
            f"{path} has the SHA-256 {found}, but the one on the ISO has {expected}. It was changed on its way from "
            "the upgrade repository, which is plain HTTP"
        )


async def _follow(ctx: ReconcileContext, job: Object) -> Waiting | None:
    state = JobState.of(job)
    left = DEADLINE + _GRACE - ctx.status.age(job)
    if state.progress is Progress.FAILED:
        _give_up(ctx, await job_failure_message(ctx.client, state))
        return None
    if state.progress is Progress.COMPLETE and (texts := await _results(ctx, job)):
        _read(ctx, texts[-1], named=f"Job {state.namespace}/{state.name}")
        return None
    if left <= 0:
        _give_up(ctx, f"Job {state.namespace}/{state.name} has no result after {DEADLINE / 60:g} minutes")
        return None
    after = min(left, _RETRY) if state.progress is Progress.COMPLETE else left
    return replace(await job_progress(ctx, job, work=Component.CHECKSUMS), after=after)


def _read(ctx: ReconcileContext, text: str, *, named: str) -> None:
    try:
        files = read_checksums(text)
    except ValueError as error:
        _give_up(ctx, f"{named} has an invalid result: {error}")
        return
    if missing := _REQUIRED - files.keys():
        _give_up(ctx, f"{named} has an invalid result: {min(missing)} is missing")
        return
    _record(ctx, checked=True, files=files)


async def _results(ctx: ReconcileContext, job: Object) -> list[str]:
    """Return the termination messages of the Job's containers that succeeded, the latest one last. Raises KubeError."""
    selector = f"{LABEL_JOB_NAME}={objects.name(job)}"
    pods = (await ctx.client.list(PODS, namespace=HARVESTER_SYSTEM, label_selector=selector)).items
    ended = [
        terminated
        for pod in pods
        if objects.owner_uid(pod) == objects.uid(job)
        for status in objects.status(pod).get("containerStatuses") or ()
        if (terminated := (status.get("state") or {}).get("terminated"))
    ]
    done = [one for one in ended if one.get("exitCode") == 0 and one.get("message")]
    return [one["message"] for one in sorted(done, key=lambda one: one.get("finishedAt") or "")]


def _give_up(ctx: ReconcileContext, reason: str) -> None:
    """Record that the ISO's files are not checked, and report the reason once."""
    text = bounded_line(f"The ISO's files are not checked: {reason}")
    ctx.events.warning(ctx.raw, NOT_CHECKED, text)
    _record(ctx, checked=False, message=bounded_line(reason))


def _record(ctx: ReconcileContext, *, checked: bool, **fields: Any) -> None:
    ctx.status["checksums"] = {**_recorded(ctx), "checked": checked, **fields}


def _recorded(ctx: ReconcileContext) -> dict[str, Any]:
    return ctx.status["checksums"] or {}
