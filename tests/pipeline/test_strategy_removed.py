"""Another client removes Rancher's strategy while a node waits in its pre-drain hook, or before the node's turn.

Rancher then upgrades the Kubernetes of that node, with its VMs, and asks for its uncordon; a pending hook stays
(recorded: strategy-removed-pre).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hack.actors.machine_plan import UNCORDON
from hack.scenario import load
from tests.pipeline.ending.test_held_nodes import set_strategy
from tests.pipeline.test_interference import assert_true
from tests.support.cluster.simulate import SECOND, Simulate
from tests.support.managers.upgrade import UpgradeRun, provision_generation, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import FLEET_LOCAL, RKE_PRE_DRAIN
from upgrade_manager.facts import machine_plan
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS

pytestmark = pytest.mark.full

#: Rancher upgrades this node first, and this one last.
FIRST, LAST = "node-0", "node-1"
#: Rancher knows of the removal before it begins the next node, and the pre-drain Job outlasts a manager's restart.
SLOW: dict[str, Any] = {"durations": {"probes": 10, "pre_drain": 60}}


async def kubelet(stage: UpgradeRun, node: str) -> str:
    return str((await stage.client.get(NODES, node))["status"]["nodeInfo"]["kubeletVersion"])


async def secret_of(stage: UpgradeRun, node: str) -> Object:
    machines = (await stage.client.list(MACHINES, namespace=FLEET_LOCAL)).items
    by_name = {objects.name(one): one for one in machines}
    secrets = (await stage.client.list(SECRETS, namespace=FLEET_LOCAL)).items
    return next(one for one in secrets if machine_plan.node_of(one, by_name) == node)


async def until_upgraded(stage: UpgradeRun, node: str) -> None:
    """Wait until Rancher has upgraded the node's Kubernetes."""

    async def is_upgraded() -> bool:
        return await kubelet(stage, node) == stage.simulation.scenario.release.kubernetes

    assert await eventually(is_upgraded, seconds=300.0)


def named(plan: Object, node: str) -> bool:
    """Return True if the node's entry names its upgrade without a drain."""
    return bool(objects.status(plan)["nodeUpgradeStatuses"][node].get("reason") == "UpgradedUndrained")


@pytest.mark.rule("nodes: a pending hook of a node that Rancher has upgraded undrained is acknowledged and named")
@pytest.mark.parametrize("node", [FIRST, LAST])
async def test_pending_hook_outlives_the_upgrade_of_its_kubernetes(simulate: Simulate, node: str) -> None:
    async with simulate(load("three-nodes").changed(**SLOW)) as simulation:
        async with started(simulation) as stage:
            await stage.until_node("PreDraining", node=node)
        await set_strategy(simulation, None)
        await until_upgraded(stage, node)
        await asyncio.sleep(20)
        hooks = objects.annotations_of(await secret_of(stage, node))
        assert hooks[UNCORDON] == hooks[RKE_PRE_DRAIN]
        async with stage.life(seed="the next manager"):
            plan = await stage.until_plan(lambda plan: named(plan, node), seconds=10)
            assert "blockers" not in objects.status(plan)
            await assert_true(stage)
            warned = [reason for reason, _ in await stage.warnings()]
            assert sorted(warned) == ["DrainHooksAdded", "UpgradedUndrained"]
            assert stage.ledger.names("jobs").count(f"upgrade-node-upgrade-pre-drain-{node}") == 1


@pytest.mark.rule("nodes: a node that runs the release's Kubernetes before its drain is named, with the next step")
@pytest.mark.parametrize("last_done", [FIRST, SECOND], ids=["two nodes", "the last node"])
async def test_nodes_that_rancher_passes_are_named_at_once(simulate: Simulate, last_done: str) -> None:
    async with simulate(load("three-nodes").changed(**SLOW)) as simulation:
        async with started(simulation) as stage:
            await stage.until_node("PostDrained", node=last_done)
        await set_strategy(simulation, None)
        await until_upgraded(stage, LAST)
        async with stage.life(seed="the next manager"):
            began = asyncio.get_running_loop().time()
            plan = await stage.until_plan(lambda plan: bool(objects.status(plan).get("blockers")), seconds=900)
            assert asyncio.get_running_loop().time() - began < 30
            (blocker,) = objects.status(plan)["blockers"]
            assert blocker["reason"] == "HookLost"
            passed = f"{LAST}: it runs" if last_done == SECOND else f"{LAST}, {SECOND}: they run"
            assert f"Cluster fleet-local/local: {passed} Kubernetes" in blocker["message"]
            again = json.loads(blocker["remedy"].partition("-p '")[2].removesuffix("'"))
            assert again == {"spec": {"rkeConfig": {"provisionGeneration": await provision_generation(simulation) + 1}}}
            await stage.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(again), namespace=FLEET_LOCAL)
            await stage.until_plan(lambda plan: not objects.status(plan).get("blockers"), seconds=30)
            # While Rancher drains the done nodes first, the node that waits for its turn does not let it do so again.
            while await stage.phase() != "Succeeded":
                blockers = objects.status(await stage.plan()).get("blockers") or ()
                assert "HookLost" not in [one["reason"] for one in blockers]
                await asyncio.sleep(1)
            await assert_true(stage)
