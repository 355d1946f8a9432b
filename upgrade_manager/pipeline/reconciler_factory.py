"""Makes the reconciler of plans; controller.py imports it when a leader has the first plan to reconcile.

It imports the phases and all that they need, 10 MiB, which neither a replica that stands by nor an idle leader has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.pipeline.context import Services
from upgrade_manager.pipeline.engine import PIPELINE, Engine
from upgrade_manager.pipeline.events import PlanEvents
from upgrade_manager.pipeline.history import History
from upgrade_manager.pipeline.reconciler import PlanReconciler
from upgrade_manager.preflight.check import Preflight

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.events import EventRecorder
    from upgrade_manager.kube.informer import Informer
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.dependencies import Dependencies
    from upgrade_manager.pipeline.informers import Informers
    from upgrade_manager.pipeline.metrics import UpgradeMetrics


def new_reconciler(
    deps: Dependencies,
    *,
    plans: Informer,
    informers: Informers,
    events: EventRecorder,
    metrics: UpgradeMetrics,
    owing: dict[str, Object],
    requeue_after: Callable[[str, float], None],
) -> PlanReconciler:
    """Return the reconciler. `owing` and `requeue_after` are those of PlanReconciler."""
    services = Services(
        client=deps.client,
        repository=deps.repository,
        events=PlanEvents(events, now=deps.clock.now, history=History(deps.client, now=deps.clock.now)),
        metrics=metrics,
        preflight=Preflight(probe=deps.certificates, kubelets=deps.kubelets, clock=deps.clock),
        settings=deps.settings,
        clock=deps.clock,
    )
    return PlanReconciler(
        plans=plans,
        informers=informers,
        engine=Engine([phase() for phase in PIPELINE]),
        services=services,
        owing=owing,
        requeue_after=requeue_after,
    )
