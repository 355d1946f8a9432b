"""A cluster with one Longhorn volume, for the gate of the pre-drain Job and the finder of what it waits for."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.support.cluster.cluster_reader import create, named
from tests.support.toolkit.toolkit import toolkit_world
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_REPLICAS, LONGHORN_VOLUMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.toolkit.toolkit import ToolkitWorld

VOLUME = "pvc-1"
#: Nodes that run VMs, by scenario.
SCENARIOS = {1: "one-node", 2: "witness", 3: "three-nodes"}


@asynccontextmanager
async def volume_world(
    folder: Path, *, nodes: int, robustness: str = "healthy", replicas: int = 3, modes: str = "", state: str = "running"
) -> AsyncIterator[ToolkitWorld]:
    """Create a world with one volume; `modes` are those of its replicas, of which no node has an object."""
    async with toolkit_world(folder, scenario=SCENARIOS[nodes]) as world:
        for resource in (LONGHORN_VOLUMES, LONGHORN_ENGINES, LONGHORN_REPLICAS):
            await world.client.delete_collection(resource, namespace=LONGHORN_SYSTEM)
        claim = {"namespace": "default", "pvcName": "db-disk-0"}
        await add_volume(world, VOLUME, replicas=replicas, robustness=robustness, kubernetesStatus=claim)
        mapped = {f"r-{index}": mode for index, mode in enumerate(modes.split())} or None
        await add_engine(world, {"currentState": state, "replicaModeMap": mapped})
        yield world


async def add_volume(world: ToolkitWorld, name: str, *, replicas: int = 3, **status: Any) -> None:
    obj = named(name, LONGHORN_SYSTEM, spec={"numberOfReplicas": replicas}, status=status)
    await create(world.client, LONGHORN_VOLUMES, obj)


async def add_engine(world: ToolkitWorld, status: dict[str, Any], *, name: str = "e-0", of: str = VOLUME) -> None:
    """Create an engine of a volume."""
    obj = named(f"{of}-{name}", LONGHORN_SYSTEM, labels={"longhornvolume": of}, spec={}, status=status)
    await create(world.client, LONGHORN_ENGINES, obj)
