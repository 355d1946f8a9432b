"""Reviews of new plans on a cluster of 1,000 nodes, 5,000 VMs and 10,000 volumes, by a webhook in a process.

The real API server holds the cluster; no actor changes it. Memory is measured until the caches are dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from hack import scenario as scenarios
from hack.bench.catalogue import Figure
from hack.bench.in_process import BenchError, plan_manifest
from hack.bench.local_processes import start_program
from hack.bench.process import memory
from hack.bench.real_cluster import SimulatedBackend
from hack.bench.scale import COUNT, MACHINES, VOLUMES_IN_ALL, create_volumes
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import direct
from hack.control_plane.certificates import Authority
from hack.control_plane.control_plane import ADMIN, ControlPlane, free_port
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.demo.processes import process_group
from hack.simulation import Simulation
from upgrade_manager.api.keys import API_VERSION, GROUP, KIND, LONGHORN_SYSTEM, VERSION
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import LONGHORN_VOLUMES
from webhook.caches import KEEP
from webhook.server import PATH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.demo.processes import Child, ProcessGroup

#: Starts of the webhook with one review each, and with all at once; reviews on caches.
COLD_STARTS, AT_ONCE, WARM_REVIEWS, DENIALS = 5, 50, 200, 10
#: Seconds in which a process becomes idle, and its caches fill.
SETTLE = 8.0
#: The API server's time-out.
REVIEW_TIMEOUT = 10.0
_P99, _MS = 0.99, 1000.0
_PREFIX = "harvester_upgrade_admission"


@dataclass(slots=True)
class Measurement:
    """Seconds of reviews, and MB of memory."""

    cold: list[float]
    cold_at_once: list[float]
    ratio: float
    warm: list[float]
    warm_at_once: list[float]
    denials: list[float]
    idle: float = 0.0
    peak: float = 0.0
    dropped: float = 0.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as a process."""

    child: Child
    session: aiohttp.ClientSession
    url: str
    metrics_url: str

    async def create(self, *, is_allowed: bool = True) -> float:
        """Review the creation of a plan; return the seconds. Raises BenchError for another decision, TimeoutError."""
        began = time.perf_counter()
        async with asyncio.timeout(REVIEW_TIMEOUT), self.session.post(self.url + PATH, json=_review()) as response:
            found = (await response.json())["response"]
        if found["allowed"] is not is_allowed:
            raise BenchError(f"unexpected decision: {found}")
        return time.perf_counter() - began

    async def create_at_once(self) -> list[float]:
        """Review many creations at the same time."""
        return await asyncio.gather(*(self.create() for _ in range(AT_ONCE)))

    async def ratio(self) -> float:
        """Return the seconds of all reviews so far over those of their slowest checks."""
        async with self.session.get(self.metrics_url) as response:
            families = text_string_to_metric_families(await response.text())
            samples = [sample for family in families for sample in family.samples]
        whole = sum(sample.value for sample in samples if sample.name == f"{_PREFIX}_duration_seconds_sum")
        checks = [sample.value for sample in samples if sample.name == f"{_PREFIX}_check_duration_seconds_sum"]
        return whole / max(checks)

    def memory(self, field: str) -> float:
        """Return MB from /proc."""
        return memory(self.child.process.pid, field)


def measure() -> list[Figure]:
    """Fill a cluster and review plans. Raises AssetsError."""
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as name, ControlPlane(find_assets(os.environ)) as plane:
        folder = Path(name)
        asyncio.run(_fill(plane))
        write(folder / "kubeconfig", kubeconfig(server=plane.url, authority=plane.certificate, token=ADMIN.token))
        found = asyncio.run(_measure(plane, folder))
    return [
        _seconds("one review, cold", statistics.median(found.cold), 1.0),
        _seconds(f"{AT_ONCE} reviews at once, cold, slowest", max(found.cold_at_once), REVIEW_TIMEOUT),
        _milliseconds("one review on caches, p99", _quantile(found.warm), 100),
        _seconds(f"{AT_ONCE} reviews at once on caches, slowest", max(found.warm_at_once), REVIEW_TIMEOUT),
        _seconds("a denial, which is read live", statistics.median(found.denials), 1.0),
        Figure(name="webhook: cold review over its slowest check", value=found.ratio, unit="", target=1.3),
        Figure(name="webhook: resident memory, peak", value=found.peak, unit="MB", target=200),
        Figure(
            name="webhook: resident memory after it over before", value=found.dropped / found.idle, unit="", target=1.25
        ),
    ]


