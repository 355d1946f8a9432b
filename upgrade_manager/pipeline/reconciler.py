from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.conditions import AVAILABLE, CONCURRENT_UPGRADE_BLOCKED, PROGRESSING
from upgrade_manager.api.keys import ANNOTATION_RESTORED, ANNOTATION_TORN_DOWN, FINALIZER
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Conflict, KubeError, NotFound
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.cleanup import clean_up
from upgrade_manager.pipeline.context import ReconcileContext, parse_plan
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.phases.base import Failed, Waiting
from upgrade_manager.pipeline.status import StatusPatch
from upgrade_manager.runtime.result import Done, ReconcileTimeout, Requeue, RequeueAfter

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import Settings
    from upgrade_manager.pipeline.engine import Engine
    from upgrade_manager.pipeline.events import PlanEvents
    from upgrade_manager.pipeline.informers import Informers
    from upgrade_manager.pipeline.metrics import UpgradeMetrics
    from upgrade_manager.pipeline.phases.base import PhaseResult
    from upgrade_manager.pipeline.repository_client import RepositoryClient
    from upgrade_manager.preflight.check import Preflight
    from upgrade_manager.runtime.result import Result

#: Seconds between two writes that only inform: what becomes known within one of them is written together. A status
#: grows with the cluster, so a thousand nodes that preload images at once must not make for a write each.
INFORMATION_SPACING = 1.0
#: The same for a write of nothing but details of what is waited for, such as that a Job's Pod has started.
DETAIL_SPACING = 5.0
#: Seconds for one step, so that with its record it stays below the minute after which a reconcile counts as hung.
STEP_LIMIT = 35.0
#: Seconds for the record of an error, without which it goes as well.
RECORD_LIMIT = 10.0
#: Seconds until the next look where the caches have not shown our own writes in time: they may still.
UNSETTLED = 1.0
log = structlog.get_logger(__name__)


