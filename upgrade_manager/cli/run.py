"""The command `upgrade-manager run`."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector

from upgrade_manager import __version__
from upgrade_manager.cli import gc_tuning
from upgrade_manager.cli.application import USER_AGENT, Environment, build_manager
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.config import ConfigError
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.repository_client import HttpRepositoryClient
from upgrade_manager.preflight.certificate_probe import TlsProbe
from upgrade_manager.runtime.http_server import BindError
from upgrade_manager.runtime.kube_metrics import RequestMetrics
from upgrade_manager.runtime.logging import configure_logging
from upgrade_manager.runtime.manager import Stage, stop_on_signals
from upgrade_manager.runtime.metrics import Metrics

if TYPE_CHECKING:
    from upgrade_manager.cli.options import RunOptions

#: Seconds for the first request to the API server.
STARTUP_TIMEOUT = 15.0


class StartError(Exception):
    """The API server cannot be used."""


def run(options: RunOptions) -> int:
    """Run the manager until it is stopped and return the exit status."""
    clock = SystemClock()
    configure_logging(level=options.log_level, log_format=options.log_format, stream=sys.stderr, now=clock.now)
    gc_tuning.collect_less_often()
    try:
        asyncio.run(_run_manager(options, clock))
    except (StartError, ConfigError, BindError) as error:
        sys.stderr.write(f"upgrade-manager: cannot start: {error}\n")
        return 1
    except Exception as error:  # noqa: BLE001  # logged as one line before the process exits
        structlog.get_logger(__name__).error("manager failed", error=str(error) or type(error).__name__)
        return 1
    return 0


async def _run_manager(options: RunOptions, clock: SystemClock) -> None:
    log = structlog.get_logger(__name__)
    config = await load_config(environ=os.environ, now=clock.now, kubeconfig=options.kubeconfig)
    async with AsyncExitStack() as stack:
        metrics = Metrics(CollectorRegistry())
        ProcessCollector(registry=metrics.registry)
        http = HttpTransport(config, on_response=RequestMetrics(metrics).on_response)
        transport = await stack.enter_async_context(http)
        repository = await stack.enter_async_context(HttpRepositoryClient(user_agent=USER_AGENT))
        environment = Environment(
            transport=transport, repository=repository, certificates=TlsProbe(), clock=clock, random=random.Random()
        )
        await _check_api_server(environment, config.server)
        manager = build_manager(environment, options, metrics)
        manager.add(Stage.OTHERS, "gc-freeze", _freeze)
        if options.webhooks:
            log.info("admission webhook not running; plans are not validated on creation")
        with stop_on_signals(manager.stop):
            log.info("starting", version=__version__, server=config.server)
            await manager.run()
            log.info("stopped")


async def _freeze() -> None:
    """Exclude the synced caches from collections; runs in a stage after theirs."""
    gc_tuning.freeze()


async def _check_api_server(environment: Environment, server: str) -> None:
    """Raise StartError if the API server cannot be used."""
    client = Client(environment.transport, user_agent=USER_AGENT, random=environment.random)
    try:
        async with asyncio.timeout(STARTUP_TIMEOUT):
            await client.raw("GET", UPGRADE_PLANS.path(), query=(("limit", "1"),))
    except NotFound as error:
        raise StartError(f"API server {server}: UpgradePlan CRD not found. Run kubectl apply -f deploy/crds") from error
    except TimeoutError as error:
        raise StartError(f"API server {server}: no response within {STARTUP_TIMEOUT:.0f} s") from error
    except KubeError as error:
        raise StartError(f"API server {server}: {error}. Check the kubeconfig or service account") from error
