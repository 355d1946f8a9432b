"""A simulated cluster on a real control plane, and managers as processes that connect to its API server directly."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from hack.actors.repository_access import RepositoryServer
from hack.bench.in_process import PLAN, BenchError, plan_manifest
from hack.cluster.program import LOCAL_NAME
from hack.cluster.seed_harvester import api_endpoints
from hack.control_plane.backend import RealBackend
from hack.control_plane.control_plane import ADMIN, CONTROLLER_MANAGER, free_port
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.demo.processes import process_group
from hack.simulation import Simulation
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK, CATTLE_SYSTEM, HARVESTER_SYSTEM
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import ENDPOINT_SLICES, NAMESPACES, SERVICE_ACCOUNTS, UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.control_plane.control_plane import ControlPlane
    from hack.demo.processes import Child, ProcessGroup
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

#: Seconds between two polls of the plan and of the manager's metrics.
PLAN_INTERVAL = 0.5
METRICS_INTERVAL = 0.02
START_TIMEOUT = 60.0


class SimulatedBackend(RealBackend):
    """A real API server with simulated controllers: the real ones batch Job events for a second."""

    has_controllers = False
    # The simulated controllers leave dependents of deleted objects to the garbage collector.
    _processes = (CONTROLLER_MANAGER,)
    _controllers = ("garbage-collector-controller",)

    async def on_crds_established(self) -> None:
        """Create the service accounts without which the server admits no Pod, and start the garbage collector."""
        client = Client(self.transport, user_agent="bench", random=Random(0))
        for namespace in (HARVESTER_SYSTEM, CATTLE_SYSTEM):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            metadata = {"name": "default", "namespace": namespace}
            await client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        await super().on_crds_established()


@dataclass(frozen=True, slots=True)
class Usage:
    """The requests and the seconds of processor time of a manager since its start."""

    requests: float
    processor: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an event loop, in seconds of wall time and of processor time."""

    wall: float
    processor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerProcess:
    """A manager as a process, measured by its metrics and by the steps of its event loop."""

    child: Child
    report: Path
    metrics_url: str

    @classmethod
    async def start(cls, children: ProcessGroup, *, kubeconfig: Path, repo_url: str) -> ManagerProcess:
        """Start it without waiting."""
        port = free_port()
        report = children.folder / f"loop-steps-{port}.json"
        command = [sys.executable, "-m", "hack.bench.loop_steps", str(report), "run", "--kubeconfig", str(kubeconfig)]
        command += ["--repo-url", repo_url, "--health-probe-bind-address=0", "--metrics-secure=false"]
        command += ["--webhook-bind-address=0", f"--metrics-bind-address=127.0.0.1:{port}"]
        child = await children.start("manager", command)
        return cls(child=child, report=report, metrics_url=f"http://127.0.0.1:{port}/metrics")

    async def reconciled(self) -> None:
        """Wait for the first reconcile, which needs synced caches. Raises BenchError, TimeoutError."""
        async with asyncio.timeout(START_TIMEOUT):
            while not (await self._samples()).get("controller_runtime_reconcile_total"):  # noqa: ASYNC110  # a process
                await asyncio.sleep(METRICS_INTERVAL)

    async def usage(self) -> Usage:
        """Return the usage so far. Raises BenchError."""
        samples = await self._samples()
        return Usage(samples["rest_client_requests_total"], samples["process_cpu_seconds_total"])

    async def stop(self) -> list[Step]:
        """Stop it and return the longer steps of its event loop."""
        await self.child.stop()
        return [Step(*step) for step in json.loads(self.report.read_text())]

    async def _samples(self) -> dict[str, float]:
        """Return each metric's sum over its labels; empty while the server does not respond."""
        if self.child.process.returncode is not None:
            raise BenchError(f"{self.child.ending()}\n{self.child.tail(20)}")
        sums: dict[str, float] = {}
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with aiohttp.ClientSession() as http, http.get(self.metrics_url) as response:
                for metric in text_string_to_metric_families(await response.text()):
                    for sample in metric.samples:
                        sums[sample.name] = sums.get(sample.name, 0) + sample.value
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCluster:
    """The cluster, whose actors run in this process, and what a manager outside of it needs."""

    cluster: Simulation
    children: ProcessGroup
    kubeconfig: Path
    repo_url: str

    async def start_manager(self) -> ManagerProcess:
        """Start a manager without waiting."""
        return await ManagerProcess.start(self.children, kubeconfig=self.kubeconfig, repo_url=self.repo_url)

    async def create_plan(self) -> None:
        """Create the plan, without the disk check: kubelets do not listen here."""
        manifest = plan_manifest()
        manifest["metadata"]["annotations"] = {ANNOTATION_SKIP_DISK_CHECK: "true"}
        await self.cluster.apply(manifest)

    async def upgraded_nodes(self, wanted: int, *, within: float) -> int:
        """Wait until at least `wanted` nodes are upgraded and return their number. Raises BenchError, TimeoutError."""
        async with asyncio.timeout(within):
            while (count := _upgraded(await self._status())) < wanted:  # noqa: ASYNC110  # the API server's
                await asyncio.sleep(PLAN_INTERVAL)
            return count

    async def succeeded(self, *, within: float) -> None:
        """Wait until the plan has succeeded. Raises BenchError, TimeoutError."""
        async with asyncio.timeout(within):
            while (await self._status()).get("currentPhase") != "Succeeded":  # noqa: ASYNC110  # likewise
                await asyncio.sleep(PLAN_INTERVAL)

    async def _status(self) -> Object:
        status = objects.status(await self.cluster.client("bench").get(UPGRADE_PLANS, PLAN))
        if status.get("currentPhase") == "Failed":
            raise BenchError(f"the upgrade failed: {status.get('conditions')}")
        return status


@asynccontextmanager
async def real_cluster(plane: ControlPlane, scenario: Scenario, *, scale: float = 0.0) -> AsyncIterator[RealCluster]:
    """Fill a control plane; its controllers are simulated."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        cluster = Simulation(scenario, scale=scale, backend=lambda _: SimulatedBackend(plane))
        await stack.enter_async_context(cluster)
        await _publish_endpoint(cluster, plane)
        repository = await stack.enter_async_context(RepositoryServer())
        repository.serve(cluster.registry.repository)
        children = await stack.enter_async_context(process_group(folder))
        path = folder / "kubeconfig"
        write(path, kubeconfig(server=plane.url, authority=plane.certificate, token=ADMIN.token))
        yield RealCluster(cluster=cluster, children=children, kubeconfig=path, repo_url=repository.url + "/{plan}")


async def _publish_endpoint(cluster: Simulation, plane: ControlPlane) -> None:
    """Point the EndpointSlice to the real API server, whose certificate the manager checks."""
    client, slice_ = cluster.client("bench"), api_endpoints(f"https://{LOCAL_NAME}:{urlsplit(plane.url).port}")
    await client.delete(ENDPOINT_SLICES, objects.name(slice_), namespace=objects.namespace(slice_))
    await client.create(ENDPOINT_SLICES, slice_, namespace=objects.namespace(slice_))


def _upgraded(status: Object) -> int:
    states = (entry.get("state") for entry in (status.get("nodeUpgradeStatuses") or {}).values())
    return sum(NodeState(state).upgraded for state in states)