class PlanReconciler:
    """Brings one UpgradePlan a step further, for the controller: called with its name, whenever anything has changed.

    It is the only writer of a plan's status. What to do follows from the plan and from what is observed, never from
    what an earlier call has seen; two plans are never looked at at the same time (one worker).
    """

    def __init__(  # noqa: PLR0913  # wired once, by name
        self,
        *,
        client: Client,
        plans: Informer,
        informers: Informers,
        engine: Engine,
        events: PlanEvents,
        repository: RepositoryClient,
        settings: Settings,
        metrics: UpgradeMetrics,
        preflight: Preflight,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._plans = plans
        self._informers = informers
        self._engine = engine
        self._events = events
        self._repository = repository
        self._settings = settings
        self._metrics = metrics
        self._preflight = preflight
        self._now = now
        #: Loop time of the last write of a status.
        self._last_write = float("-inf")
        #: By plan: the version of our newest write of it that the cache has not shown yet.
        self._unseen: dict[str, str] = {}

    async def reconcile(self, name: str) -> Result:
        """One look at the plan of that name. Raises what is worth another try, after having written down why."""
        if not await self._is_fresh(name):
            return RequeueAfter(UNSETTLED)
        plan = self._plans.store.get(name)
        if plan is None:
            await self._informers.drop(name)
            return Done()
        structlog.contextvars.bind_contextvars(plan=name)
        return await self._look(plan)

    async def _is_fresh(self, name: str) -> bool:
        """Whether the cache shows what we have written: by an older plan, an upgrade that has ended would go on."""
        if name in self._unseen and not await self._plans.wait_for_version(self._unseen[name]):
            return False
        self._unseen.pop(name, None)
        return True

    async def _look(self, plan: Object) -> Result:
        ctx = self._context(plan)
        structlog.contextvars.bind_contextvars(phase=ctx.status.phase)
        # Whoever recorded a phase may not have lived to announce it, or not have got the answer to the record.
        self._events.repeat_recent(plan)
        try:
            outcome = await self._bounded_step(ctx)
        except Conflict:
            log.info("someone else wrote first, looking again")
            outcome = Requeue()
        except (KubeError, RetryError) as error:
            await self._degrade(ctx, str(error))
            await self._settle(ctx)
            raise
        except Exception as error:
            await self._degrade(ctx, f"internal error ({type(error).__name__}); the manager's log has the details")
            await self._settle(ctx)
            raise
        return outcome if await self._settle(ctx) else RequeueAfter(UNSETTLED)

    async def _bounded_step(self, ctx: ReconcileContext) -> Result:
        """One step, cut off where it takes so long that it would look like a hang: the next one goes on from there."""
        limit = asyncio.timeout(STEP_LIMIT)
        try:
            async with limit:
                return await self._step(ctx)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ReconcileTimeout(
                f"a step was not done within {STEP_LIMIT:.0f} s, because the API server answers very slowly; it is "
                "taken up again"
            ) from error

    async def _step(self, ctx: ReconcileContext) -> Result:
        if objects.is_deleting(ctx.raw):
            return await self._finalize(ctx)
        if ctx.status.ended:
            return await self._rest(ctx)
        if not ctx.status.phase and not await self._accept(ctx):
            return Done()
        return await self._go_on(ctx, await self._engine.advance(ctx))

    async def _go_on(self, ctx: ReconcileContext, outcome: PhaseResult) -> Result:
        if isinstance(outcome, Failed):
            ctx.status.fail(outcome.cause)
            await self._persist(ctx)
            log.error("upgrade failed", cause=outcome.cause)
            return await self._rest(ctx)
        ctx.status.healthy()
        if isinstance(outcome, Waiting):
            return await self._wait(ctx, outcome)
        # The end of the last phase is on record before anything is removed that would be made again without it.
        await self._persist(ctx)
        await clean_up(ctx, keep_failed_jobs=False)
        ctx.status.succeed()
        await self._persist(ctx)
        log.info("upgrade succeeded")
        await self._informers.drop(ctx.owner.name)
        return Done()

    async def _wait(self, ctx: ReconcileContext, waiting: Waiting) -> Result:
        ctx.status.waiting(waiting.message, waiting.detail)
        spacing = DETAIL_SPACING if ctx.status.only_details(waiting.message) else INFORMATION_SPACING
        too_early = self._last_write + spacing - loop_time()
        if too_early > 0 and ctx.status.only_informs():
            return RequeueAfter(too_early if waiting.after is None else min(too_early, waiting.after))
        await self._persist(ctx)
        await ctx.informers.prune()
        return Done() if waiting.after is None else RequeueAfter(waiting.after)

    async def _accept(self, ctx: ReconcileContext) -> bool:
        """Whether the plan may have the cluster; a plan that may not is told so once, and for good."""
        if _is_blocked(ctx.raw):
            # Said once, however often: the record may be older than this process.
            self._events.blocked(ctx.raw)
            return False
        other = await self._holder(ctx)
        if other:
            ctx.status.block(other)
            await self._persist(ctx)
            self._events.blocked(ctx.raw)
            log.warning("blocked by another plan", other=other)
            return False
        await ctx.take_possession(FINALIZER)
        ctx.status.accept(PhaseName.INITIALIZE.active)
        ctx.status.waiting(self._engine.initial_message(ctx))
        await self._persist(ctx)
        log.info("accepted")
        return True

    async def _holder(self, ctx: ReconcileContext) -> str:
        """The plan that has the cluster, asked of the API server itself: a cache may lag behind another leader."""
        others = [o for o in (await self._client.list(UPGRADE_PLANS)).items if objects.uid(o) != ctx.owner.uid]
        return next((objects.name(other) for other in others if _holds(other)), "")

    async def _rest(self, ctx: ReconcileContext) -> Result:
        """A plan that has ended: a failed one leaves things to put back, at its end or after a crash."""
        if ctx.status.phase == FAILED and objects.annotations_of(ctx.raw).get(ANNOTATION_TORN_DOWN) != "true":
            await clean_up(ctx, keep_failed_jobs=True)
            await ctx.annotate({ANNOTATION_TORN_DOWN: "true"})
        await self._persist(ctx)
        await self._informers.drop(ctx.owner.name)
        return Done()

    async def _finalize(self, ctx: ReconcileContext) -> Result:
        """A plan that is being deleted: what it did is undone, if it ever did anything, then it may go."""
        if FINALIZER not in objects.finalizers(ctx.raw):
            return Done()
        if ctx.status.phase:
            if not await self._is_there(ctx):
                log.info("the plan was gone already, and is not cleaned up after again")
                return Done()
            await clean_up(ctx, keep_failed_jobs=False)
            await self._informers.drop(ctx.owner.name)
        try:
            await ctx.set_finalizers([name for name in objects.finalizers(ctx.raw) if name != FINALIZER])
        except NotFound:
            log.info("the plan was gone already")
        log.info("finalized")
        return Done()

    async def _is_there(self, ctx: ReconcileContext) -> bool:
        """Whether the plan waits for us, by the API server itself: the answer to its release may have got lost.

        What is removed is found by the plan's name, which another one may have by now.
        """
        selector = f"metadata.name={ctx.owner.name}"
        found = (await self._client.list(UPGRADE_PLANS, field_selector=selector, metadata_only=True)).items
        return any(objects.uid(one) == ctx.owner.uid and FINALIZER in objects.finalizers(one) for one in found)

    async def _degrade(self, ctx: ReconcileContext, message: str) -> None:
        """Say on the plan what went wrong. That this may fail too must not hide the error itself."""
        if objects.is_deleting(ctx.raw) and FINALIZER not in objects.finalizers(ctx.raw):
            return
        if not ctx.status.ended:
            ctx.status.degraded(message)
        self._events.error(ctx.raw, message)
        try:
            async with asyncio.timeout(RECORD_LIMIT):
                await self._persist(ctx)
        except (KubeError, TimeoutError) as error:
            log.warning("the plan's status could not be written", error=str(error))

    async def _persist(self, ctx: ReconcileContext) -> None:
        ctx.status.observe_generation()
        if await ctx.persist():
            self._last_write = loop_time()

    async def _settle(self, ctx: ReconcileContext) -> bool:
        """The barrier: the next look must not be older than what this one has written; whether it will not be."""
        seen = await ctx.informers.settle(ctx.written)
        newest = [write.resource_version for write in ctx.written if write.resource == UPGRADE_PLANS][-1:]
        for version in newest:
            self._unseen[ctx.owner.name] = version
        return await self._is_fresh(ctx.owner.name) and seen

    def _context(self, plan: Object) -> ReconcileContext:
        return ReconcileContext(
            raw=plan,
            plan=parse_plan(plan),
            status=StatusPatch(plan, now=self._now),
            client=self._client,
            repository=self._repository,
            informers=self._informers.of(objects.name(plan)),
            events=self._events,
            metrics=self._metrics,
            preflight=self._preflight,
            settings=self._settings,
        )


def _holds(plan: Object) -> bool:
    """Whether the plan has the cluster: it is in progress, or has failed and not put back yet what it changed."""
    if (objects.condition(plan, PROGRESSING) or {}).get("status") == "True":
        return True
    restored = objects.annotations_of(plan).get(ANNOTATION_RESTORED) == "true"
    return objects.status(plan).get("currentPhase") == FAILED and not restored


def _is_blocked(plan: Object) -> bool:
    available = objects.condition(plan, AVAILABLE) or {}
    return available.get("reason") == CONCURRENT_UPGRADE_BLOCKED
