"""One controller for all plans: cli/application.py runs it, and it runs reconciler.py and ending/leftovers.py."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.ledger import owes
from upgrade_manager.api.phases import TERMINAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.kube.informer import Informer, without_managed_fields
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.kube.store import ChangeKind
from upgrade_manager.pipeline import plan_queue
from upgrade_manager.pipeline.ending import leftovers
from upgrade_manager.pipeline.events import reconcile_annotations
from upgrade_manager.pipeline.informers import Informers, InformerSpec
from upgrade_manager.pipeline.metrics import PlanCollector, UpgradeMetrics
from upgrade_manager.pipeline.predicates import desired, reconcile_delay
from upgrade_manager.pipeline.transforms import transform_of
from upgrade_manager.runtime.controller import Controller
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.late_import import import_outside_loop
from upgrade_manager.runtime.workqueue import ItemExponentialFailureRateLimiter, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.pipeline.dependencies import Dependencies
    from upgrade_manager.pipeline.reconciler import PlanReconciler
    from upgrade_manager.runtime.result import Result

NAME = "upgradeplan"
LEFTOVERS = "leftovers"
COMPONENT = "upgradeplan-controller"
#: Seconds before the first retry, and the longest delay between two retries, jitter included.
RETRY_BASE = 0.2
RETRY_CAP = 10.0
#: The longest delay between two attempts to remove leftovers, which a webhook may refuse for days.
LEFTOVERS_RETRY_CAP = 300.0
#: The largest share of a delay that jitter adds.
RETRY_SPREAD = 0.2
#: Seconds for sending the last events when the manager stops.
FLUSH_TIMEOUT = 2.0
#: Seconds that a new leader waits for its cache of plans, and seconds between two attempts.
CACHE_TIMEOUT = 10.0
CACHE_RETRY_INTERVAL = 1.0
#: Seconds without a watch after which a cache counts as out of date: an API server's restart is shorter.
STALE_TIMEOUT = 300.0
log = structlog.get_logger(__name__)


class PlanController:
    """Reconciles UpgradePlans: their informer, the work queue and one worker."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._queue = self._new_queue(NAME, cap=RETRY_CAP)
        self._leftovers = self._new_queue(LEFTOVERS, cap=LEFTOVERS_RETRY_CAP)
        #: Deleted plans whose last reconcile, which may have created objects, has not ended.
        self._deleted: set[str] = set()
        #: Plans, by name, that were deleted with debts, until the reconciler has named these.
        self._owing: dict[str, Object] = {}
        self._events = EventRecorder(
            deps.client,
            component=COMPONENT,
            now=deps.clock.now,
            random=deps.random,
            annotations=reconcile_annotations,
        )
        #: Runs in every replica, so that a new leader starts with a warm cache.
        self.plans = self._informer(Selection(resource=UPGRADE_PLANS), self._plan_changed)
        self._upgrades = UpgradeMetrics(deps.metrics)
        progress, now = self._upgrades.progress, deps.clock.now
        collector = PlanCollector(self.plans.store, progress=progress, now=now, is_leader=deps.is_leader)
        deps.metrics.on_scrape(collector.refresh)
        deps.metrics.registry.register(collector)
        #: None until this process leads.
        self._informers: Informers | None = None
        self._controller: Controller | None = None
        #: The error of the last attempt to import the reconciler; empty without one.
        self._import_error = ""

    async def run(self) -> None:
        """Reconcile until cancelled; only the leader may run it."""
        async with asyncio.TaskGroup() as group:
            sender = group.create_task(self._events.run(), name="events")
            self._informers = informers = Informers(group, self._plan_informer)
            self._controller = self._new_controller(informers)
            sweeper = group.create_task(self._new_sweeper().run(), name=LEFTOVERS)
            try:
                await self._wait_for_current_plans()
                for plan in self._plan_names():
                    self._queue.add(plan)
                self._leftovers.add(leftovers.KEY)
                await self._controller.run()
            finally:
                sweeper.cancel()
                await informers.stop()
                if self._deps.is_leader():
                    await self._events.flush(FLUSH_TIMEOUT)
                sender.cancel()

    async def check(self) -> None:
        """Check liveness. Raises Unhealthy while a reconcile hangs, and while no reconciler can be imported."""
        if self._import_error:
            raise Unhealthy(f"cannot import the reconciler: {self._import_error}")
        if self._controller is not None:
            await self._controller.check()

    async def _wait_for_current_plans(self) -> None:
        """Wait until the cache has the previous leader's last writes."""
        while True:
            try:
                newest = await self._deps.client.list(UPGRADE_PLANS)
            except KubeError as error:
                log.warning("cannot list plans", error=str(error))
            else:
                if await self._have_seen(newest.items):
                    return
                log.warning("cache of plans is behind the API server", resource_version=newest.resource_version)
            await asyncio.sleep(CACHE_RETRY_INTERVAL)

    async def _have_seen(self, plans: Iterable[Object]) -> bool:
        """Wait for each plan's version, because the list's version reaches the cache only with the next bookmark."""
        for plan in plans:
            if not await self.plans.wait_for_version(objects.resource_version(plan), timeout=CACHE_TIMEOUT):
                return False
        return True

    async def ready(self) -> None:
        """Check readiness. Raises Unhealthy until the plans are listed, and while a cache is out of date."""
        if not self.plans.has_synced:
            raise Unhealthy("waiting for the first list of UpgradePlans")
        for informer in (self.plans, *(self._informers.running() if self._informers else ())):
            if informer.failing_for > STALE_TIMEOUT:
                raise Unhealthy(f"cannot watch {informer.resource} for {informer.failing_for:.0f} s")

    def _new_controller(self, informers: Informers) -> Controller:
        reconciler: PlanReconciler | None = None

        async def reconcile(plan: str) -> Result:
            nonlocal reconciler
            try:
                reconciler = reconciler or await self._new_reconciler(informers)
                return await reconciler.reconcile(plan)
            finally:
                if plan in self._deleted:
                    self._deleted.discard(plan)
                    self._leftovers.add(leftovers.KEY)

        return Controller(
            NAME,
            reconcile=reconcile,
            keys=self._plan_names,
            is_leader=self._deps.is_leader,
            queue=self._queue,
            random=self._deps.random,
            metrics=self._deps.metrics,
        )

    async def _new_reconciler(self, informers: Informers) -> PlanReconciler:
        """Return the reconciler, which an idle leader does without."""
        try:
            await import_outside_loop("upgrade_manager.pipeline.reconciler_factory")
        except Exception as error:
            self._import_error = str(error) or type(error).__name__
            raise
        self._import_error = ""
        from upgrade_manager.pipeline.reconciler_factory import new_reconciler  # noqa: PLC0415  # imported by now

        return new_reconciler(
            self._deps,
            plans=self.plans,
            informers=informers,
            events=self._events,
            metrics=self._upgrades,
            owing=self._owing,
            requeue_after=self._queue.add_after,
        )

    def _new_sweeper(self) -> Controller:
        """Return the controller of one key, which is added at the start and after deletions, not periodically."""
        return Controller(
            LEFTOVERS,
            reconcile=leftovers.Leftovers(self._deps.client).reconcile,
            keys=tuple,
            is_leader=self._deps.is_leader,
            queue=self._leftovers,
            random=self._deps.random,
            metrics=self._deps.metrics,
        )

    def _new_queue(self, name: str, *, cap: float) -> WorkQueue:
        return WorkQueue(
            name,
            limiter=ItemExponentialFailureRateLimiter(
                base_delay=RETRY_BASE,
                max_delay=cap / (1 + RETRY_SPREAD),
                jitter=RETRY_SPREAD,
                random=self._deps.random,
            ),
            metrics=self._deps.metrics,
        )

    def _plan_names(self) -> Iterable[str]:
        return map(objects.name, self.plans.store.list())

    def _plan_informer(self, plan: str, spec: InformerSpec) -> Informer:
        """Make an informer whose events enqueue the plan until the plan has ended; retries alone drive the clean-up."""

        def changed(change: Change) -> None:
            known = self.plans.store.get(plan) or {}
            has_ended = objects.text(known, "status", "currentPhase") in TERMINAL and not plan_queue.waits(known)
            delay = None if has_ended else reconcile_delay(spec.resource, change)
            if delay is not None:
                self._queue.add_after(plan, delay)

        transform = transform_of(spec.resource, is_whole=spec.is_whole)
        return self._informer(spec, changed, name=plan, transform=transform)

    def _informer(
        self,
        selection: Selection,
        handler: Callable[[Change], None],
        *,
        name: str = "",
        transform: Callable[[Object], Object] = without_managed_fields,
    ) -> Informer:
        return Informer(
            self._deps.client,
            selection,
            name=name,
            transform=transform,
            handlers=(handler,),
            random=self._deps.random,
            metrics=self._deps.informer_metrics,
        )

    def _plan_changed(self, change: Change) -> None:
        """Enqueue a changed plan, unless only its status changed: the manager's own writes would defeat the backoff.

        A standby's queue stays empty, so that the time of standby does not count as latency of keys.
        """
        if self._controller is None:
            return
        if change.kind is ChangeKind.DELETED:
            self._deleted.add(objects.name(change.obj))
            if owes(objects.status(change.obj)):
                self._owing[objects.name(change.obj)] = change.obj
        if plan_queue.frees(change):
            for plan in filter(plan_queue.waits, self.plans.store.list()):
                self._queue.add(objects.name(plan))
        if change.kind is not ChangeKind.UPDATED or change.old is None or desired(change.old) != desired(change.obj):
            self._queue.add(objects.name(change.obj))
