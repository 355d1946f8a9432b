"""The commands `upgrade-manager run` and `upgrade-manager webhook`.

main.py starts it; application.py wires what runs.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector

from upgrade_manager import __version__
from upgrade_manager.cli import gc_tuning, tls_buffers
from upgrade_manager.cli.api_server_check import ApiServerCheck, StartError
from upgrade_manager.cli.application import build_manager
from upgrade_manager.cli.environment import USER_AGENT, Environment
from upgrade_manager.cli.leader_check import refuse_beside_leader
from upgrade_manager.cli.options import KubeletAccess
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import DatedTransport, ServerClock, SystemClock
from upgrade_manager.kube.config import ConfigError, InCluster
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.preflight.certificate_probe import TlsProbe
from upgrade_manager.preflight.kubelet_transport import HttpKubeletTransport
from upgrade_manager.preflight.kubelets import DirectKubelets, ProxiedKubelets
from upgrade_manager.release.repository_client import SERVICE_URL, HttpRepositoryClient
from upgrade_manager.release.service_proxy import ServiceProxyClient
from upgrade_manager.runtime.cert_watcher import CertificateError
from upgrade_manager.runtime.http_server import BindError
from upgrade_manager.runtime.kube_metrics import RequestMetrics
from upgrade_manager.runtime.logging import configure_logging
from upgrade_manager.runtime.manager import Manager, Stage, kill
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.signals import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from upgrade_manager.cli.options import RunOptions
    from upgrade_manager.kube.config import ClientConfig
    from upgrade_manager.preflight.kubelets import KubeletReader


def run(options: RunOptions) -> int:
    """Run the manager until it is stopped and return the exit status."""
    clock = SystemClock()
    configure_logging(level=options.log_level, log_format=options.log_format, stream=sys.stderr, now=clock.now)
    tls_buffers.use_small_buffers()
    if not options.webhook_only:
        # `build_manager` imports it, and would block the event loop for 0.1 s.
        import_module("upgrade_manager.cli.leader")
    try:
        asyncio.run(_run(options, clock))
    except (StartError, ConfigError, BindError, CertificateError) as error:
        sys.stderr.write(f"upgrade-manager: cannot start: {error}\n")
        return 1
    except asyncio.CancelledError:
        return 0
    except Exception as error:  # noqa: BLE001  # logged as one line before the process exits
        structlog.get_logger(__name__).error("manager failed", error=str(error) or type(error).__name__)
        return 1
    return 0


async def _run(options: RunOptions, clock: SystemClock) -> None:
    """Run the manager; a signal that comes before cancels the start."""
    task = asyncio.current_task()
    target: Callable[[], object] = task.cancel if task is not None else kill

    def stop() -> None:
        target()

    with stop_on_signals(stop):
        async with _environment(options, clock) as (environment, metrics, config):
            manager = await _manager(environment, metrics, options, config)
            target = manager.stop
            log = structlog.get_logger(__name__)
            log.info("starting", version=__version__, server=config.server)
            await manager.run()
            log.info("stopped")


@asynccontextmanager
async def _environment(
    options: RunOptions, clock: SystemClock
) -> AsyncIterator[tuple[Environment, Metrics, ClientConfig]]:
    config = await load_config(
        environ=os.environ, now=clock.now, kubeconfig=options.kubeconfig, context=options.context
    )
    metrics = Metrics(CollectorRegistry())
    ProcessCollector(registry=metrics.registry)
    async with (
        HttpTransport(config, on_response=RequestMetrics(metrics).on_response) as transport,
        HttpRepositoryClient(user_agent=USER_AGENT) as client,
        AsyncExitStack() as stack,
    ):
        proxy = ServiceProxyClient(transport, server=config.server)
        is_in_cluster = isinstance(config.source, InCluster)
        is_proxied = not options.repo_url and not is_in_cluster
        randomness = random.Random()
        kubelets: KubeletReader = ProxiedKubelets(Client(transport, user_agent=USER_AGENT, random=randomness))
        if kubelet_access(options, config) is KubeletAccess.DIRECT:
            direct = HttpKubeletTransport(config, user_agent=USER_AGENT)
            kubelets = DirectKubelets(await stack.enter_async_context(direct))
        environment = Environment(
            transport=transport,
            lease=transport.reserved(),
            repository=proxy if is_proxied else client,
            repo_url=proxy.repo_url if is_proxied else SERVICE_URL,
            certificates=TlsProbe(),
            kubelets=kubelets,
            clock=clock,
            random=randomness,
        )
        yield environment, metrics, config


def kubelet_access(options: RunOptions, config: ClientConfig) -> KubeletAccess:
    """Return how kubelets are read: from outside the cluster, as the user whose kubeconfig it is."""
    is_in_cluster = isinstance(config.source, InCluster)
    return options.kubelet_access or (KubeletAccess.DIRECT if is_in_cluster else KubeletAccess.PROXY)


def is_beside(options: RunOptions, config: ClientConfig) -> bool:
    """Return True for a manager that would work beside a leader: on a user's machine, and no candidate itself."""
    return not (isinstance(config.source, InCluster) or options.leader_elect or options.webhook_only)


async def _manager(environment: Environment, metrics: Metrics, options: RunOptions, config: ClientConfig) -> Manager:
    """Return the manager. Raises StartError if the API server rejects its configuration."""
    clock = ServerClock(environment.clock)
    transport = DatedTransport(environment.transport, clock)
    client = Client(transport, user_agent=USER_AGENT, random=environment.random)
    check = ApiServerCheck(client, server=config.server, random=environment.random)
    if is_beside(options, config):
        check.add(partial(refuse_beside_leader, client, clock=clock))
    is_available = await check.attempt()
    manager = build_manager(environment, options, metrics)
    if not is_available:
        # The first stage, so that the caches wait for the server and the probes report it.
        manager.add(Stage.SERVERS, "api-server", check.run, ready=check.passed, ready_timeout=None)
    manager.add(Stage.OTHERS, "gc-freeze", _freeze)
    return manager


async def _freeze() -> None:
    """Exclude the synced caches from collections; runs in a stage after theirs."""
    gc_tuning.freeze()
