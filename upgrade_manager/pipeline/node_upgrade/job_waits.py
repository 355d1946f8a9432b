"""The waits for Jobs of a node: those that run, and those that a decision creates, resumes or removes.

waits.py calls it, and has the other waits of nodes; blockers/jobs.py has the finders. A Job that waits for a user's
decision on a VM is not slow.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.blockers.jobs import job_wait, new_job_wait
from upgrade_manager.blockers.known_wait import RemovedJobWait
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.nodes.model import RemoveJob, ResumeJob, StartJob
from upgrade_manager.pipeline.blocker_report import first_seen, known_blockers
from upgrade_manager.resources.jobs import node_job_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.facts.job_state import JobState
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.model import Effect, NodeView
    from upgrade_manager.pipeline.context import ReconcileContext

#: The blockers that a user ends by a decision on a VM.
_OF_USERS = frozenset({BlockerReason.EVICTION_FORBIDDEN, BlockerReason.MIGRATION_STUCK})
_HELD = "job held up by a VM"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
#: The effects after which the node's Jobs differ from those that the cache shows.
JOB_EFFECTS = (StartJob, ResumeJob, RemoveJob)


def job_waits(ctx: ReconcileContext, jobs: Store, view: NodeView, effects: Iterable[Effect]) -> Iterator[Wait]:
    """Yield the waits for Jobs that these effects create, resume or remove."""
    for effect in effects:
        if isinstance(effect, StartJob | ResumeJob):
            name, type_ = node_job_name(ctx.owner, node=view.name, job_type=effect.job_type), effect.job_type
            yield new_job_wait(HARVESTER_SYSTEM, name, work=type_, now=ctx.now(), node=view.name)
        elif isinstance(effect, RemoveJob):
            yield from _removed(ctx, jobs, view, effect)


def running_waits(
    ctx: ReconcileContext, job: JobState, *, work: str, node: str, finished: Collection[float]
) -> Iterator[Wait]:
    """Yield the waits for a Job of the node that runs; the time for which it waits for a VM's user does not count."""
    held = _held_until(ctx, node)
    for one in job_wait(job, work=work, node=node, finished=finished):
        yield replace(one, stepped=max(one.stepped, held)) if isinstance(one, JobWait) else one


def _held_until(ctx: ReconcileContext, node: str) -> datetime:
    """Return the time until which, as this process has seen, a VM that awaits its user has held the node's Job up."""
    now = ctx.now().replace(microsecond=0)
    is_held = any(one.reason in _OF_USERS and one.node == node for one in known_blockers(ctx))
    seen = ctx.informers.first_seen.since((_HELD, node), is_held, now=now, known=_LONG_AGO)
    return now if is_held else seen


def _removed(ctx: ReconcileContext, jobs: Store, view: NodeView, effect: RemoveJob) -> Iterator[RemovedJobWait]:
    job = view.old_jobs.get(effect.job_type) or view.jobs[effect.job_type]
    found = jobs.get(job.name, job.namespace)
    if found is not None:
        yield RemovedJobWait(
            namespace=job.namespace,
            name=job.name,
            node=view.name,
            since=first_seen(ctx, RemovedJobWait, job.name),
            detail=f"the node's upgrade waits for its removal, and {deletion(found) or 'it is to be deleted'}",
            remedies=ways_out(JOBS, found),
        )
