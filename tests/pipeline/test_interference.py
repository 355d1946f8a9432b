"""Users, webhooks and other controllers that interfere: the upgrade ends true, or holds and names what it waits for."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from hack.faults.rules import Match, Refuse, Rule
from tests.pipeline.ending.test_held_nodes import nodes, set_strategy, strategy
from tests.support.cluster.cluster_state import overridden_settings
from tests.support.cluster.simulate import RepairableScenario, fault
from tests.support.managers.upgrade import UpgradeRun, condition, node_states, provision_generation, started
from tests.support.random_runs.end_state_checks import check_nodes
from upgrade_manager.api.keys import FINALIZER, FLEET_LOCAL, MANAGED_LABEL, RKE_POST_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    JOBS,
    LONGHORN_SETTINGS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    UPGRADE_PLANS,
)

if TYPE_CHECKING:
    from hack.simulation import Simulation
    from tests.support.cluster.simulate import Simulate
    from upgrade_manager.kube.resources import Resource

pytestmark = pytest.mark.sampled

INTERVAL = "replica-replenishment-wait-interval"


async def set_managed(simulation: Simulation, *names: str, managed: bool) -> None:
    """Set or remove the nodes' managed label."""
    patch = MergePatch({"metadata": {"labels": {MANAGED_LABEL: "true" if managed else None}}})
    for name in names:
        await simulation.client().patch(NODES, name, patch)


async def assert_true(stage: UpgradeRun) -> None:
    """Check that the upgrade succeeds, and that every node runs the release and is schedulable."""
    await stage.succeed()
    simulation = stage.simulation
    release = simulation.scenario.release
    after = await nodes(simulation)
    assert {found[:2] for found in after.values()} == {(release.kubernetes, f"Harvester {release.harvester}")}
    assert not any(cordoned for *_, cordoned in after.values())


def progress(plan: Any) -> str:
    return condition(plan, "Progressing")[2]


@pytest.mark.rule("nodes: a managed label that is missing for a moment changes nothing")
@pytest.mark.servers
async def test_labels_missing_at_the_start_do_not_drop_nodes(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_recorded("ClusterUpgrading")
        await set_managed(simulation, "node-1", "node-2", managed=False)
        await stage.until_recorded("NodeUpgrading")
        await stage.until_plan(lambda plan: f"label {MANAGED_LABEL}=true is missing" in progress(plan))
        assert "singleNode" not in objects.status(await stage.plan())
        await set_managed(simulation, "node-1", "node-2", managed=True)
        await assert_true(stage)


@pytest.mark.rule("nodes: a recorded node that cannot be observed while its Machine exists holds the phase")
@pytest.mark.parametrize("missing", ["label", "Node"])
@pytest.mark.thin
async def test_missing_node_holds_the_phase(simulate: Simulate, missing: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining", node="node-0")
        if missing == "label":
            await set_managed(simulation, "node-1", managed=False)
        else:
            await simulation.client().delete(NODES, "node-1")
        await stage.until_node("PostDrained", node="node-2")
        await asyncio.sleep(300)
        plan = await stage.plan()
        assert objects.status(plan)["currentPhase"] == "NodeUpgrading"
        assert progress(plan).startswith("node-1: its ")
        assert objects.status(plan)["nodeUpgradeStatuses"]["node-1"]["message"].startswith("Node node-1: its ")
        assert [one["reason"] for one in objects.status(plan)["blockers"]] == ["NodeMissing"]
        if missing == "label":
            await set_managed(simulation, "node-1", managed=True)
            await assert_true(stage)


#: Seconds that Rancher waits before it reaches the next node, and that a reboot takes.
SLOW = {"planner": 10, "reboot": 40}
DONE_NODE = "node-0"


@pytest.mark.rule(
    "nodes: a done node that is NotReady or runs another OS holds the phase, and is named",
    "nodes: no node starts while a done node is NotReady, runs another OS or is missing",
)
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({}, "is NotReady", id="NotReady"),
        pytest.param({"os_image": "Harvester v1.7.1"}, "runs Harvester v1.7.1 instead of", id="rolled back"),
    ],
)
@pytest.mark.thin
async def test_lost_done_node_holds_the_others(simulate: Simulate, changes: dict[str, str], problem: str) -> None:
    scenario = RepairableScenario.of(durations=SLOW)
    async with simulate(scenario) as simulation, started(simulation) as stage:
        await stage.until_node("PostDrained", node=DONE_NODE)
        host = simulation.hosts.of(DONE_NODE)
        if changes:
            host.next_os = changes["os_image"]
        simulation.hosts.power_off(DONE_NODE)
        await stage.until_plan(lambda plan: f"{DONE_NODE}: was upgraded, but {problem}" in progress(plan))
        jobs = stage.ledger.names("jobs")
        await asyncio.sleep(30)
        assert stage.ledger.names("jobs") == jobs
        assert node_states(await stage.plan())[DONE_NODE] == "PostDrained"
        if changes:
            simulation.hosts.install(DONE_NODE, simulation.scenario.release.os_image, reboot_after="no-pod")
            simulation.hosts.power_off(DONE_NODE)
        await assert_true(stage)
        assert stage.ledger.names("jobs").count(f"upgrade-node-upgrade-pre-drain-{DONE_NODE}") == 1


