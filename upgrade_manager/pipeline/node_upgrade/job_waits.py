"""The waits for Jobs of a node that a decision creates, resumes or removes, which the cache does not show yet.

waits.py calls it, and has the waits for Jobs that run; blockers/jobs.py has the finders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.blockers.jobs import new_job_wait
from upgrade_manager.blockers.known_wait import RemovedJobWait
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.nodes.model import RemoveJob, ResumeJob, StartJob
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.resources.jobs import node_job_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.model import Effect, NodeView
    from upgrade_manager.pipeline.context import ReconcileContext

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
