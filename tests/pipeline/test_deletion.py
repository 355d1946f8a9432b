"""Plans that are deleted while they run: in every phase, and the next plan succeeds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hack.faults.middleware import NoHook
from hack.faults.rules import Delay, Match, Rule
from hack.simulation import Simulation
from tests.support.cluster_state import created_objects, overridden_settings
from tests.support.simulate import RepairableScenario, fault
from tests.support.upgrade import BY_VERSION, UpgradeRun, phases_of, provision_generation
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    LONGHORN_SETTINGS,
    NAMESPACES,
    NODES,
    UPGRADE_PLANS,
    Resource,
)
from upgrade_manager.pipeline.controller import PlanController

if TYPE_CHECKING:
    from hack.faults.call import Call
    from tests.support.simulate import Simulate
    from upgrade_manager.kube.transport import Response
    from upgrade_manager.pipeline.controller import Dependencies

INTERVAL = "replica-replenishment-wait-interval"
#: How far the first node can be when its plan is deleted.
NODE_STATES = ["PreDraining", "PreDrained", "WaitingReboot", "PostDrained"]
#: Three for the control plane, and a worker to which Rancher comes last.
WORKER: dict[str, Any] = {"nodes": {"count": 4, "management": 3}}


async def delete(stage: UpgradeRun) -> None:
    """Delete the plan and see it go."""
    await stage.simulation.client().delete(UPGRADE_PLANS, stage.name)
    assert await stage.until("deleted") == "deleted"
    await stage.settle()


async def cordoned(simulation: Simulation) -> list[str]:
    """Nodes that take no new Pods."""
    nodes = (await simulation.client().list(NODES)).items
    return [objects.name(node) for node in nodes if objects.spec(node).get("unschedulable")]


def jobs_of(stage: UpgradeRun) -> list[str]:
    """Jobs that were created since the ledger was cleared."""
    return sorted(name for path, name in stage.ledger.created if path.endswith("/jobs"))


def both_steps(stage: UpgradeRun) -> list[str]:
    """Return the Jobs of a whole upgrade: an earlier plan's work neither skips nor doubles one."""
    nodes = stage.simulation.scenario.nodes.names
    steps = [f"next-node-upgrade-{step}-{node}" for step in ("post-drain", "pre-drain") for node in nodes]
    return ["next-cluster-upgrade", *steps]


async def succeed(stage: UpgradeRun, *, before: list[Any]) -> None:
    """Check that the next plan succeeds with both Jobs for every node."""
    following = replace(stage, name="next")
    was = await provision_generation(stage.simulation)
    stage.ledger.created.clear()
    await following.create_plan(BY_VERSION)
    assert await following.until_ended() == SUCCEEDED
    await stage.settle()
    assert phases_of(await following.plan()) == [*PHASE_VALUES, SUCCEEDED]
    assert await provision_generation(stage.simulation) == was + 1
    assert await overridden_settings(stage.simulation) == before
    assert await created_objects(stage.simulation, "next") == []
    assert await cordoned(stage.simulation) == []
    assert jobs_of(stage) == both_steps(stage)


@pytest.mark.rule("pipeline: deletion in any phase runs the same cleanup and then removes the finalizer")
@pytest.mark.parametrize("phase", PHASE_VALUES)
@pytest.mark.thin
async def test_deletion_in_any_phase_removes_everything(simulate: Simulate, phase: str) -> None:
    async with simulate(scale=0.2) as simulation:
        before = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded(phase)
            await delete(stage)
            assert await created_objects(simulation) == []
            assert await overridden_settings(simulation) == before
        assert stage.ledger.conflicts == []


@pytest.mark.parametrize("phase", ["ImagePreloading", "CleaningUp"])
@pytest.mark.thin
async def test_next_plan_continues_after_an_image_phase(simulate: Simulate, phase: str) -> None:
    async with simulate(scale=0.2) as simulation:
        before = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded(phase)
            await delete(stage)
            await succeed(stage, before=before)


@pytest.mark.servers
async def test_next_plan_continues_after_the_cluster_job(simulate: Simulate) -> None:
    async with simulate() as simulation:
        before = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded("ClusterUpgrading")
            await delete(stage)
            await succeed(stage, before=before)


@pytest.mark.parametrize("state", NODE_STATES)
@pytest.mark.thin
async def test_next_plan_upgrades_a_node_in_progress(simulate: Simulate, state: str) -> None:
    await delete_at(simulate, state)


@pytest.mark.servers
async def test_next_plan_upgrades_a_drained_node(simulate: Simulate) -> None:
    # Of all states this one lasts long enough on the real server, too.
    await delete_at(simulate, "PostDraining")


async def delete_at(simulate: Simulate, state: str) -> None:
    """Delete a plan when its first node has reached the state, and let the next one succeed."""
    async with simulate() as simulation:
        before = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node(state)
            await delete(stage)
            assert await overridden_settings(simulation) == before
            await succeed(stage, before=before)


@pytest.mark.parametrize("state", ["PreDraining", "PreDrained", "PostDraining", "WaitingReboot"])
@pytest.mark.thin
async def test_worker_in_progress_waits_for_its_tier(simulate: Simulate, state: str) -> None:
    async with simulate(RepairableScenario.of(**WORKER)) as simulation:
        before = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node(state, node="node-3")
            await delete(stage)
            await succeed(stage, before=before)