@pytest.mark.rule("nodes: a done node that is cordoned holds the end of the phase, and blocks no other node")
async def test_cordoned_done_node_holds_the_end(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining", node="node-2")
        await cordon(simulation, DONE_NODE, cordoned=True)
        await stage.until_plan(lambda plan: f"kubectl uncordon {DONE_NODE}" in progress(plan))
        assert set(node_states(await stage.plan()).values()) == {"PostDrained"}
        await asyncio.sleep(300)
        assert objects.status(await stage.plan())["currentPhase"] == "NodeUpgrading"
        await cordon(simulation, DONE_NODE, cordoned=False)
        await assert_true(stage)


async def cordon(simulation: Simulation, node: str, *, cordoned: bool) -> None:
    """Cordon or uncordon the node as a user does."""
    patch = MergePatch({"spec": {"unschedulable": True if cordoned else None}})
    await simulation.client().patch(NODES, node, patch)


@pytest.mark.rule("nodes: a node that runs the release's Kubernetes before its drain is named, with the next step")
async def test_advice_makes_rancher_drain_the_rest(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.until_node("PostDrained", node=DONE_NODE)
        # Without a manager nothing adds the hooks again, so Rancher upgrades the other nodes without a drain.
        await set_strategy(simulation, None)
        await asyncio.sleep(60)
        async with stage.life(seed="the next manager"):
            await stage.until_plan(lambda plan: "already, but Rancher has not drained" in progress(plan))
            plan = await stage.until_plan(lambda plan: bool(objects.status(plan).get("blockers")), seconds=900)
            blocker = objects.status(plan)["blockers"][0]
            assert blocker["reason"] == "HookLost"
            again = json.loads(blocker["remedy"].partition("-p '")[2].removesuffix("'"))
            assert again == {"spec": {"rkeConfig": {"provisionGeneration": await provision_generation(simulation) + 1}}}
            await stage.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(again), namespace=FLEET_LOCAL)
            await assert_true(stage)


@pytest.mark.rule("nodes: a hook that is set again on an upgraded node runs another pre-drain Job, one node at a time")
@pytest.mark.servers
async def test_repeated_hook_runs_another_job(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining", node="node-2")
        # Rancher plans all nodes again.
        again = MergePatch({"spec": {"rkeConfig": {"provisionGeneration": await provision_generation(simulation) + 1}}})
        await simulation.client().patch(PROVISIONING_CLUSTERS, "local", again, namespace=FLEET_LOCAL)
        await stage.until_plan(lambda plan: "runs again" in progress(plan))
        assert node_states(await stage.plan())["node-0"] == "PostDrained"
        await assert_true(stage)
        jobs = stage.ledger.names("jobs")
        assert jobs.count("upgrade-node-upgrade-pre-drain-node-0") == 2
        assert jobs.count("upgrade-node-upgrade-post-drain-node-0") == 1
        assert (await simulation.client().list(JOBS, namespace="harvester-system")).items == []
        assert await check_nodes(simulation) == []


@pytest.mark.rule("nodes: the settings are given back before ImageCleanup")
@pytest.mark.servers
async def test_settings_are_given_back_before_image_cleanup(simulate: Simulate) -> None:
    async with simulate() as simulation:
        before = await overridden_settings(simulation)
        async with started(simulation) as stage:
            await stage.until_recorded("NodeUpgrading")
            await stage.until_node("PreDraining")
            assert await overridden_settings(simulation) != before
            await stage.until_recorded("CleaningUp")
            assert (await overridden_settings(simulation))[:3] == before[:3]
            assert "originals" not in objects.status(await stage.plan())
            await stage.succeed()


@pytest.mark.rule("nodes: drain hooks that others remove are added again, without another generation")
@pytest.mark.servers
@pytest.mark.parametrize("removed", [None, {"controlPlaneConcurrency": "3"}], ids=["strategy", "hooks"])
@pytest.mark.thin
async def test_removed_hooks_are_added_again(simulate: Simulate, removed: Any) -> None:
    async with simulate() as simulation:
        generation = await provision_generation(simulation)
        async with started(simulation) as stage:
            await stage.until_node("PreDraining", node="node-0")
            await set_strategy(simulation, removed)
            await assert_true(stage)
            assert [reason for reason, _ in await stage.warnings()] == ["DrainHooksAdded"]
        assert await provision_generation(simulation) == generation + 1
        # The value that was set during the upgrade is kept.
        assert await strategy(simulation) == removed


@dataclass(frozen=True, slots=True)
class Refusal:
    """A webhook that refuses writes of the manager."""

    resource: Resource
    status: int
    reason: str


REFUSALS = [
    Refusal(ADDONS, 403, "Forbidden"),
    Refusal(ADDONS, 400, "BadRequest"),
    Refusal(LONGHORN_SETTINGS, 422, "Invalid"),
    Refusal(LONGHORN_SETTINGS, 403, "Forbidden"),
]


@pytest.mark.rule("nodes: a refused write of a setting is retried, and named while it lasts")
@pytest.mark.servers
@pytest.mark.parametrize("point", ["ClusterUpgrading", "PostDrained"])
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: f"{one.resource.plural}-{one.status}")
@pytest.mark.thin
async def test_refused_settings_are_retried(simulate: Simulate, refusal: Refusal, point: str) -> None:
    async with simulate() as simulation:
        before = await overridden_settings(simulation)
        async with started(simulation) as stage:
            await (stage.until_recorded(point) if point == "ClusterUpgrading" else stage.until_node(point))
            rule = Rule(
                match=Match(verbs=("patch",), resource=f"{refusal.resource.plural}.*"),
                action=Refuse(status=refusal.status, reason=refusal.reason, message="the webhook refuses it"),
            )
            simulation.middleware.add(rule)
            await stage.until_plan(lambda plan: "the webhook refuses it" in condition(plan, "Degraded")[2])
            simulation.middleware.remove(rule)
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


@pytest.mark.rule("nodes: parts of the strategy that a user changes during the upgrade are kept")
@pytest.mark.servers
async def test_users_strategy_is_kept(simulate: Simulate) -> None:
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
        assert await strategy(simulation) == {"workerConcurrency": "4", "controlPlaneConcurrency": "2", **options}


@pytest.mark.rule("pipeline: a plan that is created while a failed one gives settings back starts afterwards")
async def test_next_plan_waits_for_the_failed_one(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("pre-drain", "node-2"))
    async with simulate(scenario) as simulation, started(simulation) as stage:
        await stage.until_node("PostDrained")
        refusal = Refuse(status=403, reason="Forbidden", message="the webhook refuses it")
        rule = Rule(match=Match(verbs=("patch",), resource="addons.*"), action=refusal)
        simulation.middleware.add(rule)
        await stage.until_ended()
        following = replace(stage, name="next")
        await following.create_plan()
        await asyncio.sleep(60)
        assert condition(await following.plan(), "Available") == (
            "False",
            "Waiting",
            "Waiting for UpgradePlan upgrade, which has failed, to give the settings back that it changed",
        )
        scenario.repair()
        simulation.middleware.remove(rule)
        await following.succeed()


@pytest.mark.rule("nodes: the finalizer of an ended plan is removed after its clean-up")
@pytest.mark.servers
@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.thin
async def test_ended_plan_has_no_finalizer(simulate: Simulate, fails: bool) -> None:  # noqa: FBT001  # a table
    scenario = RepairableScenario.of(**(fault("prepare") if fails else {}))
    async with simulate(scenario) as simulation:
        async with started(simulation) as stage:
            await stage.until("Failed" if fails else "Succeeded")
            await stage.until_plan(lambda plan: FINALIZER not in objects.finalizers(plan))
        # Deleted without a manager.
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        assert await stage.phase() == "deleted"


@pytest.mark.rule("pipeline: a 409 that is not the manager's own precondition is reported")
@pytest.mark.servers
@pytest.mark.parametrize("verb", ["create", "patch"])
@pytest.mark.thin
async def test_lasting_conflict_is_reported(simulate: Simulate, verb: str) -> None:
    async with simulate() as simulation:
        refusal = Refuse(status=409, reason="Conflict", message="a webhook refuses the display name")
        resource = "virtualmachineimages.*" if verb == "create" else "addons.*"
        rule = Rule(match=Match(verbs=(verb,), resource=resource), action=refusal)
        simulation.middleware.add(rule)
        async with started(simulation) as stage:
            await stage.until_plan(lambda plan: "refuses the display name" in condition(plan, "Degraded")[2])
            simulation.middleware.remove(rule)
            await assert_true(stage)


@pytest.mark.rule("nodes: a hook of another controller beside the manager's is reported with its name")
@pytest.mark.servers
@pytest.mark.parametrize("list_", ["preDrainHooks", "postDrainHooks"])
@pytest.mark.thin
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
