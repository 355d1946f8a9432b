"""A thousand nodes, five thousand virtual machines and ten thousand volumes on a real API server.

Nodes are upgraded one after the other, so the upgrade is watched over a stretch of its nodes and not to its end.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack.actors.kinds import VOLUMES
from hack.actors.repository_access import RepositoryServer
from hack.bench.desk import PLAN, BenchError, plan_manifest
from hack.bench.figure import Figure
from hack.bench.playedground import PlayedGround
from hack.bench.process import memory
from hack.bench.watchedmanager import WatchedManager
from hack.cluster.kubeconfig import kubeconfig, write
from hack.cluster.seed_machines import volume
from hack.demo.processes import family
from hack.kube.assets import find_assets
from hack.kube.controlplane import ADMIN, ControlPlane
from hack.scenario import Machine
from hack.simulation import Simulation
from upgrade_manager.api.nodestates import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.kinds import UPGRADE_PLANS

if TYPE_CHECKING:
    from hack.bench.watchedmanager import Account, Step
    from hack.demo.processes import Family
    from hack.scenario import Scenario

NODES, MACHINES, VOLUMES_IN_ALL = 1000, 5000, 10000
#: Nodes that are upgraded before the measurement, and those over which is measured.
BEFORE, STRETCH = 10, 40
#: Requests at a time when volumes are planted.
AT_ONCE = 16
#: Seconds that the first nodes may take, with all that comes before them, and that each further one may take.
PATIENCE, PATIENCE_EACH = 900.0, 30.0
LOOK = 0.5
_UPGRADED = NodeState.POST_DRAINED.value
_MS, _MIB_PER_MB = 1000.0, 1000 * 1000 / 1024 / 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What was seen."""

    #: Seconds from the manager's start, in the middle of the upgrade, to its first look with filled caches.
    synced: float
    nodes: int
    before: Account
    after: Account
    #: MB, the most that ever was.
    memory: float
    #: The loop's longer steps, in both of the manager's lives.
    steps: list[Step]


def measure() -> list[Figure]:
    """Fill the cluster, and upgrade some of it. Raises AssetsError."""
    with ControlPlane(find_assets(os.environ)) as plane:
        seen = asyncio.run(stretch(plane, large(), before=BEFORE, nodes=STRETCH))
    requests = (seen.after.requests - seen.before.requests) / seen.nodes
    processor = (seen.after.processor - seen.before.processor) / seen.nodes
    longest = max((step.wall for step in seen.steps), default=0.0)
    busiest = max((step.processor for step in seen.steps), default=0.0)
    return [
        Figure(name="1,000 nodes: start to synced caches", value=seen.synced, unit="s", aim=2),
        Figure(name="1,000 nodes: most memory", value=seen.memory * _MIB_PER_MB, unit="MiB", aim=128),
        Figure(name="1,000 nodes: requests for each node", value=requests, unit="", aim=40),
        Figure(name="1,000 nodes: processor time for each node", value=_MS * processor, unit="ms", aim=200),
        Figure(name="1,000 nodes: longest step of the loop by the clock", value=_MS * longest, unit="ms", aim=50),
        Figure(name="1,000 nodes: longest step in processor time", value=_MS * busiest, unit="ms", aim=50),
    ]


def large() -> Scenario:
    """The cluster."""
    return scenarios.load("nodes-1000").changed(nodes={"count": NODES}, vms={"count": MACHINES})


async def stretch(plane: ControlPlane, scenario: Scenario, *, before: int, nodes: int) -> Stretch:
    """Upgrade so many nodes, restart the manager, and measure over the next ones."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        cluster = Simulation(scenario, scale=0.0, ground=lambda _: PlayedGround(plane))
        await stack.enter_async_context(cluster)
        await _plant_volumes(cluster, VOLUMES_IN_ALL - MACHINES)
        repository = await stack.enter_async_context(RepositoryServer())
        repository.serve(cluster.cast.repository)
        relatives = await stack.enter_async_context(family(folder))
        access = folder / "kubeconfig"
        write(access, kubeconfig(server=plane.url, authority=plane.certificate, token=ADMIN.token))
        repo_url = repository.url + "/{plan}"
        first = await WatchedManager.start(relatives, kubeconfig=access, repo_url=repo_url)
        await cluster.apply(plan_manifest())
        await _upgraded(cluster, before, within=PATIENCE)
        steps = await first.stop()
        return await _measured(cluster, relatives, access, repo_url, nodes=nodes, steps=steps)


async def _measured(
    cluster: Simulation, relatives: Family, access: Path, repo_url: str, *, nodes: int, steps: list[Step]
) -> Stretch:
    began = time.perf_counter()
    manager = await WatchedManager.start(relatives, kubeconfig=access, repo_url=repo_url)
    await manager.has_looked()
    synced = time.perf_counter() - began
    done = await _upgraded(cluster, 0, within=PATIENCE)
    account = await manager.account()
    reached = await _upgraded(cluster, done + nodes, within=PATIENCE_EACH * nodes)
    after = await manager.account()
    used = memory(manager.child.process.pid, "VmHWM")
    steps += await manager.stop()
    return Stretch(synced=synced, nodes=reached - done, before=account, after=after, memory=used, steps=steps)


async def _upgraded(cluster: Simulation, wanted: int, *, within: float) -> int:
    """Wait until so many nodes are upgraded, or more; how many are."""
    client = cluster.client("bench")
    async with asyncio.timeout(within):
        while True:
            status = objects.status(await client.get(UPGRADE_PLANS, PLAN))
            if status.get("currentPhase") == "Failed":
                raise BenchError(f"the upgrade failed: {status.get('conditions')}")
            states = [entry.get("state") for entry in (status.get("nodeUpgradeStatuses") or {}).values()]
            if states.count(_UPGRADED) >= wanted:
                return states.count(_UPGRADED)
            await asyncio.sleep(LOOK)


async def _plant_volumes(cluster: Simulation, count: int) -> None:
    """Volumes that no machine uses, as there are in every cluster."""
    client = cluster.client("bench")
    places = asyncio.Semaphore(AT_ONCE)

    async def plant(number: int) -> None:
        async with places:
            node = cluster.scenario.nodes.names[number % len(cluster.scenario.nodes.names)]
            await client.create(VOLUMES, volume(Machine(name=f"spare-{number}", node=node)))

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(plant(number))