def _seconds(name: str, value: float, target: float) -> Figure:
    return Figure(name=f"webhook: {name}", value=value, unit="s", target=target)


def _milliseconds(name: str, value: float, target: float) -> Figure:
    return Figure(name=f"webhook: {name}", value=value * _MS, unit="ms", target=target)


def _quantile(values: list[float]) -> float:
    return sorted(values)[math.ceil(_P99 * len(values)) - 1]


async def _fill(plane: ControlPlane) -> None:
    scenario = scenarios.load("nodes-1000").changed(nodes={"count": COUNT}, vms={"count": MACHINES})
    async with Simulation(scenario, actors=False, backend=lambda _: SimulatedBackend(plane)) as cluster:
        await create_volumes(cluster, VOLUMES_IN_ALL - MACHINES)


async def _measure(plane: ControlPlane, folder: Path) -> Measurement:
    async with process_group(folder) as children:
        cold, ratios = [], []
        for _ in range(COLD_STARTS):
            async with _webhook(children) as webhook:
                cold.append(await webhook.create())
                ratios.append(await webhook.ratio())
        async with _webhook(children) as webhook:
            cold_at_once = await webhook.create_at_once()
        async with _webhook(children) as webhook:
            await asyncio.sleep(SETTLE)
            idle = webhook.memory("VmRSS")
            found = await _warm(plane, webhook)
            found.peak = webhook.memory("VmHWM")
            await asyncio.sleep(KEEP + SETTLE)
            found.idle, found.dropped = idle, webhook.memory("VmRSS")
    found.cold, found.cold_at_once, found.ratio = cold, cold_at_once, max(ratios)
    return found


async def _warm(plane: ControlPlane, webhook: Webhook) -> Measurement:
    """Review on caches, then with a degraded volume."""
    await webhook.create()
    await asyncio.sleep(SETTLE)
    warm = [await webhook.create() for _ in range(WARM_REVIEWS)]
    warm_at_once = await webhook.create_at_once()
    async with direct(plane, token=ADMIN.token) as transport:
        client = Client(transport, user_agent="bench", random=Random(0))
        volume = (await client.list(LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM)).items[0]

        async def set_robustness(value: str) -> None:
            patch, name = MergePatch({"status": {"robustness": value}}), objects.name(volume)
            await client.patch(LONGHORN_VOLUMES, name, patch, namespace=LONGHORN_SYSTEM, subresource="status")

        await set_robustness("degraded")
        await asyncio.sleep(SETTLE)
        denials = [await webhook.create(is_allowed=False) for _ in range(DENIALS)]
        await set_robustness("healthy")
    return Measurement(cold=[], cold_at_once=[], ratio=0, warm=warm, warm_at_once=warm_at_once, denials=denials)


@contextlib.asynccontextmanager
async def _webhook(children: ProcessGroup) -> AsyncIterator[Webhook]:
    """Run a webhook. Raises BenchError, TimeoutError."""
    port, metrics_port = free_port(), free_port()
    certificates = children.folder / "certificates"
    certificates.mkdir(exist_ok=True)
    Authority(now=datetime.now(UTC)).server().write(certificates, "tls")
    command = [sys.executable, "-m", "upgrade_manager", "webhook", f"--kubeconfig={children.folder / 'kubeconfig'}"]
    command += [f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-cert-path={certificates}"]
    command += [f"--metrics-bind-address=127.0.0.1:{metrics_port}", "--metrics-secure=false"]
    child = await start_program(children, "webhook", *command)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False, limit=0)) as session:
        try:
            yield Webhook(child, session, f"https://127.0.0.1:{port}", f"http://127.0.0.1:{metrics_port}/metrics")
        finally:
            await child.stop()


def _review() -> dict[str, Any]:
    request = {
        "uid": "bench",
        "kind": {"group": GROUP, "version": VERSION, "kind": KIND},
        "operation": "CREATE",
        "object": {"apiVersion": API_VERSION, **plan_manifest()},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
