"""Makes the changes of all hosts that precede the manager's Jobs, and undoes them, each by a Plan on every node.

cluster_upgrade.py and guarded_nodes.py make the changes; guarded_nodes.py, the reconciler at a success, and
host_ending.py at any other end undo them. The table is ../host_changes.py.

The entry in the ledger, the Plans and their Jobs decide alone, so that each function may be interrupted and repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, Component
from upgrade_manager.api.phases import FAILED
from upgrade_manager.blockers.wait import PlanWait
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.suc_nodes import labelled_nodes
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SUC_PLANS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.ending import failed_jobs
from upgrade_manager.pipeline.host_changes import CHANGES, SKIP, HostChange
from upgrade_manager.pipeline.node_upgrade.managed_nodes import left_out
from upgrade_manager.pipeline.node_upgrade.missing_nodes import find_missing_of
from upgrade_manager.pipeline.node_upgrade.waits import missing_wait
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases import multus_job
from upgrade_manager.pipeline.phases.plan_jobs import (
    PlanJob,
    Work,
    colliding_nodes,
    create_plan,
    follow_plan,
    long_name_message,
)
from upgrade_manager.pipeline.selections import MANAGED_NODES, suc_jobs, suc_plans
from upgrade_manager.resources.suc_plan import script_plan

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labelled:
    """Implements NodeRecord without node states, by the nodes that have the Plan's label."""

    done: frozenset[str]

    def record(self, ctx: ReconcileContext, node: str, progress: Progress, *, message: str = "") -> None:
        """See NodeRecord."""
        _ = (ctx, node, progress, message)

    def shows(self, ctx: ReconcileContext, node: str, progress: Progress) -> bool:
        """See NodeRecord; a node that is off counts as one on which the Plan runs."""
        _ = ctx
        return (node in self.done) is (progress is Progress.COMPLETE)


async def apply(ctx: ReconcileContext, change: HostChange) -> PhaseResult:
    """Make the change on every node; it is recorded before the Plan is created."""
    waiting = await _missing(ctx, change)
    if waiting is not None:
        return waiting
    if (await _plan(ctx, change.apply)) is None:
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        too_long = long_name_message(nodes)
        if too_long:
            # The change protects what goes well nearly always, and the name cannot be changed.
            text = f"{too_long}. The {change.works[change.apply]} is left out"
            ctx.events.warning(ctx.raw, "HostChangeSkipped", text, about=change.id)
            return Completed()
        if change.entry(ctx) is None:
            ledger.put(ctx, [change.new_entry(ctx)])
            # The message is that of the new Plan, which saves a write.
            begun = Waiting(message=_work(ctx, change, change.apply).on(0, len(nodes)), waits=())
            begun = _detailed(ctx, change, change.apply, begun)
            ctx.status.waiting(begun.message, begun.detail)
        await ctx.persist()
    return await _run(ctx, change, change.apply)


async def _missing(ctx: ReconcileContext, change: HostChange) -> Waiting | None:
    """Return the wait for nodes of the upgrade that Plans do not select; none on a single node."""
    if ctx.status["singleNode"] is not None:
        return None
    absent = await left_out(ctx, map(objects.name, (await ctx.watch(MANAGED_NODES)).list()))
    found = await find_missing_of(ctx, absent) if absent else {}
    if not found:
        return None
    name, why = next(iter(found.items()))
    waits = tuple(missing_wait(ctx, node, missing) for node, missing in found.items())
    return Waiting(
        message=f"{_message(ctx, change, change.apply)}: waiting for node {name}", detail=str(why), waits=waits
    )


async def discard(ctx: ReconcileContext, change: HostChange) -> bool:
    """Remove the Plan that made the change, with its Jobs; return True once none of these can run.

    After a failure, the failed Jobs stay and belong to the UpgradePlan.
    """
    found, keeps_failed = await _plan(ctx, change.apply), ctx.status.phase == FAILED
    if found is not None:
        if keeps_failed:
            await failed_jobs.take_over(ctx, change.apply)
        await ctx.remove_all(SUC_PLANS, namespace=CATTLE_SYSTEM, selector=ctx.owner.suc_selector(change.apply))
    jobs = (await ctx.watch(suc_jobs(ctx.owner))).derive(PlanJob.of)
    owners = {job.owner for job in jobs if job.component == change.apply}
    if keeps_failed and ctx.owner.uid in owners:
        # Also without the Plan: its removal may have been the last request before a crash.
        await failed_jobs.remove_ttl(ctx, change.apply)
    return found is None and owners <= {ctx.owner.uid}


