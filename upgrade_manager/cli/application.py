"""Wires the manager: one controller, its servers and its probes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from upgrade_manager import __version__
from upgrade_manager.kube.client import Client
from upgrade_manager.pipeline.context import Settings
from upgrade_manager.pipeline.controller import Dependencies, PlanController
from upgrade_manager.runtime.cert_watcher import CertWatcher
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.kube_metrics import InformerMetrics
from upgrade_manager.runtime.leader_election import LeaderElector, LeaderTransport, new_identity
from upgrade_manager.runtime.loop_watchdog import LoopWatchdog
from upgrade_manager.runtime.manager import Manager, Stage
from upgrade_manager.runtime.metrics_server import plain_metrics_server, secure_metrics_server
from webhook.admission import Admission
from webhook.catalogue import CHECKS
from webhook.cluster import LiveReader
from webhook.metrics import WebhookMetrics
from webhook.server import webhook_server

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.transport import Transport
    from upgrade_manager.pipeline.repository_client import RepositoryClient
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.runtime.metrics import Metrics

#: The name of the Lease.
LEASE = "upgrade-manager.management.harvesterhci.io"
USER_AGENT = f"harvester-upgrade-manager/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Access to everything outside the process: real in production, simulated in tests."""

    transport: Transport
    repository: RepositoryClient
    certificates: CertificateProbe
    clock: Clock
    random: Random


def build_manager(environment: Environment, options: RunOptions, metrics: Metrics) -> Manager:
    """Return the manager, ready to run."""
    elector = _elector(environment, options, metrics) if options.leader_elect else None
    controller = _controller(environment, options, metrics, elector)
    manager = Manager(elector=elector)
    watchdog = LoopWatchdog(lag=metrics.loop_lag)
    probes = _probes(controller, watchdog, elector)
    _add_servers(manager, environment, options, metrics, probes)
    manager.add(Stage.CACHES, "plans", controller.plans.run, ready=controller.plans.wait_for_sync)
    manager.add(Stage.OTHERS, "loop-watchdog", watchdog.run)
    manager.add(Stage.LEADER, "upgradeplan", controller.run)
    return manager


def _client(environment: Environment, transport: Transport) -> Client:
    return Client(transport, user_agent=USER_AGENT, random=environment.random)


def _elector(environment: Environment, options: RunOptions, metrics: Metrics) -> LeaderElector:
    return LeaderElector(
        _client(environment, environment.transport),
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
            client=_client(environment, transport),
            repository=environment.repository,
            certificates=environment.certificates,
            settings=Settings(
                version=__version__,
                repo_url=options.repo_url,
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


def _probes(controller: PlanController, watchdog: LoopWatchdog, elector: LeaderElector | None) -> Probes:
    probes = Probes()
    probes.healthz.add("loop", watchdog.check)
    probes.healthz.add("reconcile", controller.check)
    if elector is not None:
        probes.healthz.add("lease", elector.check)
    probes.readyz.add("plans", controller.ready)
    return probes


def _add_servers(
    manager: Manager, environment: Environment, options: RunOptions, metrics: Metrics, probes: Probes
) -> None:
    servers = [probes.server(options.probes)] if options.probes else []
    if options.metrics and options.metrics_secure:
        client = _client(environment, environment.transport)
        servers.append(secure_metrics_server(metrics, address=options.metrics, client=client))
    elif options.metrics:
        servers.append(plain_metrics_server(metrics, address=options.metrics))
    for server in servers:
        manager.add(Stage.SERVERS, server.name, server.run, ready=server.bound)
    if options.webhooks and options.webhook and options.webhook_certificates:
        reader = LiveReader(_client(environment, environment.transport))
        certificates = CertWatcher(Path(options.webhook_certificates))
        webhook = webhook_server(
            Admission(reader),
            metrics=WebhookMetrics(metrics, checks=[check.name for check in CHECKS]),
            address=options.webhook,
            tls=certificates.context,
        )
        manager.add(Stage.WEBHOOKS, webhook.name, webhook.run, ready=webhook.bound)
