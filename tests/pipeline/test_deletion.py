"""Plans that are deleted while they run: in every phase, and the next plan succeeds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hack.apiserver.call import Call
from hack.apiserver.crds import CRDS
from hack.faults.middleware import NoHook
from hack.faults.rules import Delay, Match, Rule
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.healthy_jobs import healthy_jobs
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, provision_generation, started
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS, NAMESPACES, NODES, UPGRADE_PLANS, Resource
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline.controller import PlanController
from upgrade_manager.pipeline.dependencies import Dependencies

pytestmark = pytest.mark.sampled

INTERVAL = "replica-replenishment-wait-interval"
#: Three for the control plane, and a worker to which Rancher comes last.
WORKER: dict[str, Any] = {"nodes": {"count": 4, "management": 3}}


async def cordoned(simulation: Simulation) -> list[str]:
    """Return the nodes that are unschedulable."""
    nodes = (await simulation.client().list(NODES)).items
    return [objects.name(node) for node in nodes if objects.spec(node).get("unschedulable")]


async def succeed(stage: UpgradeRun, *, force: bool = False) -> None:
    """Check that the next plan succeeds with both Jobs for every node."""
    following, nodes = replace(stage, name="next"), stage.simulation.scenario.nodes.names
    stage.ledger.created.clear()
    await following.create_plan({**BY_VERSION, "force": force})
    await following.succeed()
    assert await created_objects(stage.simulation, "next") == []
    assert await cordoned(stage.simulation) == []
    assert sorted(stage.ledger.names("jobs")) == healthy_jobs("next", nodes)


async def delete_at(simulation: Simulation, point: str, node: str = "") -> None:
    """Delete a plan at that point, check that nothing is left, and let the next one succeed."""
    before = await overridden_settings(simulation)
    async with started(simulation) as stage:
        await stage.reach(point, node=node)
        await stage.delete()
        assert await created_objects(simulation) == []
        after = await overridden_settings(simulation)
        # Rancher's strategy holds the nodes that are left: tests/pipeline/ending/test_held_nodes.py.
        assert after[:2] + after[3:] == before[:2] + before[3:]
        was = await provision_generation(simulation)
        # After the node upgrade there is nothing left to do.
        await succeed(stage, force=point == "CleaningUp")
        assert await overridden_settings(simulation) == before
        assert await provision_generation(simulation) == was + 1
    assert stage.ledger.conflicts == []


@pytest.mark.rule("pipeline: deletion in any phase runs the same cleanup and then removes the finalizer")
@pytest.mark.servers
@pytest.mark.parametrize("point", ["ISODownloading", "ImagePreloading", "ClusterUpgrading", "PostDraining"])
@pytest.mark.thin
async def test_next_plan_succeeds_on_both_servers(simulate: Simulate, point: str) -> None:
    # Of a node's states PostDraining lasts long enough on the real server, too.
    async with simulate() as simulation:
        await delete_at(simulation, point)


POINTS = [
    *[(state, "node-3") for state in ("PreDraining", "PreDrained", "PostDraining", "WaitingReboot")],
    *[(point, "") for point in ("CleaningUp", "PreDraining", "PreDrained", "WaitingReboot", "PostDrained")],
]


@pytest.mark.parametrize(("point", "node"), POINTS)
@pytest.mark.thin
async def test_next_plan_upgrades_a_node_in_progress(simulate: Simulate, point: str, node: str) -> None:
    async with simulate(RepairableScenario.of(**(WORKER if node else {}))) as simulation:
        await delete_at(simulation, point, node)


@pytest.mark.parametrize("state", ["PreDraining", "PreDrained", "PostDraining"])
@pytest.mark.parametrize("node", ["node-2", "node-3"])
@pytest.mark.thin
async def test_next_plan_handles_hooks_left_by_a_forced_deletion(simulate: Simulate, node: str, state: str) -> None:
    async with simulate(RepairableScenario.of(**WORKER)) as simulation:
        client, before = simulation.client(), await overridden_settings(simulation)
        stage = await UpgradeRun.abandoned(simulation, state, node=node)
        await stage.patch(metadata={"finalizers": None})
        await stage.delete()
        # As the plan's clean-up would have left it, if it had been let.
        value = MergePatch({"value": "600"})
        await client.patch(LONGHORN_SETTINGS, INTERVAL, value, namespace="longhorn-system")
        addon = MergePatch({"spec": {"enabled": True}})
        await client.patch(ADDONS, "descheduler", addon, namespace="kube-system")
        async with stage.life(seed="successor"):
            await succeed(stage)
        after = await overridden_settings(simulation)
        assert after[:2] == before[:2]
        # The original strategy is lost; hooks without a manager are removed.
        assert "management.harvesterhci.io" not in str(after[2])


#: The point at which the plan is deleted, and what is missing then.
MISSING = [
    pytest.param("ISODownloading", {CRDS: ["virtualmachineimages.harvesterhci.io"]}, id="the images' kind"),
    pytest.param(
        "ImagePreloading",
        {CRDS: ["plans.upgrade.cattle.io"], NAMESPACES: ["cattle-system"]},
        id="Plans, kind and namespace",
    ),
    pytest.param(
        "NodeUpgrading",
        {CRDS: ["clusters.provisioning.cattle.io", "machines.cluster.x-k8s.io"], NAMESPACES: ["fleet-local"]},
        id="Rancher",
    ),
    pytest.param("NodeUpgrading", {CRDS: ["settings.longhorn.io"], NAMESPACES: ["longhorn-system"]}, id="Longhorn"),
    pytest.param("NodeUpgrading", {CRDS: ["addons.harvesterhci.io"]}, id="add-ons"),
    pytest.param(
        "PreDraining", {NODES: ["node-1", "node-2"], CRDS: ["machines.cluster.x-k8s.io"]}, id="nodes and Machines"
    ),
]


@pytest.mark.rule(
    "pipeline: missing kinds do not block deletion",
    "pipeline: an API group that was never installed does not block deletion",
    "pipeline: missing namespaces do not block deletion",
)
@pytest.mark.parametrize(("point", "missing"), MISSING)
@pytest.mark.thin
async def test_missing_objects_do_not_block_deletion(
    simulate: Simulate, point: str, missing: dict[Resource, list[str]]
) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.abandoned(simulation, point)
        for resource, names in missing.items():
            for name in names:
                await stage.client.delete(resource, name)
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        async with stage.life(seed="successor"):
            assert await stage.until("deleted") == "deleted"
        assert await stage.events("ReconcileError") == []


class Losing(NoHook):
    """Loses the response to the removal of the finalizer, and records what is removed after that."""

    def __init__(self) -> None:
        self.is_released = False
        self.removed: list[str] = []

    async def before(self, number: int, call: Call) -> None:
        """Record removals after the finalizer's."""
        _ = number
        if self.is_released and call.verb.startswith("delete"):
            self.removed.append(call.path)

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        if call.resource.startswith("upgradeplans") and b"deletionTimestamp" in response.body and not call.subresource:
            self.is_released = True
            raise Transient("the response was lost")


