"""reconciler.py starts a plan here, or the next attempt of a failed one, unless something holds the cluster.

plan_queue.py and holders.py have what may hold it; until then the plan waits in the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import LABEL_ACTIVE
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline import attempt, holders, pause, plan_queue
from upgrade_manager.pipeline.holders import Place
from upgrade_manager.pipeline.outcome import Completed, Failed
from upgrade_manager.pipeline.phases import toolkit_image
from upgrade_manager.runtime.result import Done, Requeue, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from upgrade_manager.facts.holders import Holder
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.engine import Engine
    from upgrade_manager.runtime.result import Result

#: Seconds between two runs of the checks before an attempt.
CHECK_RETRY = 5.0
log = structlog.get_logger(__name__)


class Acceptance:
    """Starts plans and attempts, one at a time. A write of a start is never sent while another plan may run."""

    def __init__(
        self,
        *,
        engine: Engine,
        plans: Store,
        failing: Collection[str],
        context: Callable[[Object], ReconcileContext],
        persist: Callable[[ReconcileContext], Awaitable[None]],
        wait_for_caches: Callable[[ReconcileContext], Awaitable[bool]],
    ) -> None:
        self._engine = engine
        #: The cache of all plans, and the uids of those whose last reconcile has raised an error.
        self._plans = plans
        self._failing = failing
        #: Returns the context of another plan.
        self._context = context
        self._persist = persist
        self._wait_for_caches = wait_for_caches

    async def accept(self, ctx: ReconcileContext) -> Result | None:
        """Start the upgrade; return a result if the plan waits in the queue, or has left it for good."""
        others, holder = await self._ask(ctx)
        if holder is not None:
            return await self._queue(ctx, holder)
        await self._start(ctx, others)
        return None

    async def _start(self, ctx: ReconcileContext, others: list[Object]) -> None:
        await self._hold_others(ctx, others)
        await ctx.claim()
        ctx.record_creator()
        await self._engine.begin(ctx)
        plan_queue.leave(ctx)
        ctx.status.accept(PhaseName.INITIALIZE.active, ctx.target)
        ctx.status.waiting(self._engine.initial_message(ctx))
        await self._persist(ctx)
        log.info("upgrade started")
        # An earlier version has not created objects for this plan.
        ctx.informers.is_taken_over = True

    async def resume(self, ctx: ReconcileContext) -> Result | Failed:
        """Begin the next attempt of a plan that has failed and has ended; return Failed if a check refuses it."""
        late = attempt.superseded(ctx)
        if late is not None:
            return await self._refuse(ctx, late)
        # The caller, or a later step, writes the end of a pause before anything begins.
        await pause.ended(ctx)
        if ctx.plan.spec.paused:
            await ctx.deactivate()
            plan_queue.pause(ctx)
            after = pause.hold_attempt(ctx)
            await self._persist(ctx)
            return Done() if after is None else RequeueAfter(after)
        others, holder = await self._ask(ctx)
        if holder is not None:
            return await self._queue(ctx, holder)
        return await self._check(ctx, others)

    async def _check(self, ctx: ReconcileContext, others: list[Object]) -> Result | Failed:
        """Begin the attempt if the checks permit it. A plan that was refused in the queue starts like a new one."""
        if not attempt.was_accepted(ctx):
            attempt.begin(ctx)
            await self._start(ctx, others)
            return Requeue()
        checked = await attempt.check(ctx, self._engine)
        if isinstance(checked, Failed):
            return await self._refuse(ctx, checked)
        if isinstance(checked, Completed):
            return await self._begin_attempt(ctx, others)
        plan_queue.check(ctx, checked.message)
        await self._persist(ctx)
        return RequeueAfter(checked.after or CHECK_RETRY)

    async def _begin_attempt(self, ctx: ReconcileContext, others: list[Object]) -> Result | Failed:
        await self._hold_others(ctx, others)
        await ctx.hold(active=True)
        # The end of an attempt that this version has recorded has labelled what an earlier version created.
        ctx.informers.is_taken_over = bool(ctx.status["attempts"])
        plan_queue.leave(ctx)
        attempt.begin(ctx)
        failed = await self._engine.resume(ctx)
        if failed is not None:
            return failed
        await self._persist(ctx)
        toolkit_image.report(ctx)
        log.info("attempt begins", attempt=ctx.owner.attempt)
        return Requeue()

    async def _refuse(self, ctx: ReconcileContext, failed: Failed) -> Result:
        plan_queue.leave(ctx)
        pause.end(ctx)
        await attempt.refuse(ctx, failed)
        await self._persist(ctx)
        ctx.events.phases(ctx.raw, [FAILED])
        log.error("attempt refused", cause=failed.message)
        return Done()

    async def _ask(self, ctx: ReconcileContext) -> tuple[list[Object], Holder | None]:
        """Return the other plans, and what holds the cluster.

        A plan that is in the queue sends no request while the caches show a holder. Before a start, plans are listed
        from the API server, because their cache may be stale.
        """
        known = [plan for plan in self._plans.list() if objects.uid(plan) != ctx.owner.uid]
        holder = plan_queue.first(ctx, known, failing=self._failing) if ctx.status["queuedSince"] else None
        holder = holder or await holders.first(ctx, Place.START)
        if holder is not None and ctx.status["queuedSince"]:
            return known, holder
        plans = (await ctx.client.list(UPGRADE_PLANS)).items
        others = [plan for plan in plans if objects.uid(plan) != ctx.owner.uid]
        return others, plan_queue.first(ctx, others, failing=self._failing) or holder

    async def _queue(self, ctx: ReconcileContext, holder: Holder) -> Result:
        await ctx.deactivate()
        if plan_queue.is_over(ctx):
            failed = plan_queue.too_late(holder)
            if ctx.status.ended:
                return await self._refuse(ctx, failed)
            plan_queue.refuse(ctx, failed)
            await self._persist(ctx)
            log.error("upgrade refused", cause=failed.message)
            return Done()
        is_new = not ctx.status["queuedSince"]
        delay = await plan_queue.wait(ctx, holder)
        await self._persist(ctx)
        if is_new:
            log.warning("upgrade waits", holder=str(holder))
        ctx.events.blocked(ctx.raw)
        await ctx.informers.prune()
        return RequeueAfter(delay)

    async def _hold_others(self, ctx: ReconcileContext, others: Iterable[Object]) -> None:
        """Write to the plans without a decision, which their next reconcile makes, and remove the label of other plans.

        A write that accepts another plan may have timed out, in this or an earlier process, and arrive later. The write
        conflicts, because it is pinned to an older resourceVersion. An ended plan keeps the label of the active plan if
        its clean-up is refused; any plan may have the label from its manifest.
        """
        for plan in others:
            is_decided = not plan_queue.waits(plan)
            if is_decided and LABEL_ACTIVE not in objects.labels(plan):
                continue
            other = self._context(plan)
            try:
                await other.deactivate()
                if not is_decided:
                    plan_queue.hold(other, ctx)
                    await self._persist(other)
            except NotFound:
                continue
            await self._wait_for_caches(other)
