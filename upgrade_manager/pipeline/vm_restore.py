"""The Jobs that restart the VMs that were shut down for a node's upgrade. Best effort.

A permanent failure is reported in a Warning event, and the upgrade continues. Only the clean-up waits for these Jobs,
because it removes them.
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
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.resources.jobs import node_job_name, restore_job

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

EVENT_REASON = "RestoreVMFailed"


async def start(ctx: ReconcileContext, node: str) -> None:
    """Create the node's Job, if VMs are listed for the node. Raises KubeError only for retryable errors."""
    name = node_job_name(ctx.owner, node=node, job_type=JobType.RESTORE_VM)
    try:
        if await _has_vms(ctx, node):
            await ctx.ensure(JOBS, restore_job(ctx.owner, ctx.job_settings, node=node))
    except (Terminal, ForeignObject) as error:
        _warn(ctx, name, str(error))


async def report_failures(ctx: ReconcileContext) -> None:
    """Record a Warning event for each failed Job, once."""
    for job in await _jobs(ctx):
        if job.is_failing and not ctx.events.has_warned(ctx.raw, EVENT_REASON, about=job.name):
            _warn(ctx, job.name, await job_failure_message(ctx.client, job))


async def unfinished(ctx: ReconcileContext) -> list[JobState]:
    """Return the Jobs that may still succeed."""
    return [job for job in await _jobs(ctx) if job.progress is Progress.RUNNING and not job.is_failing]


async def _jobs(ctx: ReconcileContext) -> list[JobState]:
    """Return the plan's restore-vm Jobs; none unless spec.restoreVM is set."""
    if not ctx.plan.spec.restore_vm:
        return []
    jobs = (await ctx.watch(UPGRADE_JOBS)).derive(_restore_job)
    return [job for owner, job in jobs if job is not None and owner == ctx.owner.uid]


def _restore_job(job: Object) -> tuple[str, JobState | None]:
    """Return the Job's owner, and its state if it restores VMs."""
    restores = objects.labels(job).get(LABEL_JOB_TYPE) == JobType.RESTORE_VM
    return objects.owner_uid(job), JobState.of(job) if restores else None


async def _has_vms(ctx: ReconcileContext, node: str) -> bool:
    """Return True if the toolkit has listed VMs for the node; without a list there are none."""
    name = restore_vm_config_map(ctx.owner.name)
    found = await ctx.find(CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM)
    listed = ((found or {}).get("data") or {}).get(node) or ""
    return any(part.strip() for part in listed.split(","))


def _warn(ctx: ReconcileContext, job: str, cause: str) -> None:
    command = f"kubectl get configmap -n {HARVESTER_SYSTEM} {restore_vm_config_map(ctx.owner.name)} -o yaml"
    message = (
        f"Job {HARVESTER_SYSTEM}/{job}: restarting VMs failed; the upgrade continues. "
        f"Start the VMs that are off ({command} lists them by node). Cause: {cause}"
    )
    ctx.events.warning(ctx.raw, EVENT_REASON, message, about=job)
