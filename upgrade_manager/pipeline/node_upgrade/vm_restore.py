"""The Jobs that restart the VMs that were shut down for a node's upgrade, as best effort.

A permanent failure is reported in a Warning event and the node's message, and the upgrade continues. Only the clean-up
waits for these Jobs, because it removes them. The toolkit lists the VMs by node in a ConfigMap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.conditions import MAX_MESSAGE
from upgrade_manager.api.keys import HARVESTER_SYSTEM, JobType
from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.api.phases import FAILED
from upgrade_manager.blockers.job_failures import job_failure_message
from upgrade_manager.facts.job_state import JobState, Progress, restores_vms
from upgrade_manager.facts.vm_start import not_restarted
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, Terminal
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS
from upgrade_manager.pipeline import job_ledger, ledger
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.resources.jobs import node_job_name, restore_job
from upgrade_manager.resources.owner import plan_uid
from upgrade_manager.resources.restore_list import is_list_of, listed_vms, ownership

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

EVENT_REASON = "RestoreVMFailed"
log = structlog.get_logger(__name__)


async def start_of_left(ctx: ReconcileContext, nodes: Iterable[str]) -> None:
    """Create the Jobs that start the VMs of nodes that have left for good elsewhere, each once.

    KubeVirt chooses their nodes. A VM that needs its former node stays a blocker until a user stops or changes it.
    """
    owing = {entry.get("node") for entry in ledger.entries(ctx, LedgerKind.STOPPED_VM)}
    left = [node for node in nodes if node in owing] if ctx.plan.spec.restore_vm else []
    existing = {job.name for job in await _jobs(ctx)} if left else set()
    for node in left:
        if _job_name(ctx, node) not in existing:
            await start(ctx, node, request="", has_left=True)


async def start(ctx: ReconcileContext, node: str, *, request: str, has_left: bool = False) -> None:
    """Create the node's Job for that request, if VMs are listed for the node.

    Raises KubeError only for retryable errors.
    """
    vms: list[str] = []
    try:
        found = await _own_list(ctx)
        vms = listed_vms(found, node) if found is not None else []
        if found is not None and vms:
            await _label(ctx, found)
            job = restore_job(ctx.owner, ctx.job_settings, node=node, request=request, has_left=has_left)
            await ctx.ensure(JOBS, job)
    except (Terminal, ForeignObject) as error:
        _warn(ctx, node, str(error), vms)


async def label_list(ctx: ReconcileContext) -> None:
    """Tie the ConfigMap to the plan by labels alone, if the ConfigMap exists and can be read."""
    try:
        found = await _own_list(ctx) if _may_have_list(ctx) else None
    except Terminal as error:
        log.warning("list of stopped VMs cannot be read", error=str(error))
        return
    if found is not None:
        await _label(ctx, found)


async def _label(ctx: ReconcileContext, found: Object) -> None:
    """Label the ConfigMap; ignore a refusal, which must not keep VMs off, because labels are not required."""
    metadata = ownership(found, ctx.raw)
    if not metadata:
        return
    try:
        await ctx.mark(CONFIG_MAPS, objects.name(found), metadata, namespace=HARVESTER_SYSTEM)
    except (Terminal, Conflict) as error:
        log.warning("list of stopped VMs not labeled", error=str(error))


async def report_failures(ctx: ReconcileContext) -> None:
    """Record a Warning event and the node's message for each failed Job, once."""
    failing = {job.name: job for job in await _jobs(ctx) if job.is_failing}
    if not failing:
        return
    for node in sorted(ctx.status.known_nodes()):
        job = failing.get(_job_name(ctx, node))
        if job is not None and ctx.status.node_reason(node) != EVENT_REASON:
            cause = await job_failure_message(ctx.client, job)
            _warn(ctx, node, cause, await _listed_vms(ctx, node))


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
    """Return the uid of the Job's plan, and its state if it restores VMs."""
    return plan_uid(job), JobState.of(job) if restores_vms(job) else None


