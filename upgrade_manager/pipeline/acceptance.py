"""reconciler.py starts a plan here, or the next attempt of a failed one, unless another plan holds the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.attempts import is_requested
from upgrade_manager.api.in_progress import blocks_next_plan, is_blocked, is_in_progress, wait_command
from upgrade_manager.api.keys import LABEL_ACTIVE
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline import attempt
from upgrade_manager.pipeline.ending import passing_on
from upgrade_manager.pipeline.outcome import Failed, Waiting
from upgrade_manager.pipeline.phases import toolkit_image
from upgrade_manager.runtime.result import Done, Requeue, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.engine import Engine
    from upgrade_manager.runtime.result import Result

#: Seconds between two checks of a failed plan that gives its settings back.
RESTORE_RETRY = 5.0
log = structlog.get_logger(__name__)


class Acceptance:
    """Starts plans and attempts, one at a time. A write of a start is never sent while another plan may run."""

    def __init__(
        self,
        *,
        engine: Engine,
        context: Callable[[Object], ReconcileContext],
        persist: Callable[[ReconcileContext], Awaitable[None]],
        wait_for_caches: Callable[[ReconcileContext], Awaitable[bool]],
    ) -> None:
        self._engine = engine
        #: Returns the context of another plan.
        self._context = context
        self._persist = persist
        self._wait_for_caches = wait_for_caches

    async def accept(self, ctx: ReconcileContext) -> Result | None:
        """Start the upgrade; return a result if another plan holds the cluster.

        A plan that is created during another upgrade is blocked permanently. A plan that is created while a failed plan
        gives its settings back starts afterwards.
        """
        if is_blocked(objects.status(ctx.raw)):
            # The process that blocked the plan may have died before it sent the event, or have written no summary.
            return await self._block(ctx)
        others = await _others(ctx)
        running = next((objects.name(plan) for plan in others if is_in_progress(objects.status(plan))), "")
        if running:
            ctx.status.block(
                f"UpgradePlan {running} was in progress when this plan was created. Delete this plan. "
                f"Wait until {running} has ended: {wait_command(running)}. Then create a new one"
            )
            log.warning("upgrade blocked", other=running)
            return await self._block(ctx)
        ended = next((objects.name(plan) for plan in others if blocks_next_plan(objects.status(plan))), "")
        if ended:
            await ctx.deactivate()
            ctx.status.hold(
                f"Waiting for UpgradePlan {ended}, which has failed, to give the settings back that it changed"
            )
            await self._persist(ctx)
            return RequeueAfter(RESTORE_RETRY)
        await self._hold_others(ctx, others)
        await ctx.claim()
        ctx.record_creator()
        await self._engine.begin(ctx)
        ctx.status.accept(PhaseName.INITIALIZE.active, ctx.target, inherited=passing_on.inherited(others))
        ctx.status["advised"] = passing_on.inherited_advice(others)
        ctx.status.waiting(self._engine.initial_message(ctx))
        await self._persist(ctx)
        log.info("upgrade started")
        # An earlier version has not created objects for this plan, so that only the release may be left.
        ctx.informers.is_taken_over = await passing_on.release(ctx, map(self._context, others))
        return None

    async def resume(self, ctx: ReconcileContext) -> Result | Failed:
        """Begin the next attempt of a plan that has failed and has ended; return Failed if a check refuses it."""
        if ctx.plan.spec.paused:
            ctx.status.hold(f"The next attempt waits for {ctx.owner.name} to be continued: spec.paused is true")
            await self._persist(ctx)
            return Done()
        others = await _others(ctx)
        checked = await attempt.check(ctx, others, self._engine)
        if isinstance(checked, Waiting):
            ctx.status.hold(checked.message)
            await self._persist(ctx)
            return RequeueAfter(checked.after or RESTORE_RETRY)
        if isinstance(checked, Failed):
            await attempt.refuse(ctx, checked)
            await self._persist(ctx)
            ctx.events.phases(ctx.raw, [FAILED])
            log.error("attempt refused", cause=checked.message)
            return Done()
        await self._hold_others(ctx, others)
        await ctx.hold(active=True)
        # The end of an attempt that this version has recorded has labelled what an earlier version created.
        ctx.informers.is_taken_over = bool(ctx.status["attempts"])
        attempt.begin(ctx)
        failed = await self._engine.resume(ctx)
        if failed is not None:
            return failed
        await self._persist(ctx)
        toolkit_image.report(ctx)
        log.info("attempt begins", attempt=ctx.owner.attempt)
        return Requeue()

    async def _block(self, ctx: ReconcileContext) -> Result:
        await ctx.deactivate()
        await self._persist(ctx)
        ctx.events.blocked(ctx.raw)
        return Done()

    async def _hold_others(self, ctx: ReconcileContext, others: Iterable[Object]) -> None:
        """Write to the plans without a decision, which their next reconcile makes, and remove the label of other plans.

        A write that accepts another plan may have timed out, in this or an earlier process, and arrive later. The write
        conflicts, because it is pinned to an older resourceVersion. An ended plan keeps the label of the active plan if
        its clean-up is refused; any plan may have the label from its manifest.
        """
        for plan in others:
            is_decided = (
                (objects.status(plan).get("currentPhase") and not is_requested(plan))
                or objects.is_deleting(plan)
                or is_blocked(objects.status(plan))
            )
            if is_decided and LABEL_ACTIVE not in objects.labels(plan):
                continue
            other = self._context(plan)
            try:
                await other.deactivate()
                if not is_decided:
                    other.status.wait_for_start(ctx.owner.name)
                    await self._persist(other)
            except NotFound:
                continue
            await self._wait_for_caches(other)


async def _others(ctx: ReconcileContext) -> list[Object]:
    """Return the other plans, listed from the API server, because the cache may be stale."""
    plans = (await ctx.client.list(UPGRADE_PLANS)).items
    return [plan for plan in plans if objects.uid(plan) != ctx.owner.uid]
