"""Jobs that run when their plan ends: they continue without an owner, because a Pod may be writing a node's OS.

One patch removes the ownerReference and the plan's label, so that neither the garbage collector nor the clean-up of a
later plan of that name deletes the Job. The upgrade repository stays with them (repository_handover.py). The next plan
waits for them before it creates Jobs.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, LABEL_PLAN, JobType
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.pipeline.phases.base import Waiting
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds for which an orphaned Job is kept after it has finished, unless the next plan removes it.
TTL = 3600


def is_running(job: Object) -> bool:
    """Return True for a Job with an active Pod, and for a restore-vm Job that has not finished.

    An interrupted restore-vm Job would leave VMs off; other Jobs are repeated by the next plan.
    """
    is_active = bool(objects.status(job).get("active"))
    return JobState.of(job).progress is Progress.RUNNING and (is_active or restores_vms(job))


def restores_vms(job: Object) -> bool:
    """Return True for a restore-vm Job."""
    return objects.labels(job).get(LABEL_JOB_TYPE) == JobType.RESTORE_VM


async def orphan(ctx: ReconcileContext, job: Object) -> None:
    """Make the Job independent of the plan. Its attempts stay as they are: a lower limit could end a running one."""
    others = [owner for owner in objects.metadata(job).get("ownerReferences") or [] if owner["uid"] != ctx.owner.uid]
    metadata = {"ownerReferences": others or None, "labels": {LABEL_PLAN: None}}
    patch = MergePatch({"metadata": metadata, "spec": {"ttlSecondsAfterFinished": TTL}})
    with contextlib.suppress(NotFound):
        name, event = objects.name(job), "running Job orphaned"
        await ctx.patch(JOBS, name, patch, namespace=HARVESTER_SYSTEM, metadata_only=True, event=event)


async def wait(ctx: ReconcileContext, jobs: Store) -> Waiting | None:
    """Return the orphaned Job to wait for; once none runs, remove them, because their names may be needed."""
    orphaned = [job for job in jobs.list() if LABEL_PLAN not in objects.labels(job)]
    running = [job for job in orphaned if JobState.of(job).progress is Progress.RUNNING and not restores_vms(job)]
    if running:
        name = min(map(objects.name, running))
        message = (
            f"Job {HARVESTER_SYSTEM}/{name} of an UpgradePlan that has ended still runs. Wait until it finishes; "
            f"if it hangs, delete it: kubectl delete job -n {HARVESTER_SYSTEM} {name}"
        )
        return Waiting(message=message)
    finished = [state for state in map(JobState.of, orphaned) if state.progress is not Progress.RUNNING]
    await run_all(*(ctx.remove(JOBS, job.name, namespace=job.namespace, uid=job.uid) for job in finished))
    return None
