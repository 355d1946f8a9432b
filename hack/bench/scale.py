"""A thousand nodes, five thousand virtual machines and ten thousand volumes on a real API server.

Nodes are upgraded one after the other, so the upgrade is watched over a stretch of its nodes and not to its end.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.actors.kinds import VOLUMES
from hack.bench.audit import Audit
from hack.bench.desk import MANAGER
from hack.bench.figure import Figure
from hack.bench.outside import outside
from hack.bench.phase_changes import phase_changes
from hack.bench.process import memory
from hack.cluster import scenario as scenarios
from hack.cluster.scenario import Machine
from hack.cluster.seed_machines import volume
from hack.control_plane.assets import find_assets
from hack.control_plane.control_plane import ControlPlane

if TYPE_CHECKING:
    from hack.bench.outside import Outside
    from hack.bench.watched_manager import Account, Step
    from hack.cluster.scenario import Scenario
    from hack.simulation import Simulation
    from upgrade_manager.api.phases import PhaseName

NODES, MACHINES, VOLUMES_IN_ALL = 1000, 5000, 10000
#: Nodes that are upgraded before the measurement, and those over which is measured.
BEFORE, STRETCH = 10, 40
#: Requests at a time when volumes are planted.
AT_ONCE = 16
#: Seconds that the first nodes may take, with all that comes before them, and that each further one may take.
PATIENCE, PATIENCE_EACH = 900.0, 30.0
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
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        audit = Audit(Path(folder))
        with ControlPlane(find_assets(os.environ), api_flags=audit.flags) as plane:
            seen = asyncio.run(stretch(plane, large(), before=BEFORE, nodes=STRETCH))
        changes = phase_changes(audit.exchanges(), manager=MANAGER)
    return [*_figures(seen), *_changes(changes)]


def _figures(seen: Stretch) -> list[Figure]:
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


def _changes(changes: dict[PhaseName, float]) -> list[Figure]:
    """Those of the phases that came to their end."""
    return [
        Figure(name=f"1,000 nodes: {phase} ready to the next write", value=_MS * seconds, unit="ms", aim=100)
        for phase, seconds in changes.items()
    ]


def large() -> Scenario:
    """The cluster."""
    return scenarios.load("nodes-1000").changed(nodes={"count": NODES}, vms={"count": MACHINES})


async def stretch(plane: ControlPlane, scenario: Scenario, *, before: int, nodes: int) -> Stretch:
    """Upgrade so many nodes, restart the manager, and measure over the next ones."""
    async with outside(plane, scenario) as place:
        await _plant_volumes(place.cluster, VOLUMES_IN_ALL - MACHINES)
        first = await place.start_manager()
        await place.apply()
        await place.upgraded(before, within=PATIENCE)
        steps = await first.stop()
        return await _measured(place, nodes=nodes, steps=steps)


async def _measured(place: Outside, *, nodes: int, steps: list[Step]) -> Stretch:
    began = time.perf_counter()
    manager = await place.start_manager()
    await manager.has_looked()
    synced = time.perf_counter() - began
    done = await place.upgraded(0, within=PATIENCE)
    account = await manager.account()
    reached = await place.upgraded(done + nodes, within=PATIENCE_EACH * nodes)
    after = await manager.account()
    used = memory(manager.child.process.pid, "VmHWM")
    steps += await manager.stop()
    return Stretch(synced=synced, nodes=reached - done, before=account, after=after, memory=used, steps=steps)


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
