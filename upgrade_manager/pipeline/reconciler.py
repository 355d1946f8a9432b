"""controller.py calls it for each plan in its queue; engine.py advances a plan, ending/cleanup.py ends a plan."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import structlog

from upgrade_manager.api.attempts import is_requested
from upgrade_manager.api.in_progress import blocks_next_plan
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, FINALIZER
from upgrade_manager.api.phases import FAILED
from upgrade_manager.blockers.refusals import Refusals
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.nodes.gate import may_pause
from upgrade_manager.pipeline import blocker_report, conclusion, pause, plan_queue, write_log
from upgrade_manager.pipeline.acceptance import Acceptance
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending import failure, passing_on, settlement
from upgrade_manager.pipeline.ending.cleanup import is_finalizing
from upgrade_manager.pipeline.ending.takeover import take_over
from upgrade_manager.pipeline.errors import error_message, is_of_plan
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases import host_plans, toolkit_image
from upgrade_manager.pipeline.settings import earlier_records
from upgrade_manager.pipeline.status_throttle import StatusThrottle
from upgrade_manager.runtime.passing_errors import PassingErrors
from upgrade_manager.runtime.result import Done, Requeue, RequeueAfter, RetryError
from upgrade_manager.runtime.time_limit import RECONCILE_TIMEOUT, time_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ParsedPlan, Services
    from upgrade_manager.pipeline.engine import Engine
    from upgrade_manager.pipeline.informers import Informers
    from upgrade_manager.pipeline.outcome import PhaseResult
    from upgrade_manager.runtime.result import Result

#: The result of `_reportable`.
_Reportable: TypeAlias = "tuple[Object, Any, Any, Any]"
#: Seconds for the write that records an error.
RECORD_TIMEOUT = 10.0
#: Seconds until the next reconcile if the caches do not show the manager's own writes in time.
STALE_CACHE_RETRY = 1.0
log = structlog.get_logger(__name__)


class PlanReconciler:
    """Reconciles one UpgradePlan by name: reads the cached plan, advances the engine, writes the status.

    The reconciler is the only writer of a plan's status. One worker reconciles the plans, one at a time.
    """

    def __init__(
        self,
        *,
        plans: Informer,
        informers: Informers,
        engine: Engine,
        services: Services,
        owing: dict[str, Object],
        requeue_after: Callable[[str, float], None],
    ) -> None:
        self._plans = plans
        self._informers = informers
        self._engine = engine
        self._services = services
        #: Plans, by name, that were deleted with debts.
        self._owing = owing
        #: Adds a plan to the work queue in so many seconds, or earlier if its retry is due earlier.
        self._requeue_after = requeue_after
        self._throttle = StatusThrottle(now=services.clock.monotonic)
        #: The resourceVersion, by plan, of the newest write that the cache does not show yet.
        self._unseen: dict[str, str] = {}
        self._passing = PassingErrors()
        self._refusals = Refusals()
        #: The uids of plans whose last reconcile has raised an error.
        self._failing: set[str] = set()
        #: The plan, by uid, as its last reconcile has parsed it.
        self._parsed: dict[str, ParsedPlan] = {}
        #: The reportable fields of the plan, by uid, at this process's last report.
        self._reported: dict[str, _Reportable] = {}
        self._acceptance = Acceptance(
            engine=engine,
            plans=plans.store,
            failing=self._failing,
            context=self._context,
            persist=self._persist,
            wait_for_caches=self._wait_for_caches,
        )

    async def reconcile(self, name: str) -> Result:
        """Reconcile the plan of that name. Errors that are retried are recorded on the plan, then raised."""
        if not await self._is_fresh(name):
            return RequeueAfter(STALE_CACHE_RETRY, is_reconciled=False)
        plan = self._plans.store.get(name)
        if name in self._owing:
            await self._leave(self._owing[name], has_next=plan is not None)
        await self._informers.drop(name, unless="" if plan is None else objects.uid(plan))
        if plan is None:
            self._forget_deleted()
            return Done(is_deleted=True)
        # The key is the plan's name.
        structlog.contextvars.unbind_contextvars("key")
        structlog.contextvars.bind_contextvars(plan=name)
        return await self._reconcile_plan(plan)

    async def _is_fresh(self, name: str) -> bool:
        """Return True if the cache shows the manager's last write: a stale plan could resume an ended upgrade."""
        if name in self._unseen and not await self._plans.wait_for_version(self._unseen[name]):
            return False
        self._unseen.pop(name, None)
        return True

    async def _leave(self, deleted: Object, *, has_next: bool) -> None:
        """Name what a deleted plan owes, and keep it for the next plan.

        A refusal does not hold up a plan that has the same name by now, and that may mend what refuses it.
        """
        name = objects.name(deleted)
        await self._informers.drop(name, unless=objects.uid(deleted))
        try:
            async with time_limit(RECONCILE_TIMEOUT):
                await passing_on.leave_all(self._context(deleted))
        except (KubeError, RetryError) as error:
            if not has_next:
                raise
            log.warning("debts of a deleted plan not kept", plan=name, error=str(error))
        del self._owing[name]

    def _forget_deleted(self) -> None:
        """Forget deleted plans, because the process of the manager runs for months."""
        uids = {objects.uid(plan) for plan in self._plans.store.list()}
        self._passing.keep(uids)
        self._refusals.keep(uids)
        self._failing &= uids
        self._parsed = {uid: parsed for uid, parsed in self._parsed.items() if uid in uids}
        self._reported = {uid: reported for uid, reported in self._reported.items() if uid in uids}
        self._services.events.keep(uids)
        self._services.metrics.keep(uids)

    async def _reconcile_plan(self, plan: Object) -> Result:
        uid = objects.uid(plan)
        informers = self._informers.of(objects.name(plan), uid=uid)
        ctx = ReconcileContext.of(plan, self._services, informers, known=self._parsed.get(uid))
        write_log.in_phase(ctx.status.phase)
        began = ctx.status.phase
        self._replay(ctx)
        try:
            async with time_limit(RECONCILE_TIMEOUT):
                result = await self._step(ctx)
            self._succeeded(ctx)
        except Exception as error:
            self._failing.add(uid)
            if ctx.status.phase != began:
                # The waits of the earlier phase are over.
                blocker_report.clear(ctx)
            known_since = partial(blocker_report.refused_since, ctx)
            self._refusals.record(ctx.owner.uid, error, known_since=known_since, now=ctx.now())
            if not self._passing.passes(ctx.owner.uid, error):
                if is_of_plan(error):
                    # The API server would refuse the changes again, together with the report of the error.
                    ctx.status.rebase(ctx.raw)
                await self._degrade(ctx, error)
                await self._wait_for_caches(ctx)
                self._retry_when_overdue(ctx)
                raise
            result = Requeue()
        return result if await self._wait_for_caches(ctx) else RequeueAfter(STALE_CACHE_RETRY, is_reconciled=False)

    def _replay(self, ctx: ReconcileContext) -> None:
        """Report the phases and the image that the plan has recorded, unless this process has reported them.

        After a crash, a lost response or a late write of the previous leader, recorded phases may lack their events and
        durations.
        """
        recorded = _reportable(ctx.raw)
        if self._reported.get(ctx.owner.uid) == recorded:
            return
        ctx.events.replay(ctx.raw)
        ctx.metrics.replay(ctx.raw)
        toolkit_image.report(ctx, at=ctx.status.attempt_accepted)
        toolkit_image.report_changes(ctx)
        self._reported[ctx.owner.uid] = recorded

    def _succeeded(self, ctx: ReconcileContext) -> None:
        """Remember the plan as this reconcile leaves it, because the reconcile has reported each of its writes."""
        uid = ctx.owner.uid
        self._reported[uid] = _reportable(ctx.raw)
        self._parsed[uid] = ctx.plan
        if uid in self._failing:
            self._failing.discard(uid)
            self._passing.clear(uid)
            self._refusals.clear(uid)

    def _retry_when_overdue(self, ctx: ReconcileContext) -> None:
        """Requeue the plan for the time at which a refused write becomes a blocker; the retry may come 10 s later."""
        seconds = self._refusals.next_overdue(ctx.owner.uid, now=ctx.now())
        if seconds is not None:
            self._requeue_after(ctx.owner.name, seconds)

    async def _step(self, ctx: ReconcileContext) -> Result:
        if objects.is_deleting(ctx.raw):
            return await self._finalize(ctx)
        if ctx.status.ended:
            return await self._resume(ctx) if is_requested(ctx.raw) else await self._end(ctx)
        if not ctx.status.phase:
            refused = await self._acceptance.accept(ctx)
            if refused is not None:
                return refused
        else:
            await ctx.hold(active=True)
            if ctx.status["ledger"] is None:
                await earlier_records.adopt(ctx)
            if not ctx.informers.has_released:
                plans = map(self._context, self._plans.store.list())
                ctx.informers.has_released = await passing_on.release(ctx, plans)
            if not ctx.informers.is_taken_over:
                await take_over(ctx)
        if not ctx.status["toolkitImage"] and toolkit_image.adopt(ctx):
            await self._persist(ctx)
            toolkit_image.report(ctx)
        if ctx.status["pausedBy"] or ctx.status["pausedSince"] or ANNOTATION_CONTINUE in ctx.plan.annotations.raw:
            await pause.observe(ctx)
        return await self._finish_step(ctx, await self._engine.advance(ctx))

    async def _finish_step(self, ctx: ReconcileContext, result: PhaseResult) -> Result:
        if isinstance(result, Completed):
            result = await host_plans.undo(ctx, succeeds=True) or await settlement.settle(ctx) or result
        if not isinstance(result, Waiting):
            blocker_report.clear(ctx)
            pause.end(ctx)
        if isinstance(result, Failed):
            await failure.record(ctx, result)
            await self._persist(ctx)
            toolkit_image.report(ctx)  # recorded with the acceptance, also if Initialize fails before its decision
            log.error("upgrade failed", cause=result.message)
            return await self._end(ctx)
        ctx.status.healthy()
        if isinstance(result, Waiting):
            return await self._wait(ctx, result)
        ctx.status.succeed(ctx.target, await settlement.name_settled(ctx))
        await self._persist(ctx)
        log.info("upgrade succeeded")
        return await self._end(ctx)

    async def _wait(self, ctx: ReconcileContext, waiting: Waiting) -> Result:
        if may_pause(ctx.plan.spec):
            waiting = await pause.report(ctx, waiting)
        ctx.status.upgrading(ctx.target)
        ctx.status.waiting(waiting.message, waiting.detail)
        ctx.metrics.progress.waiting(ctx.raw, waiting.waits)
        overdue = blocker_report.report(ctx, waiting.waits, keeps_refused=waiting.error is not None)
        times = [time for time in (waiting.after, overdue) if time is not None]
        ctx.status.waiting(waiting.message, blocker_report.first_message(ctx, waiting.message) or waiting.detail)
        if waiting.error is not None:
            raise waiting.error
        delay = self._throttle.delay(ctx.status, waiting.message)
        if delay > 0:
            return RequeueAfter(min([delay, *times]))
        await self._persist(ctx)
        await ctx.informers.prune()
        return RequeueAfter(min(times)) if times else Done()

    async def _resume(self, ctx: ReconcileContext) -> Result:
        """Begin the next attempt of a plan that has failed, once its end is complete."""
        if ctx.status.is_cleanup_pending or blocks_next_plan(objects.status(ctx.raw)):
            if ctx.status["queuedSince"] is None:
                # Readers of the new generation take the plan for one in progress.
                plan_queue.await_clean_up(ctx)
                await self._persist(ctx)
            result = await self._end(ctx)
            return Requeue() if isinstance(result, Done) else result
        resumed = await self._acceptance.resume(ctx)
        return await self._finish_step(ctx, resumed) if isinstance(resumed, Failed) else resumed

    def _context(self, plan: Object) -> ReconcileContext:
        informers = self._informers.of(objects.name(plan), uid=objects.uid(plan))
        return ReconcileContext.of(plan, self._services, informers)

    async def _end(self, ctx: ReconcileContext) -> Result:
        """Clean up after a plan that has ended, then remove the finalizer, so that it can always be deleted."""
        has_finalizer = FINALIZER in objects.finalizers(ctx.raw)
        if has_finalizer or ctx.status.is_cleanup_pending or blocks_next_plan(objects.status(ctx.raw)):
            # The plan does not get the label, which the next plan may have by now.
            await ctx.hold(active=False)
            await take_over(ctx)
            left = await self._clean_up(ctx, keep_failed_jobs=ctx.status.phase == FAILED)
            if left is not None:
                return RequeueAfter(left)
            await conclusion.complete(ctx)
        else:
            await ctx.events.history.finish_refusal(ctx.raw)
        blocker_report.clear(ctx)
        ctx.events.history.forget(ctx.raw)
        await self._persist(ctx)
        await ctx.end_hold()
        await self._informers.drop(ctx.owner.name)
        return Done()

    async def _clean_up(self, ctx: ReconcileContext, *, keep_failed_jobs: bool) -> float | None:
        """Settle what the plan owes and remove its objects; return the seconds to the next attempt to settle."""
        left = await conclusion.settle(ctx, persist=self._persist)
        if left is None:
            may_pass = partial(self._passing.may_pass, ctx.owner.uid)
            await conclusion.remove(ctx, keep_failed_jobs=keep_failed_jobs, may_pass=may_pass)
        return left

    async def _finalize(self, ctx: ReconcileContext) -> Result:
        """Clean up after a plan that is being deleted, if it was accepted, then remove the finalizer."""
        if FINALIZER in objects.finalizers(ctx.raw) and ctx.status.phase:
            if not await is_finalizing(ctx):
                log.info("plan already deleted, clean-up skipped")
                return Done(is_deleted=True)
            await self._persist(ctx)
            await take_over(ctx)
            left = await self._clean_up(ctx, keep_failed_jobs=False)
            if left is not None:
                return RequeueAfter(left)
            # The informers stay known, so that a retry after a time-out skips the steps that have succeeded.
            await ctx.informers.stop()
        try:
            if objects.finalizers(ctx.raw) and FINALIZER not in objects.finalizers(ctx.raw):
                # The deletion waits for another controller.
                await self._persist(ctx)
            await ctx.end_hold()
        except NotFound:
            log.info("plan already deleted")
        await self._informers.drop(ctx.owner.name)
        return Done(is_deleted=True)

    async def _degrade(self, ctx: ReconcileContext, error: Exception) -> None:
        """Record the error on the plan; a failure of this write must not hide the error."""
        if objects.is_deleting(ctx.raw) and FINALIZER not in objects.finalizers(ctx.raw):
            return
        if not ctx.status.ended:
            ctx.status.degraded(error_message(error))
        ctx.events.error(ctx.raw, error_message(error))
        is_over = ctx.status.ended or objects.is_deleting(ctx.raw)
        refused = self._refusals.blockers(ctx.owner.uid, is_over=is_over, now=ctx.now())
        blocker_report.report_refused(ctx, refused)
        try:
            async with asyncio.timeout(RECORD_TIMEOUT):
                await self._persist(ctx)
        except (KubeError, TimeoutError) as refusal:
            log.warning("cannot write status", error=str(refusal))

    async def _persist(self, ctx: ReconcileContext) -> None:
        if await ctx.persist():
            self._throttle.written()
        if ctx.now() >= ctx.events.history.due:
            await ctx.events.history.write_due(ctx.raw)

    async def _wait_for_caches(self, ctx: ReconcileContext) -> bool:
        """Wait until the caches show this reconcile's writes; return True if they do."""
        seen = await ctx.informers.wait_for(ctx.writes)
        for write in ctx.writes:
            if write.resource == UPGRADE_PLANS:
                self._unseen[ctx.owner.name] = write.resource_version
        return await self._is_fresh(ctx.owner.name) and seen


def _reportable(plan: Object) -> _Reportable:
    """Return the fields of the plan on the API server from which `_replay` reports."""
    status = objects.status(plan)
    option = objects.value(plan, "spec", "nodeUpgradeOption", "onMigrationFailure")
    return objects.annotations_of(plan), option, status.get("phaseTransitionTimestamps"), status.get("toolkitImage")
