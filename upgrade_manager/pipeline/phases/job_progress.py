"""The progress of a Job that a phase follows, for the Progressing message.

cluster_upgrade.py, iso_checksums.py, image_cleanup.py and plan_jobs.py show the progress. After a minute,
blockers/jobs.py finds the reason why a Job does not start, and the reconciler shows the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.timestamps import clock_of, parse_time
from upgrade_manager.blockers.job_failures import last_failure
from upgrade_manager.blockers.jobs import job_wait, new_job_wait
from upgrade_manager.facts.job_state import NO_POD, POD_FINISHED, JobState
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.blocker_report import resumed_wait
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext


def new_job_progress(ctx: ReconcileContext, name: str, *, backoff_limit: int, work: str) -> Waiting:
    """Report a Job that was just created, with the same message as `job_progress`."""
    return Waiting(
        message=f"Job {HARVESTER_SYSTEM}/{name}: attempt 1 of {backoff_limit + 1}",
        detail=NO_POD,
        waits=(new_job_wait(HARVESTER_SYSTEM, name, work=work, now=ctx.now()),),
    )


async def job_progress(ctx: ReconcileContext, job: Object, *, work: str, controllers: tuple[str, ...] = ()) -> Waiting:
    """Report a Job of that component that has not finished, or whose result is not known yet.

    `controllers` are the Deployments that it needs, as in JobWait.
    """
    state = JobState.of(job)
    named = f"Job {state.namespace}/{state.name}"
    waits = resumed_wait(ctx, state, work=work) or job_wait(state, work=work, controllers=controllers)
    if state.suspended or state.is_failing:
        return Waiting(message=f"{named}: {state.describe()}", waits=waits)
    ended = parse_time(state.completed) or ctx.now()
    left = waits or (new_job_wait(state.namespace, state.name, work=work, now=ended),)
    return Waiting(message=f"{named}: {await describe(ctx, state)}", detail=_detail(job), waits=left)


async def describe(ctx: ReconcileContext, job: JobState) -> str:
    """Return the state of a running Job, and why its last attempt failed."""
    if job.suspended or job.is_failing or not job.failed_attempts:
        return job.describe()
    message = await last_failure(ctx.client, ctx.informers.last_failures, job)
    return f"{job.attempt}; last failure: {message}" if message else f"{job.attempt}; the last attempt failed"


def _detail(job: Object) -> str:
    """Return the state of the Job's Pod, by the Job's counts."""
    status = objects.status(job)
    uncounted = status.get("uncountedTerminatedPods") or {}
    if status.get("succeeded") or uncounted.get("succeeded"):
        return POD_FINISHED
    if status.get("ready"):
        since = status.get("startTime")
        return f"running since {clock_of(since)}" if since else "running"
    if uncounted.get("failed"):
        return "its Pod has failed"
    return "its Pod is starting" if status.get("active") else NO_POD
