"""Wires the manager: one controller, its servers and its probes.

run.py calls it with real connections, tests with simulated ones; servers.py and webhook/wiring.py add the servers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager import __version__
from upgrade_manager.api.keys import LEASE, MANAGER
from upgrade_manager.cli.servers import add_servers
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import DatedTransport, ServerClock
from upgrade_manager.pipeline.context import Settings
from upgrade_manager.pipeline.controller import Dependencies, PlanController
from upgrade_manager.release.repository_client import SERVICE_URL
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.kube_metrics import InformerMetrics
from upgrade_manager.runtime.leader_election import LeaderElector, LeaderTransport, new_identity
from upgrade_manager.runtime.loop_watchdog import LoopWatchdog
from upgrade_manager.runtime.manager import Manager, Stage
from webhook.wiring import WebhookSettings, add_webhook

if TYPE_CHECKING:
    from random import Random

    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.transport import Transport
    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.preflight.kubelets import KubeletReader
    from upgrade_manager.release.repository_client import RepositoryClient
    from upgrade_manager.runtime.metrics import Metrics

USER_AGENT = f"{MANAGER}/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Access to everything outside the process: real in production, simulated in tests."""

    transport: Transport
    #: For the requests of the leader election alone.
    lease: Transport
    repository: RepositoryClient
    certificates: CertificateProbe
    kubelets: KubeletReader
    clock: Clock
    random: Random
    #: The URL of the repository's Service, without `--repo-url`.
    repo_url: str = SERVICE_URL


def build_manager(environment: Environment, options: RunOptions, metrics: Metrics) -> Manager:
    """Return the manager, ready to run."""
    clock = ServerClock(environment.clock)
    corrected = replace(environment, clock=clock, transport=DatedTransport(environment.transport, clock))
    return (_webhook_only if options.webhook_only else _complete)(corrected, options, metrics)


def _complete(environment: Environment, options: RunOptions, metrics: Metrics) -> Manager:
    elector = _elector(environment, options, metrics) if options.leader_elect else None
    controller = _controller(environment, options, metrics, elector)
    manager = Manager(elector=elector)
    probes = Probes()
    probes.healthz.add("reconcile", controller.check)
    if elector is not None:
        probes.healthz.add("lease", elector.check)
        probes.readyz.add("lease", elector.check_access)
    probes.readyz.add("plans", controller.ready)
    _add_common(manager, environment, options, metrics, probes)
    # Without a timeout: while the API server is slow or away, `/readyz` reports it, and a restart would not help.
    plans = controller.plans
    manager.add(Stage.CACHES, "plans", plans.run, ready=plans.wait_for_sync, ready_timeout=None)
    manager.add(Stage.LEADER, "upgradeplan", controller.run)
    return manager


def _webhook_only(environment: Environment, options: RunOptions, metrics: Metrics) -> Manager:
    manager = Manager(elector=None)
    _add_common(manager, environment, options, metrics, Probes())
    return manager


def _add_common(
    manager: Manager, environment: Environment, options: RunOptions, metrics: Metrics, probes: Probes
) -> None:
    """Add what runs in every replica, leader or not."""
    client = _client(environment, environment.transport)
    add_servers(manager, options, probes=probes, metrics=metrics, client=client, clock=environment.clock)
    webhook = webhook_settings(options)
    if webhook is not None:
        add_webhook(
            manager,
            webhook,
            probes=probes,
            metrics=metrics,
            client=client,
            certificates=environment.certificates,
            clock=environment.clock,
            random=environment.random,
        )
    watchdog = LoopWatchdog(lag=metrics.loop_lag)
    probes.healthz.add("loop", watchdog.check)
    manager.add(Stage.OTHERS, "loop-watchdog", watchdog.run)


def webhook_settings(options: RunOptions) -> WebhookSettings | None:
    """Return the settings of the admission webhook; None if it is turned off."""
    if not options.webhooks or options.webhook is None:
        return None
    return WebhookSettings(
        address=options.webhook,
        certificates=options.webhook_certificates,
        namespace=options.namespace,
        toolkit=options.toolkit,
    )


def _client(environment: Environment, transport: Transport) -> Client:
    return Client(transport, user_agent=USER_AGENT, random=environment.random)


def _elector(environment: Environment, options: RunOptions, metrics: Metrics) -> LeaderElector:
    return LeaderElector(
        _client(environment, environment.lease),
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
