"""The debts of a plan that ends early, which pass to the next plan or attempt that passes its checks.

conclusion.py calls it when a plan ends or is deleted, reconciler.py once a plan has passed its checks, and when a
failed one is deleted. Settings do not pass on: they hold up the next plan. KubeVirt's update methods alone do, if a Job
outlives the deletion of its plan for too long (component_job.py). The original of Rancher's strategy passes on
by the annotation of its Cluster (settings/rancher.py), because a copy would be given back by a plan that fails before
its node upgrade. held_nodes.py has the nodes that the hooks hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.advised import merged_advice
from upgrade_manager.api.in_progress import is_in_progress
from upgrade_manager.api.keys import (
    ANNOTATION_LEDGER,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LABEL_JOB_TYPE,
    LABEL_NODE,
    PROVISIONING_CLUSTER,
    TAINT_KUBEVIRT_DRAIN,
)
from upgrade_manager.api.ledger import LEFT, PASSED, LedgerKind, merged, of_kind, recorded_entries
from upgrade_manager.api.next_steps import MAX_NODES
from upgrade_manager.api.phases import FAILED, PhaseName, recorded_phases
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.facts.job_state import can_run
from upgrade_manager.facts.taints import has_drain_taint
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound, PreconditionFailed, Terminal
from upgrade_manager.kube.resources import JOBS, PROVISIONING_CLUSTERS
from upgrade_manager.nodes.sequencing import FIRST_JOBS
from upgrade_manager.pipeline import host_changes, job_ledger, ledger
from upgrade_manager.pipeline.ending import advice, cleanup, component_job, orphaned_jobs, settlement
from upgrade_manager.pipeline.node_upgrade import drain_entries
from upgrade_manager.pipeline.plan_objects import find_cluster
from upgrade_manager.pipeline.selections import MANAGED_NODES, UPGRADE_JOBS
from upgrade_manager.pipeline.settings import left_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

EVENT_REASON = "UpgradeOwes"
log = structlog.get_logger(__name__)


async def owed(ctx: ReconcileContext) -> list[Remedy]:
    """Return what a plan that ends early leaves, with the commands; entries that are settled meanwhile are removed.

    The caller writes the status.
    """
    if not ledger.entries(ctx, *PASSED) and not job_ledger.is_used(ctx):
        return []
    await job_ledger.copy(ctx)
    await settlement.settle_vms(ctx)
    return [*await _taints(ctx), *(Remedy(text) for text in settlement.vms_off(ctx))]


async def leave_all(ctx: ReconcileContext) -> None:
    """Leave what a plan owes that was deleted without its finalizer; a refusal is a line of the log."""
    metadata = {**objects.metadata(ctx.raw), "deletionTimestamp": format_time(ctx.now())}
    try:
        await leave(replace(ctx, raw={**ctx.raw, "metadata": metadata}))
    except (Terminal, Conflict) as error:
        log.warning("debts of a deleted plan not kept", plan=ctx.owner.name, error=str(error))


async def leave(ctx: ReconcileContext) -> None:
    """Keep what a deleted plan owes on Rancher's Cluster, for the next plan, and name it there in a Warning event.

    A plan that has failed keeps its ledger, in which only the VMs are missing that running Jobs may still stop.
    """
    is_deleted = objects.is_deleting(ctx.raw)
    left = await _left(ctx) if is_deleted else []
    steps = [*await _may_stop(ctx), *left]
    entries = ledger.entries(ctx, *LEFT)
    if not is_deleted or not (entries or steps):
        return
    cluster = await find_cluster(ctx.client)
    if cluster is None:
        return
    for step in steps:
        # One event for each, because a message is cut, and a command that is cut would be another one.
        text = f"UpgradePlan {ctx.owner.name} was deleted before it succeeded. {step}"
        ctx.events.warning(cluster, EVENT_REASON, text, about=f"{ctx.owner.uid}/{step}")
    if not entries:
        return
    value = left_entries.value(merged(left_entries.read(cluster), entries))
    metadata, name = {"annotations": {ANNOTATION_LEDGER: value}}, PROVISIONING_CLUSTER
    await ctx.mark(PROVISIONING_CLUSTERS, name, metadata, namespace=FLEET_LOCAL, event="ledger kept for the next plan")


async def _left(ctx: ReconcileContext) -> list[Remedy]:
    """Return what a deleted plan leaves: advised changes are named for the last time, because no plan copies them."""
    changed = await advice.still_changed(ctx, when=advice.AFTER_SUCCESS)
    return [*await owed(ctx), *component_job.owed(ctx), *await host_changes.left(ctx), *changed]


async def _may_stop(ctx: ReconcileContext) -> list[Remedy]:
    """Record and name the VMs that running Jobs may still stop: no plan copies what these Jobs record from now on."""
    if PhaseName.NODE_UPGRADE.active not in ctx.status.recorded_phases():
        return []
    jobs = (await ctx.client.list(JOBS, namespace=HARVESTER_SYSTEM, label_selector=ctx.owner.selector())).items
    draining = {objects.labels(job).get(LABEL_NODE, "") for job in jobs if _stops_vms(job)}
    names = await drain_entries.expect(ctx, draining - {""})
    if not names:
        return []
    return [Remedy(f"Jobs that still run may stop VMs of nodes {name_list(sorted(draining))}: {', '.join(names)}")]


def _stops_vms(job: Object) -> bool:
    return orphaned_jobs.is_running(job) and objects.labels(job).get(LABEL_JOB_TYPE) in FIRST_JOBS


async def _taints(ctx: ReconcileContext) -> list[Remedy]:
    """Name the nodes that keep the taint of a drain, or whose Job may still add it; settle the taints of the others."""
    entries = ledger.entries(ctx, LedgerKind.TAINT)
    if not entries:
        return []
    nodes = await ctx.watch(MANAGED_NODES)
    names = [one.get("node", "") for one in entries]
    kept = [name for name in names if has_drain_taint(nodes.get(name))]
    others = [name for name in names if name not in kept]
    jobs = (await ctx.watch(UPGRADE_JOBS)).list() if others else []
    draining = {objects.labels(job).get(LABEL_NODE, "") for job in jobs if ctx.owner.owns(job) and _may_taint(job)}
    coming = [name for name in others if name in draining]
    await job_ledger.settle(ctx, [one["id"] for one in entries if one.get("node", "") not in {*kept, *coming}])
    return [*_untaint(kept), *map(_untaint_later, coming)]


def _may_taint(job: Object) -> bool:
    return can_run(job) and objects.labels(job).get(LABEL_JOB_TYPE) in FIRST_JOBS


def _untaint(nodes: Sequence[str]) -> Iterator[Remedy]:
    """Yield the command for each of the first nodes, and one for all others."""
    for node in nodes[:MAX_NODES]:
        text = (
            f"Node {node} keeps the taint {TAINT_KUBEVIRT_DRAIN}, with which no VM runs there. The next attempt or "
            "UpgradePlan continues with it; where none follows"
        )
        yield Remedy(text, command=f"kubectl taint node {node} {TAINT_KUBEVIRT_DRAIN}-")
    if others := nodes[MAX_NODES:]:
        names = " ".join(others)
        yield Remedy(
            f"And {len(others)} more nodes keep it", command=f"kubectl taint node {names} {TAINT_KUBEVIRT_DRAIN}-"
        )


def _untaint_later(node: str) -> Remedy:
    text = (
        f"The Job of node {node} still runs, and may add the taint {TAINT_KUBEVIRT_DRAIN}, with which no VM runs there."
        " The next attempt or UpgradePlan continues with it; where none follows, remove it once the Job has ended"
    )
    return Remedy(text, command=f"kubectl taint node {node} {TAINT_KUBEVIRT_DRAIN}-")


def inherited(others: Iterable[Object]) -> list[Entry]:
    """Return the entries of plans that have ended, which a plan copies once it has passed its checks."""
    ended = [objects.status(plan) for plan in others if not is_in_progress(objects.status(plan))]
    return merged([], (entry for status in ended for entry in of_kind(recorded_entries(status), *PASSED)))


def inherited_advice(plans: Iterable[Object]) -> list[dict[str, Any]] | None:
    """Return the advised changes of this plan and of those that have failed, which a plan copies after its checks.

    A plan that has succeeded has named its own in its final message.
    """
    records = [objects.status(plan).get("advised") for plan in plans]
    return merged_advice(records) or None


async def release(ctx: ReconcileContext, others: Iterable[ReconcileContext]) -> bool:
    """Copy what plans that have failed have left; then remove it from them, with payload and commands.

    Until the checks of this plan have passed, an earlier one may have a new attempt. Return False until then, and if a
    plan has changed since it was read, as while it ends: the caller calls it again.
    """
    if PhaseName.INITIALIZE.completed not in recorded_phases(objects.status(ctx.raw)):
        return False
    left = [one for one in others if one.owner.uid != ctx.owner.uid and _left_something(one)]
    if left:
        ledger.put(ctx, inherited(one.raw for one in left))
        ctx.status["advised"] = inherited_advice([ctx.raw, *(one.raw for one in left)])
        # No crash loses them, because they are recorded here before they are removed there.
        await ctx.persist()
    released = [await _release(one, ctx.owner.name, image=ctx.plan.spec.image) for one in left]
    return all(released)


def _left_something(ctx: ReconcileContext) -> bool:
    if ctx.status.phase != FAILED or objects.is_deleting(ctx.raw):
        return False
    owes = bool(ctx.status["advised"] or ctx.status["nextSteps"] or ledger.entries(ctx, *PASSED))
    return owes or PhaseName.NODE_UPGRADE.active in ctx.status.recorded_phases()


async def _remove_payload(ctx: ReconcileContext, *, image: str) -> None:
    """Remove the payload; what is refused goes with the plan's deletion, and the plan is passed on all the same."""
    try:
        await cleanup.remove_payload(ctx, image=image)
    except (Terminal, Conflict) as error:
        log.warning("payload of an earlier plan not removed", plan=ctx.owner.name, error=str(error))


async def _release(ctx: ReconcileContext, successor: str, *, image: str) -> bool:
    try:
        if ctx.status["nextSteps"]:
            # The plan has no new attempt. The steps go last, so that a process that dies in between is followed.
            ctx.status.taken_over(successor)
            await ctx.persist()
            await _remove_payload(ctx, image=image)
            ctx.status["nextSteps"] = None
        ledger.settle(ctx, [entry["id"] for entry in ledger.entries(ctx, *PASSED)])
        ctx.status["advised"] = None
        ctx.status.taken_over(successor)
        await ctx.persist()
    except NotFound:
        log.info("earlier plan not found", plan=ctx.owner.name)
    except PreconditionFailed:
        log.info("earlier plan has changed", plan=ctx.owner.name)
        return False
    except (Terminal, Conflict) as error:
        # The message of an ended plan must not hold up the next one.
        log.warning("earlier plan not updated", plan=ctx.owner.name, error=str(error))
    return True
