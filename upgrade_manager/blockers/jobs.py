"""Finds the cause of a Job that does not start, or takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.timestamps import format_clock, parse_time
from upgrade_manager.blockers.deadlines import START, job_end, job_progress, job_start
from upgrade_manager.blockers.finder import Finder, NotLate
from upgrade_manager.blockers.known_wait import SuspendedJobWait
from upgrade_manager.blockers.object_view import Unreadable
from upgrade_manager.blockers.pods import pod_blocker
from upgrade_manager.blockers.wait import FailingJobWait, ForbiddenStopWait, JobWait
from upgrade_manager.blockers.warnings import latest_warning
from upgrade_manager.facts.forbidden_stops import read_report
from upgrade_manager.facts.job_state import NO_POD, POD_FINISHED, SUSPENDED, JobState, Progress
from upgrade_manager.facts.pod_reason import POD_REASONS, finished_at, pod_reason, start_progress
from upgrade_manager.facts.removal import CHECK_JOB_CONTROLLER
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import JOBS, PODS, SERVICE_ACCOUNTS
from upgrade_manager.nodes.expected_times import expected_seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

LABEL_JOB_NAME = "batch.kubernetes.io/job-name"


def job_wait(
    job: JobState,
    *,
    work: str,
    node: str = "",
    pods: str = "",
    finished: Collection[float] = (),
    way_out: str = "",
    controllers: tuple[str, ...] = (),
) -> tuple[JobWait | SuspendedJobWait | FailingJobWait | ForbiddenStopWait, ...]:
    """Return the wait for a Job of that component or type; nothing for a Job that has ended.

    A Job that is about to start again has another wait (pipeline/blocker_report.py, resumed_wait).
    `pods` selects the Pods of several Jobs, which then share one watch. `finished` are the durations, in seconds, of
    this plan's Jobs of that component or type. `way_out` is the command that ends a Job that hangs, if there is one.
    """
    since = parse_time(max(job.created, job.resumed))
    if since is None or job.progress is not Progress.RUNNING:
        return ()
    place, selector = {"namespace": job.namespace, "name": job.name, "node": node}, pods or pods_of(job.name)
    if job.suspended:
        began, resume = parse_time(job.suspended_at) or since, Remedy("Resume it", command=job.resume_command)
        return (SuspendedJobWait(**place, since=began, detail=SUSPENDED, remedies=(resume,)),)
    if job.is_failing:
        began = parse_time(job.failing_since) or since
        return (FailingJobWait(**place, since=began, detail=job.condition, pods=selector),)
    return (
        JobWait(
            **place,
            since=since,
            stepped=parse_time(job.progressed) or since,
            expected=expected_seconds(work, finished),
            is_running=job.running,
            succeeded=parse_time(job.succeeded),
            pods=selector,
            way_out=way_out,
            controllers=controllers,
        ),
        *(_forbidden_stops(job, place) if job.forbidden_stops else ()),
    )


def _forbidden_stops(job: JobState, place: dict[str, str]) -> Iterator[ForbiddenStopWait]:
    found = read_report(job.forbidden_stops)
    if found is not None:
        yield ForbiddenStopWait(**place, since=found[0], vms=found[1])


def new_job_wait(namespace: str, name: str, *, work: str, now: datetime, node: str = "") -> JobWait:
    """Return the wait for a Job that was just created, which the cache does not show yet."""
    expected = expected_seconds(work, ())
    return JobWait(
        namespace=namespace, name=name, node=node, since=now, stepped=now, expected=expected, pods=pods_of(name)
    )


def pods_of(job: str) -> str:
    """Return the label selector of the Job's Pods."""
    return f"{LABEL_JOB_NAME}={job}"


def _start_blockers(view: View, wait: JobWait) -> Iterator[Blocker]:
    """Yield the reason why the Job's newest Pod does not run, or why the Job has no Pod. Raises NotLate."""
    newest = _newest(view, wait)
    if newest is None:
        yield _no_pod(view, wait)
        return
    if _has_succeeded(newest):
        yield from _unrecorded(view, wait, newest)
        return
    since = start_progress(newest) or wait.since
    if pod_reason(newest) is not None and view.now - since < START:
        # The Pod's start progressed after the wait began, if only by the rest of a second.
        raise NotLate(since + START)
    yield from filter(None, [pod_blocker(view, newest, node=wait.node, since=since)])


def _newest(view: View, wait: JobWait) -> Object | None:
    selection = Selection(resource=PODS, namespace=wait.namespace, label_selector=wait.pods)
    return max(view.objects_by(selection, _job_of, wait.name), key=_created, default=None)


