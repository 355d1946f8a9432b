"""A scrape of a manager that upgrades a thousand nodes: time over HTTP, and size."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp
from prometheus_client import CollectorRegistry, ProcessCollector

from hack.bench.catalogue import Figure
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PHASES, PhaseName
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.store import Store
from upgrade_manager.pipeline.metrics import PlanCollector, UpgradeMetrics
from upgrade_manager.runtime.kube_metrics import RequestMetrics
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.metrics_server import plain_metrics_server
from webhook.catalogue import CHECKS
from webhook.metrics import WebhookMetrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

NODES = 1000
#: The median counts.
SCRAPES = 30
_MS, _BYTES_PER_MB = 1000.0, 1e6


def measure() -> list[Figure]:
    """Scrape compressed, as Prometheus does, and once uncompressed."""
    seconds, size = asyncio.run(_measured())
    return [
        Figure(name="scrape of 1,000 nodes", value=_MS * statistics.median(seconds), unit="ms", target=50),
        Figure(name="scrape of 1,000 nodes, uncompressed", value=size / _BYTES_PER_MB, unit="MB", target=1),
    ]


async def _measured() -> tuple[list[float], int]:
    async with _served(_metrics()) as url, aiohttp.ClientSession() as http:
        seconds = []
        for _ in range(SCRAPES):
            began = time.perf_counter()
            await _scrape(http, url, "gzip")
            seconds.append(time.perf_counter() - began)
        return seconds, await _scrape(http, url, "identity")


async def _scrape(http: aiohttp.ClientSession, url: str, encoding: str) -> int:
    """Return the size of the response's text."""
    async with http.get(url, headers={"Accept-Encoding": encoding}) as response:
        return len(await response.read())


def _metrics() -> Metrics:
    """Return all metrics of the leader, in an upgrade of NODES nodes."""
    metrics = Metrics(CollectorRegistry())
    ProcessCollector(registry=metrics.registry)
    WebhookMetrics(metrics, checks=[check.name for check in CHECKS])
    requests = RequestMetrics(metrics)
    for method in ("GET", "POST", "PATCH", "DELETE"):
        requests.on_response(method, "10.53.0.1:443", "200", 0.01)
    metrics.queue("upgradeplan")
    metrics.controller("upgradeplan")
    metrics.reconciles("upgradeplan")
    plans = Store()
    plans.replace([_plan()], "1")
    progress = UpgradeMetrics(metrics).progress
    collector = PlanCollector(plans, progress=progress, now=lambda: datetime.now(UTC), is_leader=lambda: True)
    metrics.on_scrape(collector.refresh)
    metrics.registry.register(collector)
    return metrics


def _plan() -> Object:
    values = [value for phase in PHASES for value in (phase.active, phase.completed)]
    reached = values[: values.index(PhaseName.NODE_UPGRADE.active) + 1]
    now = format_time(datetime.now(UTC))
    states = [NodeState.IMAGE_PRELOADED, NodeState.PRE_DRAINING, NodeState.POST_DRAINED]
    return {
        "metadata": {"name": "to-v1.8.0", "uid": "scrape"},
        "spec": {"version": "v1.8.0"},
        "status": {
            "currentPhase": reached[-1],
            "phaseTransitionTimestamps": [{"phase": value, "phaseTransitionTimestamp": now} for value in reached],
            "nodeUpgradeStatuses": {
                f"harvester-node-{number:04}": {"state": states[number % len(states)]} for number in range(NODES)
            },
        },
    }


@contextlib.asynccontextmanager
async def _served(metrics: Metrics) -> AsyncIterator[str]:
    server = plain_metrics_server(metrics, address=("127.0.0.1", 0))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        yield f"http://127.0.0.1:{server.port}/metrics"
        task.cancel()
