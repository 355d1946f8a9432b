"""Adds the controller and the leader election, which `upgrade-manager webhook` does without.

application.py calls it for `upgrade-manager run` alone; run.py imports it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LEASE
from upgrade_manager.cli.environment import new_client
from upgrade_manager.pipeline.controller import PlanController
from upgrade_manager.pipeline.dependencies import Dependencies, Settings
from upgrade_manager.runtime.kube_metrics import InformerMetrics
from upgrade_manager.runtime.leader_election import LeaderElector, LeaderTransport, new_identity
from upgrade_manager.runtime.manager import Manager, Stage

if TYPE_CHECKING:
    from upgrade_manager.cli.environment import Environment
    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.runtime.healthz import Probes
    from upgrade_manager.runtime.metrics import Metrics


def manager_with_controller(environment: Environment, options: RunOptions, metrics: Metrics, probes: Probes) -> Manager:
    """Return a manager with the controller, its checks and, with `--leader-elect`, its election."""
    elector = _elector(environment, options, metrics) if options.leader_elect else None
    controller = _controller(environment, options, metrics, elector)
    manager = Manager(elector=elector)
    probes.healthz.add("reconcile", controller.check)
    if elector is not None:
        probes.healthz.add("lease", elector.check)
        probes.readyz.add("lease", elector.check_access)
    probes.readyz.add("plans", controller.ready)
    # Without a timeout: while the API server is slow or away, `/readyz` reports it, and a restart would not help.
    plans = controller.plans
    manager.add(Stage.CACHES, "plans", plans.run, ready=plans.wait_for_sync, ready_timeout=None)
    manager.add(Stage.LEADER, "upgradeplan", controller.run)
    return manager


def _elector(environment: Environment, options: RunOptions, metrics: Metrics) -> LeaderElector:
    return LeaderElector(
        new_client(environment, environment.lease),
        name=LEASE,
        namespace=options.namespace,
        identity=new_identity(environment.random),
        random=environment.random,
        now=environment.clock.now,
        metrics=metrics,
    )


def _controller(
    environment: Environment, options: RunOptions, metrics: Metrics, elector: LeaderElector | None
) -> PlanController:
    transport = environment.transport

    def is_leader() -> bool:
        return elector is None or elector.is_leader

    if elector is not None:
        transport = LeaderTransport(transport, is_leader=is_leader)
    return PlanController(
        Dependencies(
            client=new_client(environment, transport),
            repository=environment.repository,
            certificates=environment.certificates,
            kubelets=environment.kubelets,
            settings=Settings(
                toolkit=options.toolkit,
                repo_url=options.repo_url or environment.repo_url,
                job_service_account=options.job_service_account,
                plan_service_account=options.plan_service_account,
            ),
            clock=environment.clock,
            random=environment.random,
            metrics=metrics,
            informer_metrics=InformerMetrics(metrics),
            is_leader=is_leader,
        )
    )
