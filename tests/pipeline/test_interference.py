"""Users, webhooks and other controllers that interfere: the upgrade ends true, or holds and names what it waits for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.pipeline.ending.test_held_nodes import assert_upgraded, set_strategy, strategy
from tests.support.cluster.cluster_state import overridden_settings
from tests.support.cluster.simulate import RepairableScenario, Simulate, fault
from tests.support.managers.healthy_jobs import healthy_jobs
from tests.support.managers.upgrade import REFUSAL, UpgradeRun, condition, node_states, provision_generation, started
from tests.support.random_runs.end_state_checks import check_nodes
from upgrade_manager.api.keys import FINALIZER, FLEET_LOCAL, RKE_POST_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, SECRETS

pytestmark = pytest.mark.full

INTERVAL = "replica-replenishment-wait-interval"


async def assert_true(stage: UpgradeRun) -> None:
    """Check that the upgrade succeeds, and that every node runs the release and is schedulable."""
    await stage.succeed()
    await assert_upgraded(stage.simulation)


def progress(plan: Any) -> str:
    return condition(plan, "Progressing")[2]


@pytest.mark.rule("nodes: a hook that is set again on an upgraded node runs another pre-drain Job, one node at a time")
@pytest.mark.servers
@pytest.mark.real_full
async def test_repeated_hook_runs_another_job(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining", node="node-2")
        await stage.plan_again()
        await stage.until_plan(lambda plan: "runs again" in progress(plan))
        assert node_states(await stage.plan())["node-0"] == "PostDrained"
        await assert_true(stage)
        jobs = stage.ledger.names("jobs")
        assert jobs.count("upgrade-node-upgrade-pre-drain-node-0") == 2
        assert jobs.count("upgrade-node-upgrade-post-drain-node-0") == 1
        assert (await simulation.client().list(JOBS, namespace="harvester-system")).items == []
        assert await check_nodes(simulation) == []


@pytest.mark.rule("nodes: drain hooks that others remove are added again, without another generation")
@pytest.mark.servers
@pytest.mark.real_full
async def test_removed_hooks_are_added_again(simulate: Simulate) -> None:
    removed = {"controlPlaneConcurrency": "3"}
    async with simulate() as simulation:
        generation = await provision_generation(simulation)
        async with started(simulation) as stage:
            await stage.until_node("PreDraining", node="node-0")
            await set_strategy(simulation, removed)
            await assert_true(stage)
            reasons = {reason for reason, _ in await stage.warnings()}
            # Rancher may upgrade a node before the hooks are back, on a busy machine.
            assert {"DrainHooksAdded"} <= reasons <= {"DrainHooksAdded", "UpgradedUndrained"}
        assert await provision_generation(simulation) == generation + 1
        # The value that was set during the upgrade is kept.
        assert await strategy(simulation) == removed


@pytest.mark.rule("nodes: a refused write of a setting is retried, and named while it lasts")
@pytest.mark.servers
@pytest.mark.parametrize(
    ("resource", "status", "reason", "point"),
    [
        ("addons.*", 400, "BadRequest", "PostDrained"),
        ("settings.*", 403, "Forbidden", "ClusterUpgrading"),
    ],
)
@pytest.mark.thin
async def test_refused_settings_are_retried(
    simulate: Simulate, resource: str, status: int, reason: str, point: str
) -> None:
    async with simulate() as simulation:
        before = await overridden_settings(simulation)
        async with started(simulation) as stage:
            await stage.reach(point)
            allow = stage.refuse("patch", resource, status=status, reason=reason)
            await stage.until_plan(lambda plan: REFUSAL in condition(plan, "Degraded")[2])
            allow()
            await assert_true(stage)
            assert {reason for reason, _ in await stage.warnings()} == {"ReconcileError"}
        assert await overridden_settings(simulation) == before


@pytest.mark.rule("nodes: a plan that is replaced without finalizer and annotations gives everything back")
@pytest.mark.servers
@pytest.mark.parametrize("end", ["success", "deletion"])
@pytest.mark.thin
async def test_replaced_plan_gives_settings_back(simulate: Simulate, end: str) -> None:
    async with simulate() as simulation:
        before = await overridden_settings(simulation)
        async with started(simulation) as stage:
            await stage.until_node("PostDrained")
            await stage.patch(metadata={"annotations": None, "finalizers": None})
            await stage.until_plan(lambda plan: FINALIZER in objects.finalizers(plan))
            if end == "deletion":
                await stage.delete()
                # Rancher's strategy holds the nodes that are left.
                assert (await overridden_settings(simulation))[:2] == before[:2]
            else:
                await assert_true(stage)
                assert await overridden_settings(simulation) == before


@pytest.mark.rule(
    "nodes: parts of the strategy that a user changes during the upgrade are kept",
    "nodes: a pre-drain value that changes while the Job runs is acknowledged in its latest form",
)
@pytest.mark.servers
@pytest.mark.real_full
async def test_users_strategy_is_kept(simulate: Simulate) -> None:
    """The drain options change while the pre-drain Job runs, and are acknowledged as they are."""
    async with simulate() as simulation:
        await set_strategy(simulation, {"workerConcurrency": "4"})
        async with started(simulation) as stage:
            await stage.until_node("PreDraining")
            options = {"controlPlaneDrainOptions": {"timeout": 77}}
            patch = {**await strategy(simulation), "controlPlaneConcurrency": "2"}
            patch["controlPlaneDrainOptions"] |= options["controlPlaneDrainOptions"]
            await set_strategy(simulation, patch)
            await assert_true(stage)
            assert [reason for reason, _ in await stage.warnings()] == ["SettingNotRestored"]
            assert sorted(stage.ledger.names("jobs")) == healthy_jobs(stage.name, simulation.scenario.nodes.names)
        assert await strategy(simulation) == {"workerConcurrency": "4", "controlPlaneConcurrency": "2", **options}


@pytest.mark.rule("pipeline: a plan that is created while a failed one gives settings back starts afterwards")
async def test_next_plan_waits_for_the_failed_one(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("pre-drain", "node-2"))
    async with simulate(scenario) as simulation, started(simulation) as stage:
        await stage.until_node("PostDrained")
        allow = stage.refuse("patch", "addons.*")
        await stage.until_ended()
        following = replace(stage, name="next")
        await following.create_plan()
        await asyncio.sleep(60)
        message = (
            "UpgradePlan upgrade has ended, and gives the settings back that it changed; this plan starts by itself "
            "once nothing holds the cluster. Its conditions show what is refused: "
            "kubectl describe upgradeplans.management.harvesterhci.io upgrade"
        )
        assert condition(await following.plan(), "Available") == ("False", "ConcurrentUpgradeBlocked", message)
        scenario.repair()
        allow()
        await following.succeed()


@pytest.mark.rule("pipeline: a 409 that is not the manager's own precondition is reported")
@pytest.mark.servers
@pytest.mark.parametrize(("verb", "resource"), [("create", "virtualmachineimages.*"), ("patch", "addons.*")])
@pytest.mark.thin
@pytest.mark.real_full
async def test_lasting_conflict_is_reported(simulate: Simulate, verb: str, resource: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        allow = stage.refuse(verb, resource, status=409, reason="Conflict")
        await stage.until_plan(lambda plan: REFUSAL in condition(plan, "Degraded")[2])
        allow()
        await assert_true(stage)


@pytest.mark.rule("nodes: a hook of another controller beside the manager's is reported with its name")
@pytest.mark.servers
@pytest.mark.parametrize("list_", ["preDrainHooks", "postDrainHooks"])
@pytest.mark.thin
@pytest.mark.real_full
async def test_hook_of_another_controller_is_reported(simulate: Simulate, list_: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining")
        changed = await strategy(simulation)
        changed["controlPlaneDrainOptions"][list_].insert(0, {"annotation": "example.com/hook"})
        await set_strategy(simulation, changed)
        text = "other controllers have not acknowledged their hooks: "
        plan = await stage.until_plan(lambda plan: text in progress(plan))
        assert "example.com/hook" in progress(plan)
        changed["controlPlaneDrainOptions"][list_].pop(0)
        await set_strategy(simulation, changed)
        if list_ == "postDrainHooks":
            # Rancher keeps the drain options of a node that it has drained.
            (blocker,) = objects.status(plan)["blockers"]
            secret = blocker["name"]
            options = objects.annotations_of(await stage.client.get(SECRETS, secret, namespace=FLEET_LOCAL))
            acknowledged = MergePatch({"metadata": {"annotations": {"example.com/hook": options[RKE_POST_DRAIN]}}})
            await stage.client.patch(SECRETS, secret, acknowledged, namespace=FLEET_LOCAL)
        await assert_true(stage)
