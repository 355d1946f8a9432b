"""`upgrade-manager run`: connects, wires, and runs until told to stop."""

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
from upgrade_manager.cli.application import USER_AGENT, Outside, assemble
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.config import ConfigError
from upgrade_manager.kube.errors import KubeError, NotFound
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.repository_client import HttpRepositoryClient
from upgrade_manager.preflight.certificate_probe import TlsProbe
from upgrade_manager.runtime.kube_metrics import RequestMetrics
from upgrade_manager.runtime.logging import configure_logging
from upgrade_manager.runtime.manager import Stage
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.signals import stop_on_signals

if TYPE_CHECKING:
    from upgrade_manager.cli.options import RunOptions

#: Seconds for the first question to the API server.
PATIENCE = 15.0


class StartError(Exception):
    """Why the manager cannot start: one line for the person who started it."""


def run(options: RunOptions) -> int:
    """Run until stopped; the exit status."""
    clock = SystemClock()
    configure_logging(level=options.log_level, log_format=options.log_format, stream=sys.stderr, now=clock.now)
    gc_tuning.relax()
    try:
        asyncio.run(_serve(options, clock))
    except (StartError, ConfigError) as error:
        sys.stderr.write(f"upgrade-manager: {error}\n")
        return 1
    except Exception as error:  # noqa: BLE001  # the process ends here: one line, the rest is for the debug log
        structlog.get_logger().error("the manager ended", error=str(error) or type(error).__name__)
        return 1
    return 0


async def _serve(options: RunOptions, clock: SystemClock) -> None:
    log = structlog.get_logger()
    connection = await load_config(environ=os.environ, now=clock.now, kubeconfig=options.kubeconfig)
    async with AsyncExitStack() as stack:
        metrics = Metrics(CollectorRegistry())
        ProcessCollector(registry=metrics.registry)
        transport = await stack.enter_async_context(HttpTransport(connection, observer=RequestMetrics(metrics)))
        repository = await stack.enter_async_context(HttpRepositoryClient(user_agent=USER_AGENT))
        outside = Outside(
            transport=transport, repository=repository, certificates=TlsProbe(), clock=clock, random=random.Random()
        )
        await _greet(outside, connection.server)
        manager = assemble(outside, options, metrics)
        manager.add(Stage.OTHERS, "garbage", _settle_garbage)
        if options.webhooks:
            log.info("this version has no admission webhook; ENABLE_WEBHOOKS=false says that this is known")
        with stop_on_signals(manager.stop):
            log.info("starting", version=__version__, server=connection.server)
            await manager.run()
            log.info("stopped")


async def _settle_garbage() -> None:
    """Once the caches are filled: what is in them is there to stay."""
    gc_tuning.settle()


async def _greet(outside: Outside, server: str) -> None:
    """Ask one question first: whoever starts the manager by hand wants to know at once that it cannot work."""
    client = Client(outside.transport, user_agent=USER_AGENT, random=outside.random)
    try:
        async with asyncio.timeout(PATIENCE):
            await client.raw("GET", UPGRADE_PLANS.path(), query=(("limit", "1"),))
    except NotFound as error:
        raise StartError(
            f"the cluster at {server} does not know UpgradePlans; apply deploy/crds to it first"
        ) from error
    except TimeoutError as error:
        raise StartError(f"the API server at {server} does not answer within {PATIENCE:.0f} s") from error
    except KubeError as error:
        raise StartError(f"the API server at {server} cannot be used: {error}") from error
