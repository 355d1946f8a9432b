"""The size of a plan in a large cluster: of its object on a real API server, and of what its writes send to a watch.

Kubernetes supports 5,000 nodes. Entries are those of a simulated upgrade; the API server adds the owners of the fields.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack import virtual_time
from hack.bench.catalogue import Figure
from hack.bench.in_process import PLAN, manager, plan_manifest, run_plan
from hack.bench.real_cluster import SimulatedBackend
from hack.control_plane.assets import find_assets
from hack.control_plane.control_plane import ControlPlane
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from hack.apiserver.history import Entry
    from hack.control_plane.assets import Assets
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Nodes that Kubernetes supports.
NODES = 5000
#: Nodes of two simulated upgrades, by which the cost of each further node is known.
FEW, MORE = 10, 40
#: Nodes that are added with each write to the real API server.
CHUNK = 250
#: Bytes of a request that etcd accepts by default (`--max-request-bytes`).
ETCD_LIMIT = 1.5 * 1024 * 1024
_MB = 1000 * 1000


@dataclass(slots=True, kw_only=True)
class Writes:
    """The writes of a plan, of its events, and of its history."""

    sizes: list[int] = field(default_factory=list)
    #: The plan at its largest.
    largest: Object = field(default_factory=dict)
    events: int = 0

    def add(self, collection: str, entry: Entry) -> None:
        """Count a write. An observer of the embedded server's storage."""
        self.events += collection == "events"
        if collection != UPGRADE_PLANS.name:
            return
        size = size_of(entry.stored.object)
        if size > max(self.sizes, default=0):
            self.largest = entry.stored.object
        self.sizes.append(size)


def size_of(obj: Object) -> int:
    """Return the bytes of an object as compact JSON, which etcd stores of a custom resource."""
    return len(json.dumps(obj, separators=(",", ":")).encode())


def measure() -> list[Figure]:
    """Upgrade two simulated clusters, and write the plan of a larger one to a real API server. Raises AssetsError."""
    assets = find_assets(os.environ)
    few, more = (virtual_time.run(_upgrade(count)) for count in (FEW, MORE))
    each = (size_of(more.largest) - size_of(few.largest)) / (MORE - FEW)
    writes = (len(more.sizes) - len(few.sizes)) / (MORE - FEW)
    events = (more.events - few.events) / (MORE - FEW)
    bare = size_of(few.largest) + each * (NODES - FEW)
    fits, size = asyncio.run(_written(assets, more.largest))
    return [
        Figure(name="plan: bytes of each node", value=each, unit="B", target=300),
        Figure(name="plan of 5,000 nodes, without the owners of its fields", value=bare / _MB, unit="MB", target=1.5),
        Figure(name="plan: writes of the status for each node", value=writes, unit="", target=10),
        Figure(name="plan: events for each node", value=events, unit="", target=25),
        Figure(
            name="plan of 5,000 nodes: bytes of one upgrade in a watch",
            value=writes * NODES * bare / 2 / _MB,
            unit="MB",
            target=30_000,
        ),
        Figure(name="real server: nodes whose plan fits into etcd", value=fits, unit="", target=NODES, at_most=False),
        Figure(
            name="real server: bytes of that plan, as stored",
            value=size / _MB,
            unit="MB",
            target=ETCD_LIMIT / _MB,
        ),
    ]


async def _upgrade(count: int) -> Writes:
    scenario = scenarios.load("three-nodes").changed(nodes={"count": count, "management": 3})
    written = Writes()
    async with Simulation(scenario) as simulation:
        simulation.server.storage.observers.append(written.add)
        async with manager(simulation, simulation.transport()):
            await run_plan(simulation)
    return written


async def _written(assets: Assets, plan: Object) -> tuple[int, int]:
    """Return the number of nodes up to which the API server accepts the plan's status, and the object's bytes there."""
    entry = max(objects.status(plan)["nodeUpgradeStatuses"].values(), key=size_of)
    rest = {key: value for key, value in objects.status(plan).items() if key != "nodeUpgradeStatuses"}
    with ControlPlane(assets) as plane:
        async with Simulation("three-nodes", actors=False, backend=lambda _: SimulatedBackend(plane)) as simulation:
            client = simulation.client("harvester-upgrade-manager")
            await client.create(UPGRADE_PLANS, plan_manifest())
            await client.patch(UPGRADE_PLANS, PLAN, MergePatch({"status": rest}), subresource="status")
            return await _fill(client, entry)


async def _fill(client: Client, entry: Object) -> tuple[int, int]:
    fits, size = 0, 0
    while fits < 2 * NODES:
        # A host name of 20 characters.
        more = {f"harvester-{number:010}": entry for number in range(fits, fits + CHUNK)}
        try:
            body = {"status": {"nodeUpgradeStatuses": more}}
            written = await client.patch(UPGRADE_PLANS, PLAN, MergePatch(body), subresource="status")
        except Transient as error:
            # The API server reports etcd's refusal without a separate reason.
            if "request is too large" not in str(error):
                raise
            break
        fits, size = fits + CHUNK, size_of(written)
    return fits, size
