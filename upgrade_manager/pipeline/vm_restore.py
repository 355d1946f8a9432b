"""VMs that were shut down for a node's sake are started again by a Job of the node's. Best effort.

Whatever goes wrong for good is said by a Warning event, and the upgrade goes on. Nothing waits for these Jobs but the
very end, which removes them: what has not been started again by then would stay off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_JOB_TYPE, JobType
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Terminal
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.pipeline.diagnostics import job_failure_message
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.selections import own_jobs
from upgrade_manager.resources.jobs import node_job_name, restore_job

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

FAILED = "RestoreVMFailed"


async def start(ctx: ReconcileContext, node: str) -> None:
    """Create the node's Job, where VMs are listed for it. Raises KubeError only where another try may help."""
    name = node_job_name(ctx.owner, node=node, job_type=JobType.RESTORE_VM)
    try:
        if await _is_listed(ctx, node):
            await ctx.ensure(JOBS, restore_job(ctx.owner, ctx.job_settings, node=node))
    except (Terminal, ForeignObject) as error:
        _warn(ctx, name, f"the VMs of node {node} cannot be started again: {error}")


async def report(ctx: ReconcileContext) -> None:
    """Tell of the Jobs that have failed, once each."""
    for job in await _jobs(ctx):
        if job.is_failing:
            await _tell(ctx, job)


async def unfinished(ctx: ReconcileContext) -> list[JobState]:
    """The Jobs that still may come to something."""
    return [job for job in await _jobs(ctx) if job.progress is Progress.RUNNING and not job.is_failing]


async def _jobs(ctx: ReconcileContext) -> list[JobState]:
    """None where VMs are not to be started again, or not any more."""
    if not ctx.plan.spec.restore_vm:
        return []
    known = (await ctx.watch(own_jobs(ctx.owner))).derive(_restoring)
    return [job for owner, job in known if job is not None and owner == ctx.owner.uid]


def is_restoring(job: Object) -> bool:
    """Whether it is such a Job, and has not ended."""
    state = _restoring(job)[1]
    return state is not None and state.progress is Progress.RUNNING


def _restoring(job: Object) -> tuple[str, JobState | None]:
    """The Job's owner, and its state where it is such a Job."""
    ours = objects.labels(job).get(LABEL_JOB_TYPE) == JobType.RESTORE_VM
    return objects.owner_uid(job), JobState.of(job) if ours else None


async def _is_listed(ctx: ReconcileContext, node: str) -> bool:
    """Whether the toolkit has listed VMs for the node. A list that is not there lists none."""
    name = restore_vm_config_map(ctx.owner.name)
    found = await ctx.find(CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM)
    listed = ((found or {}).get("data") or {}).get(node) or ""
    return any(part.strip() for part in listed.split(","))


async def _tell(ctx: ReconcileContext, job: JobState) -> None:
    if ctx.events.has_warned(ctx.raw, FAILED, about=job.name):
        return
    _warn(ctx, job.name, f"not all VMs were started again: {await job_failure_message(ctx.client, job)}")


def _warn(ctx: ReconcileContext, job: str, what: str) -> None:
    listing = f"ConfigMap {HARVESTER_SYSTEM}/{restore_vm_config_map(ctx.owner.name)}"
    text = f"{what}; the upgrade goes on, so start those that are off yourself: {listing} names them by node"
    ctx.events.warning(ctx.raw, FAILED, text, about=job)