@pytest.mark.parametrize("step", ["pre-drain", "post-drain"])
@pytest.mark.thin
async def test_next_plan_upgrades_a_worker_that_failed(simulate: Simulate, step: str) -> None:
    scenario = RepairableScenario.of(**WORKER, **fault(step, "node-3"))
    async with simulate(scenario) as simulation:
        before = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            assert await stage.until_ended() == FAILED
            await stage.settle()
            scenario.repair()
            await succeed(stage, before=before)


@pytest.mark.parametrize("state", ["PreDraining", "PreDrained", "PostDraining"])
@pytest.mark.parametrize("node", ["node-2", "node-3"])
@pytest.mark.thin
async def test_next_plan_handles_hooks_left_by_a_forced_deletion(simulate: Simulate, node: str, state: str) -> None:
    async with simulate(RepairableScenario.of(**WORKER)) as simulation:
        client, before = simulation.client(), await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as first:
            await stage.create_plan(BY_VERSION)
            await stage.until_node(state, node=node)
            await first.kill()
        await client.patch(UPGRADE_PLANS, stage.name, MergePatch({"metadata": {"finalizers": None}}))
        await client.delete(UPGRADE_PLANS, stage.name)
        await stage.settle()
        # As the plan's clean-up would have left it, if it had been let.
        value = MergePatch({"value": "600"})
        await client.patch(LONGHORN_SETTINGS, INTERVAL, value, namespace="longhorn-system")
        addon = MergePatch({"spec": {"enabled": True}})
        await client.patch(ADDONS, "descheduler", addon, namespace="kube-system")
        following = replace(stage, name="next")
        stage.ledger.created.clear()
        async with stage.life(seed="successor"):
            await following.create_plan(BY_VERSION)
            assert await following.until_ended() == SUCCEEDED
            await stage.settle()
        assert jobs_of(stage) == both_steps(stage)
        assert await cordoned(simulation) == []
        after = await overridden_settings(simulation)
        assert after[:2] == before[:2]
        # The original strategy is lost; hooks without a manager are removed.
        assert "management.harvesterhci.io" not in str(after[2])


DEFINITION = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
#: What is not there any more when the plan goes, and how far it was.
MISSING = [
    pytest.param("ISODownloading", ["virtualmachineimages.harvesterhci.io"], [], id="the images' kind"),
    pytest.param("ImagePreloading", ["plans.upgrade.cattle.io"], ["cattle-system"], id="Plans, kind and namespace"),
    pytest.param(
        "NodeUpgrading",
        ["clusters.provisioning.cattle.io", "machines.cluster.x-k8s.io"],
        ["fleet-local"],
        id="Rancher",
    ),
    pytest.param("NodeUpgrading", ["settings.longhorn.io"], ["longhorn-system"], id="Longhorn"),
    pytest.param("NodeUpgrading", ["addons.harvesterhci.io"], [], id="add-ons"),
]


@pytest.mark.rule(
    "pipeline: missing kinds do not block deletion",
    "pipeline: missing namespaces do not block deletion",
)
@pytest.mark.parametrize(("phase", "kinds", "namespaces"), MISSING)
async def test_missing_objects_do_not_block_deletion(
    simulate: Simulate, phase: str, kinds: list[str], namespaces: list[str]
) -> None:
    async with simulate() as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded(phase)
            await life.kill()
        for kind in kinds:
            await client.delete(DEFINITION, kind)
        for namespace in namespaces:
            await client.delete(NAMESPACES, namespace)
        await client.delete(UPGRADE_PLANS, stage.name)
        async with stage.life(seed="successor"):
            assert await stage.until("deleted") == "deleted"
        assert [event["message"] for event in await stage.events("ReconcileError")] == []


class Losing(NoHook):
    """Loses the response to the removal of the finalizer, and records what is removed after that."""

    def __init__(self) -> None:
        self.is_released = False
        self.removed: list[str] = []

    async def before(self, number: int, call: Call) -> None:
        """Take it down."""
        _ = number
        if self.is_released and call.verb.startswith("delete"):
            self.removed.append(call.path)

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Lose it."""
        _ = number
        if call.resource.startswith("upgradeplans") and b"deletionTimestamp" in response.body and not call.subresource:
            self.is_released = True
            raise Transient("the response was lost")


async def test_lost_finalizer_response_keeps_the_next_plans_objects(
    simulate: Simulate,
) -> None:
    async with simulate(scale=0.2) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        losing = simulation.middleware.hook = Losing()
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded("RepoCreating")
            await delete(stage)
            assert losing.is_released
            assert losing.removed == []
            assert await created_objects(simulation) == []
            await stage.create_plan(BY_VERSION)
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
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node("PreDraining")
            for resource in SLOW:
                simulation.middleware.add(Rule(match=Match(resource=resource), action=Delay(least=6.0, most=7.0)))
            await simulation.client().delete(UPGRADE_PLANS, stage.name)
            began = asyncio.get_running_loop().time()
            while await stage.phase() != "deleted":
                await asyncio.sleep(0.5)
                await made[0].check()
            assert asyncio.get_running_loop().time() - began < 240
        assert await created_objects(simulation) == []
