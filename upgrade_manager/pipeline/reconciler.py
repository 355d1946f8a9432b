from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.conditions import AVAILABLE, CONCURRENT_UPGRADE_BLOCKED, PROGRESSING
from upgrade_manager.api.keys import ANNOTATION_RESTORED, ANNOTATION_TORN_DOWN, FINALIZER, HARVESTER_SYSTEM
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, KubeError, NotFound
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.cleanup import clean_up
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.phases.base import Failed, Waiting
from upgrade_manager.pipeline.status import StatusThrottle
from upgrade_manager.runtime.result import Done, ReconcileTimeout, Requeue, RequeueAfter

if TYPE_CHECKING:
    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import Services
    from upgrade_manager.pipeline.engine import Engine
    from upgrade_manager.pipeline.informers import Informers
    from upgrade_manager.pipeline.phases.base import PhaseResult
    from upgrade_manager.runtime.result import Result

#: Seconds for one reconcile. Together with RECORD_TIMEOUT it stays below the minute after which the liveness probe
#: reports a hung reconcile.
RECONCILE_TIMEOUT = 35.0
#: Seconds for the write that records an error.
RECORD_TIMEOUT = 10.0
#: Seconds until the next reconcile if the caches do not show the manager's own writes in time.
STALE_CACHE_RETRY = 1.0
LOGS = f"Run kubectl logs -n {HARVESTER_SYSTEM} deployment/harvester-upgrade-manager"
log = structlog.get_logger(__name__)


