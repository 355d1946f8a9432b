"""A node with VMs that is about to be drained, in a simulated cluster whose controllers run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hack import scenario as scenarios
from hack.host import tree
from tests.support.cluster.simulate import Simulate, embedded
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld, toolkit_world
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    LONGHORN_VOLUMES,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)

#: Cannot be live-migrated, and can.
FIXED: dict[str, Any] = {"name": "fixed", "node": "node-0", "migratable": False}
FREE: dict[str, Any] = {"name": "free", "node": "node-0"}
ELSEWHERE: dict[str, Any] = {"name": "elsewhere", "node": "node-1", "migratable": False}
LIST = f"{PLAN}-restore-vm"
_OS = "Harvester v1.7.1"


@asynccontextmanager
async def vm_world(
    folder: Path,
    *machines: dict[str, Any],
    scenario: str = "three-nodes",
    restores: bool = True,
    actors: bool = True,
    simulate: Simulate = embedded,
    files: dict[str, bytes] | None = None,
    **values: Any,
) -> AsyncIterator[ToolkitWorld]:
    """Create a world with these VMs and these files of the ISO; by default one VM can be migrated, and two cannot."""
    described = list(machines or (FIXED, FREE, ELSEWHERE))
    values = {"harvester": {"node_down": False}, **values}
    changed = scenarios.load(scenario).changed(jitter=0.0, vms={"count": 0, "machines": described}, **values)
    async with toolkit_world(folder, files, scenario=changed, actors=actors, simulate=simulate) as world:
        tree.fill(world.tree.root, os_image=_OS)
        await set_restore(world, on=restores)
        yield world


async def set_restore(world: ToolkitWorld, *, on: bool) -> None:
    """Set spec.restoreVM of the plan."""
    await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"spec": {"restoreVM": on}}))


async def recorded(world: ToolkitWorld) -> dict[str, str] | None:
    """Return the VMs to start again by node; None without the list."""
    try:
        found = await world.client.get(CONFIG_MAPS, LIST, namespace=HARVESTER_SYSTEM)
    except NotFound:
        return None
    return dict(found["data"])


async def nodes_of_vms(world: ToolkitWorld) -> dict[str, str]:
    """Return the nodes on which VMs run, by the VMs' names."""
    found = (await world.client.list(VIRTUAL_MACHINE_INSTANCES)).items
    return {objects.name(one): objects.status(one).get("nodeName", "") for one in found}


async def strategy(world: ToolkitWorld, name: str) -> str:
    """Return a VM's run strategy."""
    return str(objects.spec(await world.client.get(VIRTUAL_MACHINES, name, namespace="default"))["runStrategy"])


async def messages(world: ToolkitWorld, reason: str = "") -> list[str]:
    """Return the events of the plan, with their source and reason; all or those of one reason."""
    events = (await world.client.list(EVENTS)).items
    events = [one for one in events if one["involvedObject"]["name"] == PLAN]
    events.sort(key=lambda one: (one["firstTimestamp"], one["reason"]))
    if reason:
        return [one["message"] for one in events if one["reason"] == reason]
    return [f"{one['type']} {one['reason']} {one['source']['component']}: {one['message']}" for one in events]


async def set_instance(world: ToolkitWorld, name: str, body: Object) -> None:
    """Patch a VM's instance, with its status: it has no status subresource."""
    await world.client.patch(VIRTUAL_MACHINE_INSTANCES, name, MergePatch(body), namespace="default")


async def break_volumes(world: ToolkitWorld) -> list[str]:
    """Make all volumes degraded; return their names."""
    names = [objects.name(one) for one in (await world.client.list(LONGHORN_VOLUMES)).items]
    for name in names:
        patch = MergePatch({"status": {"robustness": "degraded"}})
        await world.client.patch(LONGHORN_VOLUMES, name, patch, namespace="longhorn-system", subresource="status")
    return names
