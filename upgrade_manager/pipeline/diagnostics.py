"""Reports why a Job does not start, run or succeed, from its attempts, its Pods and Warning events.

Pods and events are not watched but listed, at most once a minute, while a Job makes no progress. They only appear in
messages and never affect decisions, so a list that fails or times out counts as empty.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from upgrade_manager.blockers.jobs import LABEL_JOB_NAME
from upgrade_manager.blockers.pods import FINISHED, STARTING
from upgrade_manager.blockers.warnings import last_seen
from upgrade_manager.facts.job_state import JobState
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import EVENTS, PODS
from upgrade_manager.pipeline.informers import DIAGNOSTICS_INTERVAL
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds for a list: it must not delay the reconcile.
LIST_TIMEOUT = 5.0
NO_POD = "waiting for its Pod"
POD_FINISHED = "Pod finished; waiting for the Job to be marked complete"


def new_job_progress(named: str, *, backoff_limit: int) -> Waiting:
    """Report a Job that was just created, with the same message as `job_progress`."""
    return Waiting(message=f"Job {named}: attempt 1 of {backoff_limit + 1}", detail=NO_POD)


async def job_progress(ctx: ReconcileContext, job: Object) -> Waiting:
    """Report a Job that has not finished, with its Pods and events if it has not started after a minute."""
    state = JobState.of(job)
    named = f"Job {state.namespace}/{state.name}"
    if state.suspended:
        resume = f"""kubectl patch job -n {state.namespace} {state.name} -p '{{"spec":{{"suspend":false}}}}'"""
        return Waiting(message=f"{named} is suspended. Resume it: {resume}")
    if state.is_failing:
        return Waiting(message=f"{named}: {state.warning}")
    message = f"{named}: {await job_attempt(ctx, state)}"
    status = objects.status(job)
    uncounted = status.get("uncountedTerminatedPods") or {}
    if status.get("succeeded") or uncounted.get("succeeded"):
        return Waiting(message=message, detail=POD_FINISHED)
    if status.get("ready"):
        since = status.get("startTime")
        return Waiting(message=message, detail=f"running since {since}" if since else "running")
    detail = "its Pod is starting" if status.get("active") else NO_POD
    detail = "its Pod has failed" if uncounted.get("failed") else detail
    age = ctx.status.age(job)
    if age < DIAGNOSTICS_INTERVAL:
        return Waiting(message=message, detail=detail, after=DIAGNOSTICS_INTERVAL - age)
    key = f"start {state.failed_attempts} of {state.namespace}/{state.name}"
    reason = await ctx.informers.diagnostics.get(key, partial(_not_started_reason, ctx.client, job))
    return Waiting(message=message, detail=reason or detail, after=DIAGNOSTICS_INTERVAL)


async def job_attempt(ctx: ReconcileContext, job: JobState) -> str:
    """Return the number of the Job's attempt, and why the last one failed."""
    if not job.failed_attempts:
        return job.attempt
    message = await last_failure(ctx, job)
    return f"{job.attempt}; last failure: {message}" if message else f"{job.attempt}; the last attempt failed"


async def last_failure(ctx: ReconcileContext, job: JobState) -> str:
    """Return the termination message of the Job's last failed attempt; empty without one."""
    key = f"failure {job.failed_attempts} of {job.namespace}/{job.name}"
    return await ctx.informers.diagnostics.get(key, partial(termination_message, ctx.client, job))


async def _not_started_reason(client: Client, job: Object) -> str:
    selector = f"{LABEL_JOB_NAME}={objects.name(job)}"
    pods = await _list(client, PODS, namespace=objects.namespace(job), label_selector=selector)
    if any(objects.status(pod).get("phase") == "Succeeded" for pod in pods):
        return POD_FINISHED
    reason = _not_ready_reason(pods)
    if reason or objects.status(job).get("active"):
        return reason
    warning = await latest_warning(client, job, kind="Job")
    return f"{NO_POD} ({warning})" if warning else ""


async def job_failure_message(client: Client, job: JobState) -> str:
    """Return the failed Job's condition, its last termination message, and the command that shows its log."""
    message = await termination_message(client, job)
    cause = f"{job.cause}: {message}" if message else job.cause
    return f"{cause}; log: kubectl logs -n {job.namespace} job/{job.name}"


async def termination_message(client: Client, job: JobState) -> str:
    """Return the last line of the termination message of the Job's latest Pod that has one; empty without."""
    selector = f"{LABEL_JOB_NAME}={job.name}"
    pods = await _list(client, PODS, namespace=job.namespace, label_selector=selector)
    messages = [message for pod in sorted(pods, key=_created) if (message := _termination_message(pod))]
    return messages[-1] if messages else ""


def _created(pod: Object) -> str:
    return str(objects.metadata(pod).get("creationTimestamp", ""))


def _termination_message(pod: Object) -> str:
    for container in objects.status(pod).get("containerStatuses") or []:
        terminated: dict[str, Any] = (container.get("state") or {}).get("terminated") or {}
        lines = (terminated.get("message") or "").strip().splitlines()
        if terminated.get("exitCode") and lines:
            return str(lines[-1])
    return ""


async def pod_not_ready_reason(client: Client, *, namespace: str, label_selector: str) -> str:
    """Describe one selected Pod that is not ready, preferably one with a reason; empty if all are ready."""
    return _not_ready_reason(await _list(client, PODS, namespace=namespace, label_selector=label_selector))


def _not_ready_reason(pods: Iterable[Object]) -> str:
    unready = [(_reason(pod), pod) for pod in sorted(pods, key=objects.name) if _is_unready(pod)]
    unready.sort(key=lambda found: not found[0])
    return next((describe_pod(pod) for _, pod in unready), "")


def describe_pod(pod: Object) -> str:
    """Return the Pod's name, phase and the reason why it is not ready."""
    phase = objects.status(pod).get("phase") or "Pending"
    state = "is running, but not ready" if phase == "Running" else f"is {phase}"
    reason = _reason(pod)
    return f"Pod {objects.name(pod)} {state}" + (f" ({reason})" if reason else "")


def _is_unready(pod: Object) -> bool:
    finished = objects.status(pod).get("phase") in FINISHED
    return not finished and not objects.is_deleting(pod) and not objects.is_condition_true(pod, "Ready")


def _reason(pod: Object) -> str:
    return next((text for source in _reason_sources(pod) if (text := _text(source))), "")


def _reason_sources(pod: Object) -> Iterator[dict[str, Any]]:
    status = objects.status(pod)
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in STARTING:
            yield waiting
    scheduled = objects.condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        yield scheduled
    yield status


def _text(source: dict[str, Any]) -> str:
    return ": ".join(part for part in (source.get("reason"), source.get("message")) if part)


async def latest_warning(client: Client, involved: Object, *, kind: str) -> str:
    """Return the message of the object's latest Warning event; empty without one."""
    selector = f"involvedObject.kind={kind},involvedObject.name={objects.name(involved)},type=Warning"
    events = await _list(client, EVENTS, namespace=objects.namespace(involved), field_selector=selector)
    own = [event for event in events if event["involvedObject"].get("uid") in {None, objects.uid(involved)}]
    latest = max(own, key=last_seen, default={})
    return " ".join((latest.get("message") or latest.get("reason") or "").split())


async def _list(
    client: Client, resource: Resource, *, namespace: str, label_selector: str = "", field_selector: str = ""
) -> Sequence[Object]:
    """List the selected objects; none if the list fails or takes too long."""
    try:
        async with asyncio.timeout(LIST_TIMEOUT):
            found = await client.list(
                resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
            )
    except (KubeError, TimeoutError):
        return ()
    return found.items
