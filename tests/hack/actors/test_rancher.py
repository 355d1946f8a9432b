"""Planner, drain controller and system agents together: the protocol on the machine-plan Secrets, step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.cluster.scenario import load
from hack.simulation import Simulation
from tests.support.polling import eventually
from tests.support.upgrade_script import POST_HOOK, PRE_HOOK, UpgradeScript
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

RKE = "rke.cattle.io/"


class Cluster:
    """Machine-plan Secrets seen by their nodes."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.client = simulation.client()

    async def start(self) -> None:
        release = self.simulation.scenario.release
        await UpgradeScript(self.client, iso_url=self.simulation.iso_url, release=release).ask_rancher()

    async def secrets(self) -> dict[str, Object]:
        machines = {objects.name(one): one for one in (await self.client.list(MACHINES)).items}
        listed = (await self.client.list(SECRETS, namespace="fleet-local")).items
        owner = {objects.name(one): objects.labels(one)["rke.cattle.io/machine-name"] for one in listed}
        return {machines[owner[objects.name(one)]]["status"]["nodeRef"]["name"]: one for one in listed}

    async def asked(self, question: str) -> dict[str, str]:
        """Return the pending hook annotation of each node that has one."""
        found = {node: objects.annotations_of(one).get(RKE + question) for node, one in (await self.secrets()).items()}
        return {node: text for node, text in found.items() if text}

    async def until_asked(self, question: str) -> tuple[str, str]:
        asked: dict[str, str] = await eventually(lambda: self.asked(question))
        ((node, text),) = asked.items()
        return node, text

    async def answer(self, node: str, hook: str, text: str) -> None:
        secret = (await self.secrets())[node]
        patch = MergePatch({"metadata": {"annotations": {hook: text}}})
        await self.client.patch(SECRETS, objects.name(secret), patch, namespace="fleet-local")

    async def annotations(self, node: str) -> dict[str, str]:
        return objects.annotations_of((await self.secrets())[node])

    async def node(self, name: str) -> Object:
        return await self.client.get(NODES, name)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Simulation(load("three-nodes").changed(vms={"count": 3})) as simulation:
        yield Cluster(simulation)


async def test_drain_steps_and_cleanup(cluster: Cluster) -> None:
    await cluster.start()
    node, text = await cluster.until_asked("pre-drain")
    assert node == "node-0"
    assert (await cluster.node(node))["spec"]["unschedulable"] is True
    assert (await cluster.annotations(node))[RKE + "drain-options"] == text
    await asyncio.sleep(30)
    assert RKE + "drain-done" not in await cluster.annotations(node)

    await cluster.answer(node, PRE_HOOK, text)
    again, same = await cluster.until_asked("post-drain")
    assert (again, same) == (node, text)
    assert (await cluster.annotations(node))[RKE + "uncordon"] == text
    assert (await cluster.node(node))["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.2+rke2r1"
    assert (await cluster.node(node))["spec"]["unschedulable"] is True
    assert len(await cluster.asked("pre-drain")) == 1

    await cluster.answer(node, POST_HOOK, text)
    following = await eventually(lambda: _another(cluster, node))
    assert following != node
    left = [key for key in await cluster.annotations(node) if "drain" in key or "hook" in key or "uncordon" in key]
    assert left == []
    assert "unschedulable" not in (await cluster.node(node))["spec"]


async def _another(cluster: Cluster, node: str) -> str:
    return next((name for name in await cluster.asked("pre-drain") if name != node), "")


@pytest.mark.parametrize("answer", ["", "{}", "something else"])
async def test_only_identical_text_acknowledges_a_hook(cluster: Cluster, answer: str) -> None:
    await cluster.start()
    node, text = await cluster.until_asked("pre-drain")
    await cluster.answer(node, PRE_HOOK, answer)
    await cluster.answer(node, POST_HOOK, text)
    await asyncio.sleep(20)
    assert RKE + "drain-done" not in await cluster.annotations(node)


async def test_leftover_acknowledgement_counts_at_once(cluster: Cluster) -> None:
    await cluster.start()
    node, text = await cluster.until_asked("pre-drain")
    other = next(name for name in await cluster.secrets() if name != node)
    await cluster.answer(other, PRE_HOOK, text)
    await cluster.answer(node, PRE_HOOK, text)
    await cluster.until_asked("post-drain")
    await cluster.answer(node, POST_HOOK, text)
    await eventually(lambda: cluster.asked("post-drain"))


async def test_manual_uncordon_is_reverted_during_a_hook(cluster: Cluster) -> None:
    await cluster.start()
    node, _ = await cluster.until_asked("pre-drain")
    await cluster.client.patch(NODES, node, MergePatch({"spec": {"unschedulable": None}}))
    await cluster.answer(node, "unrelated", "x")

    async def cordoned() -> bool:
        return bool((await cluster.node(node))["spec"].get("unschedulable"))

    await eventually(cordoned)


async def test_changed_drain_options_restart_the_drain(cluster: Cluster) -> None:
    await cluster.start()
    node, text = await cluster.until_asked("pre-drain")
    await _strategy(cluster, controlPlaneDrainOptions={"gracePeriod": 7})

    async def renewed() -> str:
        return (await cluster.asked("pre-drain")).get(node, text).replace(text, "")

    assert '"gracePeriod":7' in await eventually(renewed)


async def _strategy(cluster: Cluster, **strategy: Any) -> None:
    patch = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": strategy}}})
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")


async def test_new_generation_drains_without_a_new_version(cluster: Cluster) -> None:
    await cluster.start()
    version = cluster.simulation.scenario.software.kubernetes
    body = {"spec": {"kubernetesVersion": version}}
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(body), namespace="fleet-local")
    await cluster.until_asked("pre-drain")


async def test_unknown_kubernetes_version_is_not_planned(cluster: Cluster) -> None:
    body = {"spec": {"kubernetesVersion": "v1.99.0+rke2r1", "rkeConfig": {"provisionGeneration": 9}}}
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(body), namespace="fleet-local")
    await asyncio.sleep(20)
    secrets = await cluster.secrets()
    assert all(one["data"]["plan"] == one["data"]["appliedPlan"] for one in secrets.values())


async def test_undrainable_node_keeps_the_drain_waiting() -> None:
    scenario = load("three-nodes").changed(vms={"count": 0}, node_faults={"undrainable": ["node-0"]})
    async with Simulation(scenario) as simulation:
        cluster = Cluster(simulation)
        await cluster.start()
        node, text = await cluster.until_asked("pre-drain")
        await cluster.answer(node, PRE_HOOK, text)
        await asyncio.sleep(60)
        assert RKE + "drain-done" not in await cluster.annotations(node)
