"""Virtual machines: start and stop requests, evacuation, migrations, and the volumes that follow them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.virt_api import VirtApi
from hack.scenario import load
from hack.simulation import Simulation
from tests.support.cluster.actor_cluster import ActorCluster
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    LONGHORN_ENGINES,
    LONGHORN_VOLUMES,
    MIGRATIONS,
    NODES,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

TAINT = {"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/"


def cluster(*machines: dict[str, Any], **values: Any) -> Simulation:
    described = [{"name": "vm", "node": "node-0"} | one for one in machines]
    return Simulation(load("three-nodes").changed(jitter=0.0, vms={"count": 0, "machines": described}, **values))


async def instance(simulation: Simulation) -> Object | None:
    try:
        return await simulation.client().get(VIRTUAL_MACHINE_INSTANCES, "vm", namespace="default")
    except NotFound:
        return None


async def taint(simulation: Simulation, node: str) -> None:
    await simulation.client().patch(NODES, node, MergePatch({"spec": {"taints": [TAINT]}}))


async def moved(simulation: Simulation) -> bool:
    found = await instance(simulation)
    return found is not None and objects.status(found).get("nodeName") not in {None, "node-0"}


async def order(simulation: Simulation, what: str, body: Object | None = None) -> None:
    response = await simulation.client().raw("PUT", PATH + what, body=body or {})
    assert (response.status, response.body) == (202, b"")


async def test_drain_taint_migrates_vm_and_its_volume() -> None:
    async with cluster({}) as simulation:
        await taint(simulation, "node-0")
        await eventually(lambda: moved(simulation))
        (migration,) = (await simulation.client().list(MIGRATIONS)).items
        assert objects.name(migration).startswith("kubevirt-evacuation-")
        assert objects.annotations_of(migration) == {"kubevirt.io/evacuationMigration": "node-0"}
        assert objects.labels(migration) == {"kubevirt.io/vmi-name": "vm"}
        found = await instance(simulation) or {}
        target = objects.status(found)["nodeName"]
        assert objects.labels(found)["kubevirt.io/nodeName"] == target
        await asyncio.sleep(2)
        (volume,) = (await simulation.client().list(LONGHORN_VOLUMES)).items
        assert (volume["status"]["currentNodeID"], volume["status"]["robustness"]) == (target, "healthy")


async def test_migration_without_target_waits() -> None:
    async with cluster({}) as simulation:
        for name in ("node-1", "node-2"):
            await simulation.client().patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
        await taint(simulation, "node-0")
        await asyncio.sleep(60)
        assert not await moved(simulation)
        await simulation.client().patch(NODES, "node-2", MergePatch({"spec": {"unschedulable": None}}))
        await eventually(lambda: moved(simulation))


@pytest.mark.parametrize(
    ("strategy", "outcome"), [("Always", "Halted"), ("Manual", "Manual"), ("RerunOnFailure", "RerunOnFailure")]
)
async def test_stop_request_by_run_strategy(strategy: str, outcome: str) -> None:
    async with cluster({"run_strategy": strategy}) as simulation:
        await order(simulation, "vm/stop")

        async def stopped() -> bool:
            return await instance(simulation) is None

        await eventually(stopped)
        await asyncio.sleep(10)
        assert await stopped()
        machine = await simulation.client().get(VIRTUAL_MACHINES, "vm", namespace="default")
        assert machine["spec"]["runStrategy"] == outcome


@pytest.mark.parametrize(
    ("strategy", "action", "error"),
    [
        pytest.param("Always", "vm/start", Conflict, id="it runs already"),
        pytest.param("Halted", "vm/stop", Conflict, id="it does not run"),
        pytest.param("Always", "other/start", NotFound, id="there is no such machine"),
    ],
)
async def test_invalid_start_and_stop_requests_are_refused(strategy: str, action: str, error: type[Exception]) -> None:
    async with cluster({"run_strategy": strategy}) as simulation:
        with pytest.raises(error):
            await order(simulation, action)


async def test_volume_is_degraded_while_a_replica_node_is_down() -> None:
    async with cluster({}) as simulation:
        client = simulation.client()

        async def has(robustness: str) -> bool:
            (volume,) = (await client.list(LONGHORN_VOLUMES)).items
            return bool(volume["status"]["robustness"] == robustness)

        assert await has("healthy")
        simulation.hosts.power_off("node-1")
        await eventually(lambda: has("degraded"))
        (engine,) = (await client.list(LONGHORN_ENGINES)).items
        assert sorted(engine["status"]["replicaModeMap"].values()) == ["ERR", "RW", "RW"]
        await eventually(lambda: has("healthy"))


MIGRATION = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstanceMigration",
    "metadata": {"name": "mine", "namespace": "default", "labels": {"a": "b"}},
    "spec": {"vmiName": "vm"},
}
LABELS = {"a": "b", "kubevirt.io/vmi-name": "vm"}


async def test_migration_is_labelled_while_virt_controller_hangs() -> None:
    async with cluster({}) as simulation:
        simulation.freezer.freeze("virt-controller")
        created = await simulation.client().create(MIGRATIONS, MIGRATION)
        assert objects.labels(created) == LABELS


async def test_migration_is_labelled_after_its_creation() -> None:
    stage = ActorCluster()
    await stage.prepare(groups=("kubevirt.io",))
    async with stage.play(VirtApi(stage.context.for_actor("VirtApi"))):
        created = await stage.client.create(MIGRATIONS, MIGRATION)
        assert objects.labels(created) == {"a": "b"}
        await eventually(lambda: is_labelled(stage.client))


async def is_labelled(client: Client) -> bool:
    found = await client.get(MIGRATIONS, "mine", namespace="default")
    return objects.labels(found) == LABELS
