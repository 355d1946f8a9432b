"""Actors that are frozen while the cluster runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hack.actors.freezer import NAMESPACES, PROCESSES, Freezer, kubelet_of
from hack.actors.nodes import GRACE
from hack.demo import commands
from hack.scenario import load
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

PLACE = "cattle-system"
SUC = "system-upgrade-controller"
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": PLACE},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def ready(client: Client, node: str) -> str:
    found = objects.condition(await client.get(NODES, node), "Ready")
    return str(found["status"])


async def available(client: Client, name: str) -> int:
    found = await client.get(DEPLOYMENTS, name, namespace=NAMESPACES[name])
    return objects.status(found).get("availableReplicas") or 0


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


@pytest.mark.parametrize("process", NAMESPACES)
async def test_frozen_process_is_not_available(process: str) -> None:
    async with Simulation(load("one-node").changed(operators=True)) as simulation:
        client, actors = simulation.client(), [actor for actor, name in PROCESSES.items() if name == process]
        await asyncio.sleep(5)
        assert await available(client, process) >= 1
        assert not any(map(simulation.freezer.is_frozen, actors))
        simulation.freezer.freeze(process)
        await asyncio.sleep(2)
        assert await available(client, process) == 0
        simulation.freezer.thaw(process)
        await asyncio.sleep(5)
        assert await available(client, process) >= 1
        assert not any(map(simulation.freezer.is_frozen, actors))


async def test_controller_without_a_pod_does_nothing() -> None:
    async with Simulation() as simulation:
        client = simulation.client()
        for replicas in (0, 1):
            await client.patch(DEPLOYMENTS, SUC, MergePatch({"spec": {"replicas": replicas}}), namespace=PLACE)
            await asyncio.sleep(5)
            assert simulation.freezer.is_frozen("UpgradeController") == (replicas == 0)


async def hang(client: Client, what: str) -> None:
    metadata = {"name": "hang", "namespace": "kube-system"}
    await client.create(CONFIG_MAPS, {**CONFIG_MAP, "metadata": metadata, "data": {"frozen": what}})
    await asyncio.sleep(1)


async def delete_pod(client: Client, name: str) -> None:
    pod = (await client.list(PODS, namespace=NAMESPACES[name], label_selector=f"app={name}")).items[0]
    await client.delete(PODS, objects.name(pod), namespace=NAMESPACES[name])


async def restart(client: Client, name: str) -> None:
    await commands.restart(name, NAMESPACES[name]).run(client)


@pytest.mark.parametrize("repair", [restart, delete_pod])
@pytest.mark.parametrize("actor", ["Planner", "Drainer", "UpgradeController", "ImageController", "virt-controller"])
async def test_restart_of_its_deployment_thaws_an_actor(
    actor: str, repair: Callable[[Client, str], Awaitable[None]]
) -> None:
    async with Simulation(load("one-node").changed(operators=True)) as simulation:
        client, process = simulation.client(), PROCESSES.get(actor, actor)
        await asyncio.sleep(5)
        await hang(client, actor)
        for other in NAMESPACES.keys() - {process}:
            await repair(client, other)
        await asyncio.sleep(60)
        assert simulation.freezer.is_frozen(actor)
        await repair(client, process)
        await asyncio.sleep(10)
        assert not simulation.freezer.is_frozen(actor)
        assert (await client.list(CONFIG_MAPS, namespace="kube-system")).items == []
        assert await available(client, process) >= 1


async def test_first_pods_of_a_hanging_process_hang() -> None:
    async with Simulation("one-node") as simulation:
        client = simulation.client()
        await hang(client, SUC)
        await client.patch(DEPLOYMENTS, SUC, MergePatch({"spec": {"replicas": 2}}), namespace=PLACE)
        await asyncio.sleep(60)
        assert await available(client, SUC) == 0
        await restart(client, SUC)
        await asyncio.sleep(10)
        assert await available(client, SUC) == 2


def test_actor_acts_once_all_have_thawed_it() -> None:
    freezer = Freezer()
    freezer.freeze("Planner", by="a")
    freezer.freeze("Planner", by="b")
    freezer.thaw("Planner", by="a")
    assert freezer.is_frozen("Planner")
    freezer.thaw("Planner", by="b")
    assert not freezer.is_frozen("Planner")
