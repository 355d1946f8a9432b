"""Jobs that run at the end of their plan continue, because a Pod may be writing a node's OS.

The Jobs' labels stay: a Job is orphaned when the plan of its uid does not exist or has ended. A TTL removes the ended
Job together with the upgrade repository (repository_handover.py). The next plan waits for these Jobs before it creates
Jobs. `cleanup.py` orphans them at the end of a plan, `leftovers.py` after a deletion without the clean-up.
"""

from __future__ import annotations

import contextlib
from itertools import chain
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    FINALIZER,
    HARVESTER_SYSTEM,
    LABEL_COMPONENT,
    LABEL_JOB_TYPE,
    LABEL_NODE,
    JobType,
)
from upgrade_manager.blockers.jobs import job_wait
from upgrade_manager.facts.job_state import JobState, can_run, may_write_node, restores_vms
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, UPGRADE_PLANS
from upgrade_manager.nodes.expected_times import USUAL
from upgrade_manager.pipeline import write_log
from upgrade_manager.pipeline.blocker_report import resumed_wait
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.resources.owner import plan_uid
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.client import Client
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
    return can_run(job) and (is_active or restores_vms(job))


async def orphan(client: Client, job: Object) -> None:
    """Set a TTL on the Job. The limit of attempts stays, because a lower limit could end a running attempt."""
    if objects.spec(job).get("ttlSecondsAfterFinished") == TTL:
        return
    name, patch = objects.name(job), MergePatch({"spec": {"ttlSecondsAfterFinished": TTL}})
    with contextlib.suppress(NotFound):
        await client.patch(JOBS, name, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
        write_log.patched(JOBS, name, patch, namespace=HARVESTER_SYSTEM, event="running Job orphaned")


async def wait(ctx: ReconcileContext, jobs: Store) -> Waiting | None:
    """Return the wait for a running orphaned Job; once no such Job runs, remove orphaned Jobs, to free their names.

    The blocker has the command that ends the Job: a Job that does not take long needs no end by hand.
    No other plan runs, so that a Job of another uid is either orphaned or kept after its failure.
    """
    orphaned = [job for job in jobs.list() if not ctx.owner.owns(job)]
    running = [job for job in orphaned if may_write_node(job)]
    if running:
        first = min(running, key=objects.name)
        state = JobState.of(first).describe()
        message = f"Job {HARVESTER_SYSTEM}/{objects.name(first)} of an UpgradePlan that has ended: {state}"
        return Waiting(message=message, waits=tuple(chain.from_iterable(waits(ctx, job) for job in running)))
    left = await _removable(ctx, [job for job in orphaned if not can_run(job)])
    await run_all(
        *(ctx.remove(JOBS, objects.name(job), namespace=HARVESTER_SYSTEM, uid=objects.uid(job)) for job in left)
    )
    return None


def waits(ctx: ReconcileContext, job: Object) -> Iterable[Wait]:
    """Return the waits for a Job whose plan has ended, or is being deleted."""
    labels, state = objects.labels(job), JobState.of(job)
    types = (labels.get(LABEL_JOB_TYPE, ""), labels.get(LABEL_COMPONENT, ""))
    work, node = next((one for one in types if one in USUAL), JobType.POST_DRAIN), labels.get(LABEL_NODE, "")
    way_out = delete_command(job)
    return resumed_wait(ctx, state, work=work, node=node) or job_wait(state, work=work, node=node, way_out=way_out)


def delete_command(job: Object) -> str:
    """Return the command that ends the Job."""
    return f"kubectl delete job -n {HARVESTER_SYSTEM} {objects.name(job)}"


async def _removable(ctx: ReconcileContext, jobs: list[Object]) -> list[Object]:
    """Return the Jobs that no plan keeps. A plan keeps Jobs that it controls, and all its Jobs until its clean-up."""
    if not jobs:
        return []
    plans = (await ctx.client.list(UPGRADE_PLANS, metadata_only=True)).items
    existing = {objects.uid(plan) for plan in plans}
    cleaning = {objects.uid(plan) for plan in plans if FINALIZER in objects.finalizers(plan)}
    return [job for job in jobs if objects.owner_uid(job) not in existing and plan_uid(job) not in cleaning]
