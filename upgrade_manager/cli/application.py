from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager import __version__
from upgrade_manager.kube.client import Client
from upgrade_manager.pipeline.context import Settings
from upgrade_manager.pipeline.controller import Dependencies, PlanController
from upgrade_manager.runtime.kube_metrics import InformerMetrics
from upgrade_manager.runtime.leader_election import LeaderElector, LeaderTransport, new_identity
from upgrade_manager.runtime.loop_watchdog import LoopLag
from upgrade_manager.runtime.manager import Manager, Stage
from upgrade_manager.runtime.metrics_server import metrics_server, plain_metrics_server
from upgrade_manager.runtime.probes import Probes

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.transport import Transport
    from upgrade_manager.pipeline.repository_client import RepositoryClient
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.runtime.metrics import Metrics

LEASE = "upgrade-manager.management.harvesterhci.io"
USER_AGENT = f"harvester-upgrade-manager/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What the process has from outside: the real ones in production, a simulation's in tests."""

    transport: Transport
    repository: RepositoryClient
    certificates: CertificateProbe
    clock: Clock
    random: Random


def assemble(outside: Outside, options: RunOptions, metrics: Metrics) -> Manager:
    """Wire the manager; nothing runs yet."""
    elector = _elector(outside, options, metrics) if options.leader_elect else None
    transport = outside.transport
    if elector is not None:
        transport = LeaderTransport(transport, is_leader=lambda: elector.is_leader)
    controller = PlanController(
        Dependencies(
            client=_client(outside, transport),
            repository=outside.repository,
            certificates=outside.certificates,
            settings=Settings(
                version=__version__,
                repo_url=options.repo_url,
                job_service_account=options.job_service_account,
                plan_service_account=options.plan_service_account,
            ),
            clock=outside.clock,
            random=outside.random,
            metrics=metrics,
            observer=InformerMetrics(metrics),
        )
    )
    manager = Manager(elector=elector)
    _add_servers(manager, outside, options, metrics, _probes(manager, controller, elector, metrics))
    manager.add(Stage.CACHES, "plans", controller.plans.run, ready=controller.plans.synced)
    manager.add(Stage.LEADER, "upgradeplan", controller.run)
    return manager


def _client(outside: Outside, transport: Transport) -> Client:
    return Client(transport, user_agent=USER_AGENT, random=outside.random)


def _elector(outside: Outside, options: RunOptions, metrics: Metrics) -> LeaderElector:
    return LeaderElector(
        _client(outside, outside.transport),
        name=LEASE,
        namespace=options.namespace,
        identity=new_identity(outside.random),
        random=outside.random,
        now=outside.clock.now,
        metrics=metrics,
    )


def _add_servers(manager: Manager, outside: Outside, options: RunOptions, metrics: Metrics, probes: Probes) -> None:
    servers = [probes.server(options.probes)] if options.probes else []
    if options.metrics and options.metrics_secure:
        servers.append(metrics_server(metrics, address=options.metrics, client=_client(outside, outside.transport)))
    elif options.metrics:
        servers.append(plain_metrics_server(metrics, address=options.metrics))
    for server in servers:
        manager.add(Stage.SERVERS, server.name, server.run, ready=server.bound)


def _probes(manager: Manager, controller: PlanController, elector: LeaderElector | None, metrics: Metrics) -> Probes:
    lag = LoopLag(lag=metrics.loop_lag)
    manager.add(Stage.OTHERS, "loop-lag", lag.run)
    probes = Probes()
    probes.healthz.add("loop", lag.check)
    probes.healthz.add("reconcile", controller.check)
    if elector is not None:
        probes.healthz.add("lease", elector.check)
    probes.readyz.add("plans", controller.ready)
    return probes