async def record_before_undo(ctx: ReconcileContext) -> None:
    """Write the phase that is complete before its changes are undone; a run after a crash must not make them again."""
    if not ctx.status.unwritten_phases():
        return
    begun = [change for change in CHANGES if change.entry(ctx) is not None and await _plan(ctx, change.apply)]
    if begun:
        # The message is that of the undoing, which saves a write.
        ctx.status.waiting("; ".join(_removal_wait(ctx, change).message for change in begun))
        await ctx.persist()


async def undo(ctx: ReconcileContext, *, succeeds: bool) -> Waiting | None:
    """Undo all changes that have begun, on every node; return the wait, None once nothing can be done any more.

    The entry of a change whose Plan fails stays, and is named by the caller. A success waits for RKE2, too.
    """
    waits = [
        waiting
        for change in CHANGES
        if change.entry(ctx) is not None and (waiting := await _undo(ctx, change, succeeds=succeeds)) is not None
    ]
    if not waits:
        return None
    times = [waiting.after for waiting in waits if waiting.after is not None]
    return replace(
        waits[0],
        message="; ".join(waiting.message for waiting in waits),
        waits=tuple(wait for waiting in waits for wait in waiting.waits),
        after=min(times, default=None),
    )


async def _undo(ctx: ReconcileContext, change: HostChange, *, succeeds: bool) -> Waiting | None:
    if not ctx.status["toolkitImage"]:
        return None
    if not await discard(ctx, change):
        # A Job that starts late must not make the change again.
        return _removal_wait(ctx, change)
    result = await _run(ctx, change, change.undo)
    if isinstance(result, Waiting):
        return result
    if isinstance(result, Failed):
        ctx.events.warning(ctx.raw, "HostChangeLeft", result.message, about=change.id)
        return None
    if succeeds and change is SKIP:
        jobs = (await ctx.watch(suc_jobs(ctx.owner))).derive(PlanJob.of)
        times = [job.state.completed for job in jobs if job.component == change.undo]
        waiting = await multus_job.wait(ctx, since=max(times, default=""))
        if waiting is not None:
            return waiting
    ledger.settle(ctx, [change.id])
    return None


def _removal_wait(ctx: ReconcileContext, change: HostChange) -> Waiting:
    name = ctx.owner.name_of(change.apply)
    wait = PlanWait(namespace=CATTLE_SYSTEM, name=name, since=ctx.now())
    return Waiting(message=f"Plan {CATTLE_SYSTEM}/{name}: waiting for its removal", waits=(wait,))


async def _run(ctx: ReconcileContext, change: HostChange, component: Component) -> PhaseResult:
    """Create the Plan once, then follow it to its end."""
    work, name = _work(ctx, change, component), ctx.owner.name_of(component)
    plan = await _plan(ctx, component)
    if plan is not None:
        jobs = await ctx.watch(suc_jobs(ctx.owner))
        result = await follow_plan(ctx, plan, jobs, states=await _labelled(ctx, name), work=work)
        return _detailed(ctx, change, component, result) if isinstance(result, Waiting) else result
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    if long_name_message(nodes):
        return Failed(cause=f"{work.name} failed: {long_name_message(nodes)}")
    at_once = 1 if colliding_nodes(nodes) else change.concurrency or len(nodes)
    manifest = script_plan(
        ctx.owner, ctx.plan_settings, component, script=change.scripts[component], concurrency=at_once
    )
    return _detailed(ctx, change, component, await create_plan(ctx, manifest, nodes, work=work))


async def _plan(ctx: ReconcileContext, component: Component) -> Object | None:
    """Return this plan's Plan of that component."""
    found = (await ctx.watch(suc_plans(ctx.owner))).get(ctx.owner.name_of(component), CATTLE_SYSTEM)
    return found if found is not None and ctx.owner.owns(found) and not objects.is_deleting(found) else None


async def _labelled(ctx: ReconcileContext, plan: str) -> _Labelled:
    return _Labelled(done=frozenset(labelled_nodes(plan, (await ctx.watch(MANAGED_NODES)).list())))


def _work(ctx: ReconcileContext, change: HostChange, component: Component) -> Work:
    return Work(change.works[component], done=f"{_message(ctx, change, component)} done")


def _message(ctx: ReconcileContext, change: HostChange, component: Component) -> str:
    return f"Plan {CATTLE_SYSTEM}/{ctx.owner.name_of(component)}: {change.works[component]}"


def _detailed(ctx: ReconcileContext, change: HostChange, component: Component, waiting: Waiting) -> Waiting:
    """Move the progress, which changes within seconds, from the message to the detail, which is written less often."""
    head = _message(ctx, change, component)
    detail = waiting.message.removeprefix(head).strip()
    return replace(waiting, message=head, detail=detail)
