"""The Job of the cluster upgrade may outlive its deleted plan: what it may write is given back after its end.

conclusion.py calls it before settings/giving_back.py. A Job of Harvester's toolkit empties KubeVirt's update methods,
also those that the manager has given back; Fleet then refuses the chart, and the Job waits for that without end.

The deletion waits for some time only, because the Pod of a node that is down does not end. Then passing_on.py leaves
the entries to the next plan, which starts after the Job.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.remedy import Remedy, remedy_text
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.blockers.jobs import pods_of
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.job_state import JobState, can_run
from upgrade_manager.facts.pod_end import unended
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, PODS
from upgrade_manager.pipeline import blocker_report, ledger
from upgrade_manager.pipeline.ending import orphaned_jobs
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.pipeline.settings import overrides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.settings.overrides import Override

#: Seconds since the request for deletion; the usual time of the cluster upgrade.
LIMIT = 3600.0
#: Seconds between two looks at a Job, whose changes trigger a reconcile anyway, and at Pods, which are not watched.
JOB_RETRY, POD_RETRY = 60.0, 5.0
#: Seconds after the time by which a Pod should have ended: since then its kubelet is down, and its containers are, too.
OVERDUE = 60.0
_SUBJECT = "KubeVirt's update methods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A Job, or a Pod of one, that may still write what is to be given back."""

    #: Its kind, name and state.
    text: str
    remedies: tuple[Remedy, ...]
    waits: tuple[Wait, ...] = ()
    #: Seconds until the next look.
    retry: float


async def find(ctx: ReconcileContext) -> Writer | None:
    """Return what may still write KubeVirt's update methods; None if nothing may, or they need not be given back.

    A Job without a Pod, which would be removed with the other objects of the plan, is removed first.
    """
    if not _is_interrupted(ctx) or not ledger.entries(ctx, LedgerKind.UPDATE_METHODS):
        return None
    selector = ctx.owner.selector(Component.CLUSTER_UPGRADE)
    jobs = (await ctx.client.list(JOBS, namespace=HARVESTER_SYSTEM, label_selector=selector)).items
    for job in filter(_starts_pods, jobs):
        if orphaned_jobs.is_running(job):
            # The end of the Job triggers a reconcile.
            await ctx.watch(UPGRADE_JOBS)
            return _job(ctx, job)
        await ctx.remove(JOBS, objects.name(job), namespace=HARVESTER_SYSTEM, uid=objects.uid(job))
    return await _pod(ctx)


def wait(ctx: ReconcileContext, writer: Writer | None) -> float | None:
    """Report that the deletion waits; return the seconds to the next look, None once there is nothing to wait for."""
    left = _seconds_left(ctx)
    if writer is None or left <= 0:
        return None
    message = f"The deletion waits for at most an hour, because {writer.text} may still write {_SUBJECT}"
    ctx.status.waiting(f"{message}. {remedy_text(writer.remedies)}")
    overdue = blocker_report.report(ctx, writer.waits)
    return min(time for time in (writer.retry, left, overdue) if time is not None)


def owed(ctx: ReconcileContext) -> Iterator[Remedy]:
    """Yield what a plan leaves whose Job has not ended in time, with the commands."""
    entries = overrides.of_phase(ctx, PhaseName.CLUSTER_UPGRADE) if _is_interrupted(ctx) else []
    if not entries:
        return
    name = ctx.owner.name_of(Component.CLUSTER_UPGRADE)
    text = (
        f"Job {HARVESTER_SYSTEM}/{name} may still write {_SUBJECT}, which stay empty. The next UpgradePlan waits for "
        "the Job, and gives them back at its end. Where none follows, delete the Job, then give them back"
    )
    yield Remedy(text, command=f"kubectl delete job -n {HARVESTER_SYSTEM} {name}")
    for override, entry in entries:
        yield _by_hand(override, entry)


def _by_hand(override: Override, entry: Entry) -> Remedy:
    names = reversed(override.field.split("."))
    patch = json.dumps(reduce(lambda inner, name: {name: inner}, names, entry.get("original")), separators=(",", ":"))
    command = f"kubectl patch {override.resource.name} -n {override.namespace} {override.name} --type merge"
    text = f"Give {override.field} of {override} back"
    return Remedy(text, command=f"{command} -p {shlex.quote(patch)}")


def _is_interrupted(ctx: ReconcileContext) -> bool:
    """Return True for a plan that is deleted during the cluster upgrade; a failed one's Job has ended."""
    return objects.is_deleting(ctx.raw) and ctx.status.phase == PhaseName.CLUSTER_UPGRADE.active


def _seconds_left(ctx: ReconcileContext) -> float:
    deleted = parse_time(objects.metadata(ctx.raw).get("deletionTimestamp"))
    return LIMIT - seconds_between(deleted, ctx.now()) if deleted else 0.0


def _starts_pods(job: Object) -> bool:
    return can_run(job) and not JobState.of(job).is_failing and not objects.is_deleting(job)


def _job(ctx: ReconcileContext, job: Object) -> Writer:
    text = f"Job {HARVESTER_SYSTEM}/{objects.name(job)} ({JobState.of(job).describe()})"
    delete = Remedy("It runs to its end; if it hangs, delete it", command=orphaned_jobs.delete_command(job))
    waits = tuple(orphaned_jobs.waits(ctx, job))
    return Writer(text=text, remedies=(delete,), waits=waits, retry=JOB_RETRY)


async def _pod(ctx: ReconcileContext) -> Writer | None:
    """Return a Pod that runs after its Job: one that was deleted may take its grace period."""
    selector = pods_of(ctx.owner.name_of(Component.CLUSTER_UPGRADE))
    pods = (await ctx.client.list(PODS, namespace=HARVESTER_SYSTEM, label_selector=selector)).items
    pod = next((pod for pod in pods if not is_final(pod) and not _is_overdue(ctx, pod)), None)
    if pod is None:
        return None
    found = unended(pod)
    text = f"Pod {objects.qualified_name(pod)}, which {found.why},"
    return Writer(text=text, remedies=found.ways_out, retry=POD_RETRY)


def _is_overdue(ctx: ReconcileContext, pod: Object) -> bool:
    until = parse_time(objects.metadata(pod).get("deletionTimestamp"))
    return until is not None and seconds_between(until, ctx.now()) > OVERDUE
