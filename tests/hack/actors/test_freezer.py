"""Actors that are frozen while the cluster runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hack.actors.freezer import PROCESSES, Freezer, kubelet_of
from hack.actors.nodes import GRACE
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, NODES, PODS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

PLACE = "cattle-system"
SUC, RANCHER = "system-upgrade-controller", "rancher"
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": PLACE},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def ready(client: Client, node: str) -> str:
    found = objects.condition(await client.get(NODES, node), "Ready") or {}
    return str(found["status"])


async def available(client: Client, name: str) -> int:
    return objects.status(await client.get(DEPLOYMENTS, name, namespace=PLACE)).get("availableReplicas") or 0


async def test_heartbeats_of_a_frozen_kubelet_stop() -> None:
    async with Simulation() as simulation:
        client = simulation.client()
        simulation.freezer.freeze(kubelet_of("node-1"))
        await asyncio.sleep(GRACE - 1)
        assert await ready(client, "node-1") == "True"
        await asyncio.sleep(2)
        assert (await ready(client, "node-1"), await ready(client, "node-0")) == ("Unknown", "True")
        simulation.freezer.thaw(kubelet_of("node-1"))
        await asyncio.sleep(1)
        assert await ready(client, "node-1") == "True"
        assert "taints" not in objects.spec(await client.get(NODES, "node-1"))


@pytest.mark.parametrize("actor", ["Scheduler", kubelet_of("node-0"), "Registry"])
async def test_frozen_actor_acts_again_when_thawed(actor: str) -> None:
    async with Simulation("one-node") as simulation:
        client = simulation.client()
        simulation.freezer.freeze(actor)
        await client.create(PODS, POD)
        await asyncio.sleep(10)
        pod = await client.get(PODS, "p", namespace=PLACE)
        assert objects.status(pod)["phase"] == "Pending"
        simulation.freezer.thaw(actor)
        await asyncio.sleep(3)
        pod = await client.get(PODS, "p", namespace=PLACE)
        assert objects.status(pod)["phase"] == "Running"


@pytest.mark.parametrize("process", [SUC, RANCHER])
async def test_frozen_process_is_not_available(process: str) -> None:
    async with Simulation() as simulation:
        client, actors = simulation.client(), [actor for actor, name in PROCESSES.items() if name == process]
        await asyncio.sleep(5)
        assert await available(client, process) == 1
        assert not any(map(simulation.freezer.is_frozen, actors))
        simulation.freezer.freeze(process)
        await asyncio.sleep(2)
        assert await available(client, process) == 0
        simulation.freezer.thaw(process)
        await asyncio.sleep(5)
        assert await available(client, process) == 1
        assert not any(map(simulation.freezer.is_frozen, actors))


async def test_controller_without_a_pod_does_nothing() -> None:
    async with Simulation() as simulation:
        client = simulation.client()
        for replicas in (0, 1):
            await client.patch(DEPLOYMENTS, SUC, MergePatch({"spec": {"replicas": replicas}}), namespace=PLACE)
            await asyncio.sleep(5)
            assert simulation.freezer.is_frozen("UpgradeController") == (replicas == 0)


def test_actor_acts_once_all_have_thawed_it() -> None:
    freezer = Freezer()
    freezer.freeze("Planner", by="a")
    freezer.freeze("Planner", by="b")
    freezer.thaw("Planner", by="a")
    assert freezer.is_frozen("Planner")
    freezer.thaw("Planner", by="b")
    assert not freezer.is_frozen("Planner")