async def test_lost_finalizer_response_keeps_the_next_plans_objects(simulate: Simulate) -> None:
    async with simulate(scale=0.2) as simulation:
        losing = simulation.middleware.hook = Losing()
        async with started(simulation) as stage:
            await stage.until_recorded("RepoCreating")
            await stage.delete()
            assert losing.is_released
            assert losing.removed == []
            assert await created_objects(simulation) == []
            await stage.create_plan()
            assert await stage.until_ended() == SUCCEEDED


#: All but the lease: without that the manager would rightly stop.
SLOW = [
    "upgradeplans.*", "jobs.*", "deployments.*", "services", "virtualmachineimages.*", "plans.*", "secrets", "nodes",
    "settings.*", "addons.*", "clusters.*", "machines.*", "events",
]  # fmt: skip


async def test_slow_api_server_does_not_time_out_the_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PlanController] = []
    construct = PlanController.__init__

    def remember(self: PlanController, deps: Dependencies) -> None:
        construct(self, deps)
        made.append(self)

    monkeypatch.setattr(PlanController, "__init__", remember)
    async with Simulation(RepairableScenario.of(), scale=0.2) as simulation:
        async with started(simulation) as stage:
            await stage.until_node("PreDraining")
            for resource in SLOW:
                simulation.middleware.add(Rule(match=Match(resource=resource), action=Delay(least=6.0, most=7.0)))
            await stage.client.delete(UPGRADE_PLANS, stage.name)
            began = asyncio.get_running_loop().time()
            while await stage.phase() != "deleted":
                await asyncio.sleep(0.5)
                await made[0].check()
            assert asyncio.get_running_loop().time() - began < 240
        assert await created_objects(simulation) == []
