"""Planner, drain controller and system agents together: the protocol on the machine-plan Secrets, step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hack.scenario import load
from hack.simulation import Simulation
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, PROVISIONING_CLUSTERS, SECRETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object

RKE = "rke.cattle.io/"
RELEASE = load("three-nodes").release.kubernetes
PRE_HOOK, POST_HOOK = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
DRAIN_OPTIONS = {
    "enabled": True,
    "preDrainHooks": [{"annotation": PRE_HOOK}],
    "postDrainHooks": [{"annotation": POST_HOOK}],
}


class Cluster:
    """Machine-plan Secrets seen by their nodes."""

    def __init__(self, simulation: Simulation) -> None:
        self.client = simulation.client()

    async def start(self) -> None:
        strategy = {"controlPlaneDrainOptions": DRAIN_OPTIONS, "workerDrainOptions": DRAIN_OPTIONS}
        rke_config = {"provisionGeneration": 9, "upgradeStrategy": strategy}
        body = {"spec": {"kubernetesVersion": RELEASE, "rkeConfig": rke_config}}
        await self.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(body), namespace="fleet-local")

    async def secrets(self) -> dict[str, Object]:
        machines = {objects.name(one): one for one in (await self.client.list(MACHINES)).items}
        listed = (await self.client.list(SECRETS, namespace="fleet-local")).items
        owner = {objects.name(one): objects.labels(one)["rke.cattle.io/machine-name"] for one in listed}
        return {machines[owner[objects.name(one)]]["status"]["nodeRef"]["name"]: one for one in listed}

    async def pending(self, hook: str) -> dict[str, str]:
        """Return the pending hook annotation of each node that has one."""
        found = {node: objects.annotations_of(one).get(RKE + hook) for node, one in (await self.secrets()).items()}
        return {node: text for node, text in found.items() if text}

    async def until_pending(self, hook: str) -> tuple[str, str]:
        pending: dict[str, str] = await eventually(lambda: self.pending(hook))
        ((node, text),) = pending.items()
        return node, text

    async def acknowledge(self, node: str, hook: str, text: str) -> None:
        secret = (await self.secrets())[node]
        patch = MergePatch({"metadata": {"annotations": {hook: text}}})
        await self.client.patch(SECRETS, objects.name(secret), patch, namespace="fleet-local")

    async def annotations(self, node: str) -> dict[str, str]:
        return objects.annotations_of((await self.secrets())[node])


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with Simulation(load("three-nodes").changed(vms={"count": 3})) as simulation:
        yield Cluster(simulation)


@pytest.mark.parametrize("other", ["", "{}", "something else"])
async def test_only_identical_text_acknowledges_a_hook(cluster: Cluster, other: str) -> None:
    await cluster.start()
    node, text = await cluster.until_pending("pre-drain")
    await cluster.acknowledge(node, PRE_HOOK, other)
    await cluster.acknowledge(node, POST_HOOK, text)
    await asyncio.sleep(20)
    assert RKE + "drain-done" not in await cluster.annotations(node)


async def test_leftover_acknowledgement_counts_at_once(cluster: Cluster) -> None:
    await cluster.start()
    node, text = await cluster.until_pending("pre-drain")
    other = next(name for name in await cluster.secrets() if name != node)
    await cluster.acknowledge(other, PRE_HOOK, text)
    await cluster.acknowledge(node, PRE_HOOK, text)
    await cluster.until_pending("post-drain")
    await cluster.acknowledge(node, POST_HOOK, text)
    await eventually(lambda: cluster.pending("post-drain"))
