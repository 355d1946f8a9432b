"""How far a Job is that has not ended: which attempt, what became of the last one, whether its Pod runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.nodes.job_state import JobState
from upgrade_manager.pipeline.complaints import newest_warning
from upgrade_manager.pipeline.inquiries import PATIENCE
from upgrade_manager.pipeline.lastwords import last_words
from upgrade_manager.pipeline.phases.base import Waiting
from upgrade_manager.pipeline.podstate import unready_pod

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: Kubernetes' own, where a Job does not say.
DEFAULT_LIMIT = 6
NO_POD = "no Pod yet"


def not_started(named: str, *, limit: int) -> Waiting:
    """What is said of a Job that has just been created."""
    return Waiting(message=f"waiting for {named}: {_so_many(0, limit)}", detail=NO_POD)


async def account(ctx: ReconcileContext, job: Object) -> Waiting:
    """What is said of the Job. What its Pods and events know is asked for only where it does not come on."""
    state = JobState.of(job)
    waiting = f"waiting for Job {state.namespace}/{state.name}"
    if state.suspended:
        return Waiting(message=f"{waiting}: it is suspended; set its spec.suspend to false")
    if state.is_failing:
        return Waiting(message=f"{waiting}: {state.warning}")
    message = f"{waiting}: {await attempt(ctx, state, limit=limit_of(job))}"
    status = objects.status(job)
    if status.get("ready"):
        since = status.get("startTime")
        return Waiting(message=message, detail=f"running since {since}" if since else "running")
    detail = "its Pod has not started yet" if status.get("active") else NO_POD
    age = ctx.status.age(job)
    if age < PATIENCE:
        return Waiting(message=message, detail=detail, after=PATIENCE - age)
    # Nothing that is watched tells of these.
    question = f"start {state.failed_attempts} of {state.namespace}/{state.name}"
    why = await ctx.informers.inquiries.answer(question, partial(_hindrance, ctx, job))
    return Waiting(message=message, detail=why or detail, after=PATIENCE)


async def attempt(ctx: ReconcileContext, state: JobState, *, limit: int) -> str:
    """Which attempt it is, and what the last one said before it failed."""
    failed = state.failed_attempts
    text = _so_many(failed, limit)
    if not failed:
        return text
    question = f"failure {failed} of {state.namespace}/{state.name}"
    words = await ctx.informers.inquiries.answer(question, partial(last_words, ctx.client, state))
    return f"{text}, the last one ended with: {words}" if words else f"{text}, the last one failed"


def limit_of(job: Object) -> int:
    """How often the Job may fail before it has failed for good."""
    limit = objects.spec(job).get("backoffLimit")
    return limit if isinstance(limit, int) else DEFAULT_LIMIT


def _so_many(failed: int, limit: int) -> str:
    return f"attempt {min(failed, limit) + 1} of {limit + 1}"


async def _hindrance(ctx: ReconcileContext, job: Object) -> str:
    name, namespace = objects.name(job), objects.namespace(job)
    selector = f"batch.kubernetes.io/job-name={name}"
    found = await unready_pod(ctx.client, namespace=namespace, label_selector=selector)
    if found or objects.status(job).get("active"):
        return found
    complaint = await newest_warning(ctx.client, job, kind="Job")
    return f"{NO_POD} ({complaint})" if complaint else ""
