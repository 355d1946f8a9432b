"""A thousand nodes, five thousand virtual machines and ten thousand volumes on a real API server.

Nodes are upgraded one after the other, so the upgrade is measured over some nodes and not run to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER
from hack.bench.phase_changes import phase_changes
from hack.bench.process import MIB_PER_MB, memory
from hack.bench.real_cluster import real_cluster
from hack.bench.recorder import Audit
from hack.cluster.seed_machines import volume
from hack.control_plane.assets import find_assets
from hack.control_plane.control_plane import API_SERVER, ControlPlane
from hack.scenario import Machine
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import LONGHORN_VOLUMES, NODES
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from hack.bench.real_cluster import RealCluster, Step, Usage
    from hack.simulation import Simulation
    from upgrade_manager.api.phases import PhaseName

COUNT, MACHINES, VOLUMES_IN_ALL = 1000, 5000, 10000
#: Nodes that are upgraded before the measurement, and in it.
BEFORE, MEASURED = 10, 40
#: Seconds for the first nodes with all phases before them, and for each further node.
START_TIMEOUT, NODE_TIMEOUT = 900.0, 30.0
#: Seconds between two reports of a kubelet whose node does not change (pkg/kubelet/apis/config/v1beta1/defaults.go,
#: NodeStatusReportFrequency, v1.35.1).
REPORT_INTERVAL = 300.0
#: The flag of an API server without streaming lists, as before Kubernetes 1.34.
WITHOUT_STREAMING = "--feature-gates=WatchList=false"
_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The upgrade of some nodes by a manager that was restarted before them."""

    #: Seconds from the manager's start to its first reconcile.
    synced: float
    nodes: int
    before: Usage
    after: Usage
    #: Peak, in MB.
    memory: float
    #: The longer steps of both managers' event loops.
    steps: list[Step]
    #: Of a manager that was restarted after them, with an API server without streaming lists.
    listed: Listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A manager that lists all objects page by page and upgrades a node."""

    #: Peak, in MB.
    memory: float
    #: The longer steps of its event loop.
    steps: list[Step]


def measure() -> list[Figure]:
    """Fill the cluster, and upgrade some of it. Raises AssetsError."""
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        audit = Audit(Path(folder))
        with ControlPlane(find_assets(os.environ), api_flags=audit.flags) as plane:
            found = asyncio.run(_upgrade(plane))
        changes = phase_changes(audit.exchanges(), manager=MANAGER)
    return [*figures(found), *_change_figures(changes)]


def figures(found: Measurement) -> list[Figure]:
    """Return the figures of the upgrade."""
    requests = (found.after.requests - found.before.requests) / found.nodes
    processor = (found.after.processor - found.before.processor) / found.nodes
    wall_step = max((step.wall for step in found.steps), default=0.0)
    step, listed_step = _longest(found.steps), _longest(found.listed.steps)
    listed = "1,000 nodes without streaming lists"
    return [
        Figure(name="1,000 nodes: start to synced caches", value=found.synced, unit="s", target=2),
        Figure(name="1,000 nodes: most memory", value=found.memory * MIB_PER_MB, unit="MiB", target=128),
        Figure(name="1,000 nodes: requests for each node", value=requests, unit="", target=40),
        Figure(name="1,000 nodes: processor time for each node", value=_MS * processor, unit="ms", target=200),
        Figure(name="1,000 nodes: longest step of the loop in wall time", value=_MS * wall_step, unit="ms", target=50),
        Figure(name="1,000 nodes: longest step in processor time", value=_MS * step, unit="ms", target=50),
        Figure(name=f"{listed}: most memory", value=found.listed.memory * MIB_PER_MB, unit="MiB", target=128),
        Figure(name=f"{listed}: longest step", value=_MS * listed_step, unit="ms", target=50),
    ]


def _longest(steps: list[Step]) -> float:
    """Return seconds of processor time."""
    return max((step.processor for step in steps), default=0.0)


def _change_figures(changes: dict[PhaseName, float]) -> list[Figure]:
    """Return a figure for each phase that ended."""
    return [
        Figure(name=f"1,000 nodes: {phase} ready to the next write", value=_MS * seconds, unit="ms", target=100)
        for phase, seconds in changes.items()
    ]


async def _upgrade(plane: ControlPlane) -> Measurement:
    """Upgrade the first nodes, restart the manager, and measure over the next ones."""
    scenario = scenarios.load("nodes-1000").changed(nodes={"count": COUNT}, vms={"count": MACHINES})
    async with real_cluster(plane, scenario) as cluster:
        await create_volumes(cluster.cluster, VOLUMES_IN_ALL - MACHINES)
        first = await cluster.start_manager()
        await cluster.create_plan()
        await cluster.upgraded_nodes(BEFORE, within=START_TIMEOUT)
        async with asyncio.TaskGroup() as group:
            reports = group.create_task(_report_nodes(cluster.cluster))
            found = await _measured(cluster, plane, steps=await first.stop())
            reports.cancel()
        return found


async def _measured(cluster: RealCluster, plane: ControlPlane, *, steps: list[Step]) -> Measurement:
    began = time.perf_counter()
    manager = await cluster.start_manager()
    await manager.reconciled()
    synced = time.perf_counter() - began
    done = await cluster.upgraded_nodes(0, within=START_TIMEOUT)
    before = await manager.usage()
    reached = await cluster.upgraded_nodes(done + MEASURED, within=NODE_TIMEOUT * MEASURED)
    after = await manager.usage()
    peak = memory(manager.child.process.pid, "VmHWM")
    steps += await manager.stop()
    return Measurement(
        synced=synced,
        nodes=reached - done,
        before=before,
        after=after,
        memory=peak,
        steps=steps,
        listed=await _listed(cluster, plane),
    )


async def _listed(cluster: RealCluster, plane: ControlPlane) -> Listed:
    """Restart the API server without streaming lists, and upgrade another node."""
    await asyncio.to_thread(plane.kill, API_SERVER)
    await asyncio.to_thread(plane.start, API_SERVER, WITHOUT_STREAMING)
    manager = await cluster.start_manager()
    done = await cluster.upgraded_nodes(0, within=START_TIMEOUT)
    await cluster.upgraded_nodes(done + 1, within=START_TIMEOUT)
    peak = memory(manager.child.process.pid, "VmHWM")
    return Listed(memory=peak, steps=await manager.stop())


async def _report_nodes(cluster: Simulation) -> None:
    """Let the kubelet of each node report its unchanged status, one after the other, until cancelled."""
    client, names = cluster.client("kubelet"), cluster.scenario.nodes.names
    for node in itertools.cycle(names):
        await asyncio.sleep(REPORT_INTERVAL / len(names))
        path, now = "/status/conditions/0/lastHeartbeatTime", format_time(cluster.now())
        with contextlib.suppress(KubeError):
            # The API server restarts during the measurement.
            await client.patch(
                NODES, node, JsonPatch([{"op": "add", "path": path, "value": now}]), subresource="status"
            )


async def create_volumes(cluster: Simulation, count: int) -> None:
    """Create volumes that no machine uses."""
    client, nodes = cluster.client("bench"), cluster.scenario.nodes.names
    at = format_time(cluster.now())
    machines = (Machine(name=f"spare-{number}", node=nodes[number % len(nodes)]) for number in range(count))
    await run_all(*(client.create(LONGHORN_VOLUMES, volume(machine, at=at)) for machine in machines))