class PlanReconciler:
    """Reconciles one UpgradePlan by name: reads the cached plan, advances the engine, writes the status.

    It is the only writer of a plan's status. It has one worker, so plans are reconciled one at a time.
    """

    def __init__(self, *, plans: Informer, informers: Informers, engine: Engine, services: Services) -> None:
        self._plans = plans
        self._informers = informers
        self._engine = engine
        self._services = services
        self._throttle = StatusThrottle(now=services.clock.monotonic)
        #: By plan: the resourceVersion of the newest write that the cache does not show yet.
        self._unseen: dict[str, str] = {}

    async def reconcile(self, name: str) -> Result:
        """Reconcile the plan of that name. Errors that are retried are recorded on the plan, then raised."""
        if not await self._is_fresh(name):
            return RequeueAfter(STALE_CACHE_RETRY)
        plan = self._plans.store.get(name)
        if plan is None:
            await self._informers.drop(name)
            return Done()
        structlog.contextvars.bind_contextvars(plan=name)
        return await self._reconcile_plan(plan)

    async def _is_fresh(self, name: str) -> bool:
        """Return True if the cache shows the manager's last write: a stale plan could resume an ended upgrade."""
        if name in self._unseen and not await self._plans.wait_for_version(self._unseen[name]):
            return False
        self._unseen.pop(name, None)
        return True

    async def _reconcile_plan(self, plan: Object) -> Result:
        ctx = ReconcileContext.of(plan, self._services, self._informers.of(objects.name(plan)))
        structlog.contextvars.bind_contextvars(phase=ctx.status.phase)
        # After a crash or a lost response, recorded phases may lack their events.
        ctx.events.replay(plan)
        try:
            result = await self._step_with_timeout(ctx)
        except Conflict as error:
            log.info("object changed concurrently, requeued", error=str(error))
            result = Requeue()
        except (KubeError, RetryError) as error:
            await self._degrade(ctx, str(error))
            await self._wait_for_caches(ctx)
            raise
        except Exception as error:
            await self._degrade(ctx, f"internal error ({type(error).__name__}), retrying. {LOGS}")
            await self._wait_for_caches(ctx)
            raise
        return result if await self._wait_for_caches(ctx) else RequeueAfter(STALE_CACHE_RETRY)

    async def _step_with_timeout(self, ctx: ReconcileContext) -> Result:
        limit = asyncio.timeout(RECONCILE_TIMEOUT)
        try:
            async with limit:
                return await self._step(ctx)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ReconcileTimeout(
                f"reconcile timed out after {RECONCILE_TIMEOUT:.0f} s (API server is slow); retrying"
            ) from error

    async def _step(self, ctx: ReconcileContext) -> Result:
        if objects.is_deleting(ctx.raw):
            return await self._finalize(ctx)
        if ctx.status.ended:
            return await self._clean_up_failed(ctx)
        if not ctx.status.phase and not await self._accept(ctx):
            return Done()
        return await self._finish_step(ctx, await self._engine.advance(ctx))

    async def _finish_step(self, ctx: ReconcileContext, result: PhaseResult) -> Result:
        if isinstance(result, Failed):
            ctx.status.fail(result.cause)
            await self._persist(ctx)
            log.error("upgrade failed", cause=result.cause)
            return await self._clean_up_failed(ctx)
        ctx.status.healthy()
        if isinstance(result, Waiting):
            return await self._wait(ctx, result)
        # Before the clean-up: otherwise a crash would run the last phase again, which recreates the removed objects.
        await self._persist(ctx)
        await clean_up(ctx, keep_failed_jobs=False)
        ctx.status.succeed(ctx.target)
        await self._persist(ctx)
        log.info("upgrade succeeded")
        await self._informers.drop(ctx.owner.name)
        return Done()

    async def _wait(self, ctx: ReconcileContext, waiting: Waiting) -> Result:
        ctx.status.upgrading(ctx.target)
        ctx.status.waiting(waiting.message, waiting.detail)
        delay = self._throttle.delay(ctx.status, waiting.message)
        if delay > 0:
            return RequeueAfter(delay if waiting.after is None else min(delay, waiting.after))
        await self._persist(ctx)
        await ctx.informers.prune()
        return Done() if waiting.after is None else RequeueAfter(waiting.after)

    async def _accept(self, ctx: ReconcileContext) -> bool:
        """Start the upgrade, or block the plan permanently if another one holds the cluster."""
        if _is_blocked(ctx.raw):
            # The process that blocked the plan may have died before it sent the event.
            ctx.events.blocked(ctx.raw)
            return False
        other = await self._holder(ctx)
        if other:
            ctx.status.block(other)
            await self._persist(ctx)
            ctx.events.blocked(ctx.raw)
            log.warning("upgrade blocked", other=other)
            return False
        await ctx.claim(FINALIZER)
        ctx.status.accept(PhaseName.INITIALIZE.active, ctx.target)
        ctx.status.waiting(self._engine.initial_message(ctx))
        await self._persist(ctx)
        log.info("upgrade started")
        return True

    async def _holder(self, ctx: ReconcileContext) -> str:
        """Return the plan that holds the cluster; listed from the API server, because the cache may be stale."""
        plans = (await ctx.client.list(UPGRADE_PLANS)).items
        return next((objects.name(p) for p in plans if objects.uid(p) != ctx.owner.uid and _holds_cluster(p)), "")

    async def _clean_up_failed(self, ctx: ReconcileContext) -> Result:
        """Clean up after a failed plan, once; a succeeded one was cleaned up before it was recorded as such."""
        if ctx.status.phase == FAILED and objects.annotations_of(ctx.raw).get(ANNOTATION_TORN_DOWN) != "true":
            await clean_up(ctx, keep_failed_jobs=True)
            await ctx.annotate({ANNOTATION_TORN_DOWN: "true"})
        await self._persist(ctx)
        await self._informers.drop(ctx.owner.name)
        return Done()

    async def _finalize(self, ctx: ReconcileContext) -> Result:
        """Clean up after a plan that is being deleted, if it was accepted, then remove the finalizer."""
        if FINALIZER not in objects.finalizers(ctx.raw):
            return Done()
        if ctx.status.phase:
            if not await self._is_finalizing(ctx):
                log.info("plan already deleted, clean-up skipped")
                return Done()
            await clean_up(ctx, keep_failed_jobs=False)
            await self._informers.drop(ctx.owner.name)
        try:
            await ctx.set_finalizers([name for name in objects.finalizers(ctx.raw) if name != FINALIZER])
        except NotFound:
            log.info("plan already deleted")
        log.info("plan deleted")
        return Done()

    async def _is_finalizing(self, ctx: ReconcileContext) -> bool:
        """Return True if the plan still has the finalizer on the API server.

        If the response to its removal was lost, a new plan of the same name may own the objects by now.
        """
        selector = f"metadata.name={ctx.owner.name}"
        found = (await ctx.client.list(UPGRADE_PLANS, field_selector=selector, metadata_only=True)).items
        return any(objects.uid(one) == ctx.owner.uid and FINALIZER in objects.finalizers(one) for one in found)

    async def _degrade(self, ctx: ReconcileContext, message: str) -> None:
        """Record the error on the plan; a failure to do so must not hide the error."""
        if objects.is_deleting(ctx.raw) and FINALIZER not in objects.finalizers(ctx.raw):
            return
        if not ctx.status.ended:
            ctx.status.degraded(message)
        ctx.events.error(ctx.raw, message)
        try:
            async with asyncio.timeout(RECORD_TIMEOUT):
                await self._persist(ctx)
        except (KubeError, TimeoutError) as error:
            log.warning("cannot write status", error=str(error))

    async def _persist(self, ctx: ReconcileContext) -> None:
        ctx.status.observe_generation()
        if await ctx.persist():
            self._throttle.written()

    async def _wait_for_caches(self, ctx: ReconcileContext) -> bool:
        """Wait until the caches show this reconcile's writes; return True if they do."""
        seen = await ctx.informers.wait_for(ctx.writes)
        for write in ctx.writes:
            if write.resource == UPGRADE_PLANS:
                self._unseen[ctx.owner.name] = write.resource_version
        return await self._is_fresh(ctx.owner.name) and seen


def _holds_cluster(plan: Object) -> bool:
    """Return True if the plan is in progress, or has failed without having reverted its overrides yet."""
    if (objects.condition(plan, PROGRESSING) or {}).get("status") == "True":
        return True
    restored = objects.annotations_of(plan).get(ANNOTATION_RESTORED) == "true"
    return objects.status(plan).get("currentPhase") == FAILED and not restored


def _is_blocked(plan: Object) -> bool:
    return (objects.condition(plan, AVAILABLE) or {}).get("reason") == CONCURRENT_UPGRADE_BLOCKED
