from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.kube.informer import Informer, without_managed_fields
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import JOBS, NODES, UPGRADE_PLANS
from upgrade_manager.kube.store import ChangeKind
from upgrade_manager.pipeline.engine import PIPELINE, Engine
from upgrade_manager.pipeline.events import PlanEvents
from upgrade_manager.pipeline.informers import Informers, InformerSpec, slim_job, slim_node
from upgrade_manager.pipeline.metrics import PlanCollector, UpgradeMetrics
from upgrade_manager.pipeline.reconciler import PlanReconciler
from upgrade_manager.preflight.check import Preflight
from upgrade_manager.runtime.controller import Controller
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.workqueue import ItemExponentialFailureRateLimiter, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.pipeline.context import Settings
    from upgrade_manager.pipeline.repository_client import RepositoryClient
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.runtime.kube_metrics import InformerMetrics
    from upgrade_manager.runtime.metrics import Metrics

NAME = "upgradeplan"
COMPONENT = "upgradeplan-controller"
#: Seconds before the first retry, and between later ones at most: whatever a step waits for is retried this often.
RETRY_BASE = 0.2
RETRY_CAP = 10.0
#: By so much of itself a wait is prolonged at random, which the cap includes.
RETRY_SPREAD = 0.2
#: Seconds that a stopping manager gives its last events.
FLUSH = 2.0
#: Seconds that a new leader waits for its cache of plans, and between two tries.
CATCH_UP = 10.0
CATCH_UP_PAUSE = 1.0
#: What of an object's metadata changes with every write, of the status too.
_WRITTEN_ALONG = frozenset({"resourceVersion", "managedFields"})
log = structlog.get_logger(__name__)
_TRANSFORMS = {NODES: slim_node, JOBS: slim_job}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Everything that the controller needs and does not make itself."""

    client: Client
    repository: RepositoryClient
    certificates: CertificateProbe
    settings: Settings
    clock: Clock
    random: Random
    metrics: Metrics
    informer_metrics: InformerMetrics


class PlanController:
    """Everything that turns UpgradePlans into upgrades: the cache of plans, the queue, the one worker."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._queue = WorkQueue(
            NAME,
            limiter=ItemExponentialFailureRateLimiter(
                base_delay=RETRY_BASE,
                max_delay=RETRY_CAP / (1 + RETRY_SPREAD),
                jitter=RETRY_SPREAD,
                random=deps.random,
            ),
            metrics=deps.metrics,
        )
        self._events = EventRecorder(deps.client, component=COMPONENT, now=deps.clock.now, random=deps.random)
        #: Runs in every replica, so that a new leader begins with a warm cache.
        self.plans = Informer(
            deps.client,
            Selection(resource=UPGRADE_PLANS),
            handlers=(self._plan_changed,),
            random=deps.random,
            on_restart=deps.informer_metrics.on_restart,
            on_progress=deps.informer_metrics.on_progress,
        )
        self._upgrades = UpgradeMetrics(deps.metrics)
        collector = PlanCollector(self.plans.store, now=deps.clock.now)
        deps.metrics.on_scrape(collector.refresh)
        deps.metrics.registry.register(collector)
        self._controller: Controller | None = None

    async def run(self) -> None:
        """Work until cancelled; only the leader may."""
        async with asyncio.TaskGroup() as group:
            sender = group.create_task(self._events.run(), name="events")
            informers = Informers(group, self._informer)
            self._controller = self._new_controller(informers)
            try:
                await self._catch_up()
                await self._controller.run()
            finally:
                await informers.stop()
                await self._events.flush(FLUSH)
                sender.cancel()

    async def check(self) -> None:
        """Liveness: raises Unhealthy while a reconcile hangs."""
        if self._controller is not None:
            await self._controller.check()

    async def _catch_up(self) -> None:
        """Begin with plans as new as the API server's: another leader may have written what our watch still holds back.

        A watch that hangs is noticed late, and acting on an old plan would do again what has been done.
        """
        while True:
            try:
                newest = await self._deps.client.list(UPGRADE_PLANS)
            except KubeError as error:
                log.warning("the plans cannot be listed", error=str(error))
            else:
                if await self._have_seen(newest.items):
                    return
                log.warning("the cache of plans is behind the API server", resource_version=newest.resource_version)
            await asyncio.sleep(CATCH_UP_PAUSE)

    async def _have_seen(self, plans: Iterable[Object]) -> bool:
        """Whether the cache is as new as these. As new as the list it gets with the next bookmark, a minute later."""
        for plan in plans:
            if not await self.plans.wait_for_version(objects.resource_version(plan), timeout=CATCH_UP):
                return False
        return True

    async def ready(self) -> None:
        """Readiness: raises Unhealthy until the plans are known."""
        if not self.plans.has_synced:
            raise Unhealthy("the UpgradePlans are not listed yet")

    def _new_controller(self, informers: Informers) -> Controller:
        deps = self._deps
        reconciler = PlanReconciler(
            client=deps.client,
            plans=self.plans,
            informers=informers,
            engine=Engine(PIPELINE),
            events=PlanEvents(self._events, now=deps.clock.now),
            repository=deps.repository,
            settings=deps.settings,
            metrics=self._upgrades,
            preflight=Preflight(probe=deps.certificates, clock=deps.clock),
            now=deps.clock.now,
        )

        return Controller(
            NAME,
            reconcile=reconciler.reconcile,
            queue=self._queue,
            random=deps.random,
            metrics=deps.metrics,
        )

    def _informer(self, plan: str, spec: InformerSpec) -> Informer:
        """An informer that has the plan looked at again whenever something changes."""

        def changed(change: Change) -> None:
            if not _is_heartbeat(change):
                self._queue.add(plan)

        return Informer(
            self._deps.client,
            Selection(
                resource=spec.resource,
                namespace=spec.namespace,
                label_selector=spec.label_selector,
                field_selector=spec.field_selector,
                metadata_only=spec.metadata_only,
            ),
            transform=_TRANSFORMS.get(spec.resource, without_managed_fields),
            handlers=(changed,),
            random=self._deps.random,
            on_restart=self._deps.informer_metrics.on_restart,
            on_progress=self._deps.informer_metrics.on_progress,
        )

    def _plan_changed(self, change: Change) -> None:
        """Only what others change: looking again at our own status would try again at once what has just failed."""
        if change.kind is not ChangeKind.UPDATED or change.old is None or _asked(change.old) != _asked(change.obj):
            self._queue.add(objects.name(change.obj))


def _asked(plan: Object) -> Object:
    """What users and other controllers say in a plan."""
    metadata = {key: value for key, value in objects.metadata(plan).items() if key not in _WRITTEN_ALONG}
    return {"metadata": metadata, "spec": objects.spec(plan)}


def _is_heartbeat(change: Change) -> bool:
    """Whether nothing has changed that anybody reads: the transforms leave out what nobody does."""
    if change.old is None or change.kind is not ChangeKind.UPDATED:
        return False
    return _without_version(change.obj) == _without_version(change.old)


def _without_version(obj: Object) -> Object:
    metadata = {key: value for key, value in objects.metadata(obj).items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}
