"""A cluster on a control plane of its own, and managers as processes that speak to its API server directly."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hack.actors.repository_access import RepositoryServer
from hack.bench.desk import PLAN, BenchError, plan_manifest
from hack.bench.simulated_backend import SimulatedBackend
from hack.bench.watched_manager import WatchedManager
from hack.cluster.kubeconfig import kubeconfig, write
from hack.cluster.program import LOCAL_NAME
from hack.cluster.seed_harvester import api_endpoints
from hack.control_plane.control_plane import ADMIN
from hack.demo.processes import family
from hack.simulation import Simulation
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import ENDPOINT_SLICES, UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.cluster.scenario import Scenario
    from hack.control_plane.control_plane import ControlPlane
    from hack.demo.processes import Family
    from upgrade_manager.kube.objects import Object

#: Seconds between two looks at the plan.
LOOK = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The cluster, whose inhabitants live in this process, and what a manager outside of it needs."""

    cluster: Simulation
    relatives: Family
    access: Path
    repo_url: str

    async def start_manager(self) -> WatchedManager:
        """Start one, without waiting for anything."""
        return await WatchedManager.start(self.relatives, kubeconfig=self.access, repo_url=self.repo_url)

    async def apply(self) -> None:
        """Create the plan. The kubelets answer nobody here, so their disks are not looked at."""
        manifest = plan_manifest()
        manifest["metadata"]["annotations"] = {ANNOTATION_SKIP_DISK_CHECK: "true"}
        await self.cluster.apply(manifest)

    async def upgraded(self, wanted: int, *, within: float) -> int:
        """Wait until so many nodes are upgraded, or more; how many are. Raises BenchError, TimeoutError."""
        async with asyncio.timeout(within):
            while (count := _count(await self._status())) < wanted:  # noqa: ASYNC110  # the API server's
                await asyncio.sleep(LOOK)
            return count

    async def succeeded(self, *, within: float) -> None:
        """Wait for the good end. Raises BenchError, TimeoutError."""
        async with asyncio.timeout(within):
            while (await self._status()).get("currentPhase") != "Succeeded":  # noqa: ASYNC110  # likewise
                await asyncio.sleep(LOOK)

    async def _status(self) -> Object:
        status = objects.status(await self.cluster.client("bench").get(UPGRADE_PLANS, PLAN))
        if status.get("currentPhase") == "Failed":
            raise BenchError(f"the upgrade failed: {status.get('conditions')}")
        return status


@asynccontextmanager
async def outside(plane: ControlPlane, scenario: Scenario, *, scale: float = 0.0) -> AsyncIterator[Outside]:
    """Fill the control plane; its actors play kube-controller-manager, too."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-bench-")))
        cluster = Simulation(scenario, scale=scale, backend=lambda _: SimulatedBackend(plane))
        await stack.enter_async_context(cluster)
        await _show(cluster, plane)
        repository = await stack.enter_async_context(RepositoryServer())
        repository.serve(cluster.registry.repository)
        relatives = await stack.enter_async_context(family(folder))
        access = folder / "kubeconfig"
        write(access, kubeconfig(server=plane.url, authority=plane.certificate, token=ADMIN.token))
        yield Outside(cluster=cluster, relatives=relatives, access=access, repo_url=repository.url + "/{plan}")


async def _show(cluster: Simulation, plane: ControlPlane) -> None:
    """Where the API server is, whose certificate the manager looks at: a simulation's own is nowhere."""
    client, slice_ = cluster.client("bench"), api_endpoints(f"https://{LOCAL_NAME}:{urlsplit(plane.url).port}")
    await client.delete(ENDPOINT_SLICES, objects.name(slice_), namespace=objects.namespace(slice_))
    await client.create(ENDPOINT_SLICES, slice_, namespace=objects.namespace(slice_))


def _count(status: Object) -> int:
    states = (entry.get("state") for entry in (status.get("nodeUpgradeStatuses") or {}).values())
    return sum(NodeState(state).upgraded for state in states)
