"""The end of a plan, which reconciler.py repeats until it is complete: debts are settled, then objects are removed.

ending/ has the steps. A plan that has succeeded owes nothing any more, except settings of an earlier version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.pipeline import blocker_report
from upgrade_manager.pipeline.ending import component_job, held_nodes, passing_on, settlement
from upgrade_manager.pipeline.ending.cleanup import clean_up
from upgrade_manager.pipeline.node_upgrade import vm_restore
from upgrade_manager.pipeline.phases import host_ending
from upgrade_manager.pipeline.settings import earlier_records
from upgrade_manager.pipeline.settings.giving_back import give_back

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.pipeline.context import ReconcileContext

log = structlog.get_logger(__name__)


async def settle(ctx: ReconcileContext, *, persist: Callable[[ReconcileContext], Awaitable[None]]) -> float | None:
    """Give everything back, and name what cannot be; return the seconds to the next attempt, None once that is done."""
    if ctx.status["ledger"] is None:
        await earlier_records.adopt(ctx)
    keep_strategy = await held_nodes.record(ctx)
    writer = await component_job.find(ctx)
    try:
        await give_back(ctx, keep_strategy=keep_strategy, keep_methods=writer is not None)
    except KubeError:
        # `finally` is not used, because a failed write after a cancellation could hide the cancellation.
        await persist(ctx)
        raise
    waits = (await host_ending.undo(ctx), component_job.wait(ctx, writer))
    left = min((one for one in waits if one is not None), default=None)
    if ctx.status.phase != SUCCEEDED and left is None:
        await vm_restore.report_stopped(ctx)
        settlement.name_unrecorded(ctx)
        await passing_on.leave(ctx)
    await persist(ctx)
    return left


async def remove(ctx: ReconcileContext, *, keep_failed_jobs: bool, may_pass: Callable[[Exception], bool]) -> None:
    """Remove the plan's objects."""
    try:
        await clean_up(ctx, keep_failed_jobs=keep_failed_jobs)
    except KubeError as error:
        if not objects.is_deleting(ctx.raw) or may_pass(error):
            raise
        # A refusal must not keep the plan: leftovers.py removes its objects, and the garbage collector dependents.
        log.warning("clean-up refused, continued after the deletion", error=str(error))
        ctx.events.error(ctx.raw, f"{error}. The removal of this plan's objects is retried after its deletion")


async def complete(ctx: ReconcileContext) -> None:
    """Complete the history, then record that the end is complete: a process that dies in between repeats the end."""
    blocker_report.clear(ctx)
    await ctx.events.history.finish(ctx.raw)
    ctx.status.cleaned_up()