def _job_of(pod: Object) -> str:
    return objects.labels(pod).get(LABEL_JOB_NAME, "")


def _has_succeeded(pod: Object) -> bool:
    return objects.text(pod, "status", "phase") == "Succeeded"


def _unmarked_blockers(view: View, wait: JobWait) -> Iterator[Blocker]:
    """Yield the Job if its newest Pod has succeeded: a Job controller that hangs still shows the Pod as running."""
    newest = _newest(view, wait)
    if newest is not None and _has_succeeded(newest):
        yield from _unrecorded(view, wait, newest)


def _created(pod: Object) -> str:
    return objects.text(pod, "metadata", "creationTimestamp")


def _unrecorded(view: View, wait: JobWait, pod: Object) -> Iterator[Blocker]:
    """Yield the Job if its Pod succeeded long ago, and the Job's status does not show the success."""
    since = finished_at(pod) or wait.since
    if view.now - since >= START:
        yield _blocker(
            wait,
            BlockerReason.JOB_SLOW,
            message=POD_FINISHED,
            remedies=(CHECK_JOB_CONTROLLER,),
            since=since,
        )


def _no_pod(view: View, wait: JobWait) -> Blocker:
    words = latest_warning(view, kind="Job", namespace=wait.namespace, name=wait.name)
    if words:
        reason, do = words, _permit(view, wait)
    else:
        reason, do = "the Job has no Warning event", CHECK_JOB_CONTROLLER
    return _blocker(
        wait,
        BlockerReason.JOB_HAS_NO_POD,
        message=f"{NO_POD} ({reason})",
        remedies=(do, Remedy("Show its events", command=f"kubectl describe job -n {wait.namespace} {wait.name}")),
        since=wait.since,
    )


def _permit(view: View, wait: JobWait) -> Remedy:
    """Return the remedy for Pods of the Job that the API server refuses. Raises NotSynced."""
    try:
        account = _absent_account(view, wait)
    except Unreadable:
        account = ""  # the event's message is more useful than this error
    if account:
        create = f"kubectl create serviceaccount -n {wait.namespace} {account}"
        return Remedy("Create the ServiceAccount", command=create)
    return Remedy("Allow what the event reports, for example by a larger ResourceQuota")


def _absent_account(view: View, wait: JobWait) -> str:
    """Return the ServiceAccount that the Job names if it does not exist; else empty."""
    named = f"metadata.name={wait.name}"
    jobs = view.objects(Selection(resource=JOBS, namespace=wait.namespace, field_selector=named))
    account = objects.text(jobs[0], "spec", "template", "spec", "serviceAccountName") if jobs else ""
    if not account:
        return ""
    accounts = Selection(
        resource=SERVICE_ACCOUNTS,
        namespace=wait.namespace,
        field_selector=f"metadata.name={account}",
        metadata_only=True,
    )
    return "" if view.objects(accounts) else account


def _slow_blockers(view: View, wait: JobWait) -> Iterator[Blocker]:
    """Yield the Job, unless the finder of Pods that have succeeded names it."""
    try:
        if any(_unmarked_blockers(view, wait)):
            return
    except Unreadable:
        pass  # the other finder reports the unreadable Pods
    yield _blocker(
        wait,
        BlockerReason.JOB_SLOW,
        message=f"no progress since {format_clock(wait.stepped)}; usually it takes at most "
        f"{wait.expected / 60:.0f} minutes",
        remedies=(
            Remedy("Show what it does", command=f"kubectl logs -n {wait.namespace} job/{wait.name}"),
            *((Remedy("If it hangs, end it", command=wait.way_out),) if wait.way_out else ()),
        ),
        since=wait.stepped,
    )


def _blocker(
    wait: JobWait, reason: BlockerReason, *, message: str, remedies: tuple[Remedy, ...], since: datetime
) -> Blocker:
    return Blocker(
        reason=reason,
        kind="Job",
        namespace=wait.namespace,
        name=wait.name,
        node=wait.node,
        message=f"Job {wait.namespace}/{wait.name}: {message}",
        remedies=remedies,
        since=since,
    )


FINDERS = (
    Finder(
        wait=JobWait,
        reasons=(BlockerReason.JOB_HAS_NO_POD, BlockerReason.JOB_SLOW, *POD_REASONS),
        overdue=job_start,
        find=_start_blockers,
    ),
    Finder(wait=JobWait, reasons=(BlockerReason.JOB_SLOW,), overdue=job_end, find=_unmarked_blockers),
    Finder(wait=JobWait, reasons=(BlockerReason.JOB_SLOW,), overdue=job_progress, find=_slow_blockers),
)