async def discard_stale_list(ctx: ReconcileContext) -> None:
    """Remove the ConfigMap of an earlier plan of that name, before the toolkit writes this plan's."""
    found = await _find_list(ctx) if ctx.plan.spec.restore_vm else None
    if found is not None and not is_list_of(found, ctx.raw):
        await ctx.remove(CONFIG_MAPS, objects.name(found), namespace=HARVESTER_SYSTEM, uid=objects.uid(found))


async def report_stopped(ctx: ReconcileContext) -> None:
    """Name the VMs of nodes whose upgrade has not ended, before an early end of the plan removes their list."""
    try:
        found = await _own_list(ctx) if ctx.plan.spec.restore_vm else None
    except Terminal as error:
        # The error must hold up neither the restoration of the settings nor the deletion of the plan.
        log.warning("list of stopped VMs cannot be read", error=str(error))
        return
    if found is None:
        return
    for node in sorted(objects.mapping(found, "data")):
        state, vms = ctx.status.node_state(node), listed_vms(found, node)
        if vms and (state is None or not state.upgraded) and ctx.status.node_reason(node) != EVENT_REASON:
            _name_all(ctx, node, vms)


def _name_all(ctx: ReconcileContext, node: str, vms: Sequence[str]) -> None:
    """Name every VM in events, because the list of the VMs goes with the plan."""
    may_retry = ctx.status.phase == FAILED and not objects.is_deleting(ctx.raw)
    until = "restarted only after a retry" if may_retry else "not restarted"
    text = f"Node {node} is not upgraded: VMs that were shut down for it are {until}. Start those that are off"
    ctx.events.vms(ctx.raw, EVENT_REASON, text, vms)
    message = f"{text}: {', '.join(vms)}. {ctx.status.node_message(node)}".removesuffix(". ")
    ctx.status.warn_node(node, EVENT_REASON, message, limit=MAX_MESSAGE)


async def release_list(ctx: ReconcileContext, readers: Iterable[Object]) -> None:
    """Make the Jobs that still read the ConfigMap its owners; remove the ConfigMap without such Jobs."""
    found = await _own_list(ctx) if _may_have_list(ctx) else None
    if found is not None:
        await job_ledger.hand_over(ctx, found, readers, mark=ownership(found, ctx.raw))


def _may_have_list(ctx: ReconcileContext) -> bool:
    """Return True if spec.restoreVM is or may have been set: the generation shows that the spec has changed.

    A deletion increases the generation, too.
    """
    unchanged = 2 if objects.is_deleting(ctx.raw) else 1
    return ctx.plan.spec.restore_vm or objects.metadata(ctx.raw).get("generation", 0) > unchanged


async def _find_list(ctx: ReconcileContext) -> Object | None:
    return await ctx.client.find(CONFIG_MAPS, restore_vm_config_map(ctx.owner.name), namespace=HARVESTER_SYSTEM)


async def _own_list(ctx: ReconcileContext) -> Object | None:
    """Return the plan's ConfigMap; None if it does not exist or belongs to an earlier plan."""
    found = await _find_list(ctx)
    return found if found is not None and is_list_of(found, ctx.raw) else None


async def _listed_vms(ctx: ReconcileContext, node: str) -> list[str]:
    """Return the node's VMs in the plan's ConfigMap; nothing without a ConfigMap."""
    found = await _own_list(ctx)
    return listed_vms(found, node) if found is not None else []


def _job_name(ctx: ReconcileContext, node: str) -> str:
    return node_job_name(ctx.owner, node=node, job_type=JobType.RESTORE_VM)


def _warn(ctx: ReconcileContext, node: str, cause: str, vms: Sequence[str]) -> None:
    name = _job_name(ctx, node)
    message = not_restarted(name, cause=cause, vms=vms)
    ctx.events.warning(ctx.raw, EVENT_REASON, message, about=name)
    ctx.status.warn_node(node, EVENT_REASON, message)
