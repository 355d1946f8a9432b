"""Whole upgrades: hosts are changed before Rancher and the nodes, and nothing of it is left, however a plan ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hack.scenario import NodeFaults
from hack.simulation import Simulation
from tests.support.cluster.host_changes import changed_hosts
from tests.support.cluster.simulate import RepairableScenario, fault
from tests.support.managers.manager_restarts import InClusterManager
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.ledger import LedgerKind, of_kind, recorded_entries
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, NODES, SUC_PLANS, UPGRADE_PLANS
from upgrade_manager.pipeline.outcome import Completed
from upgrade_manager.pipeline.phases import host_plans

pytestmark = pytest.mark.full

HARVESTERS = RunOptions()
#: The Plans of an upgrade, in order.
PRELOAD, SURVEY = "upgrade-image-preload", "upgrade-survey"
HOLD, RELEASE = "upgrade-agent-hold", "upgrade-agent-release"
SKIP, UNSKIP, CLEANUP = "upgrade-skip-on", "upgrade-skip-off", "upgrade-image-cleanup"
OFF = "node-1"
#: Virtual seconds in which an ended plan gives up what it cannot undo, and a little more.
GIVEN_UP = 700.0


def entries(plan: dict[str, Any]) -> list[str]:
    found = of_kind(recorded_entries(objects.status(plan)), LedgerKind.HOLD, LedgerKind.FILE)
    return [entry["id"] for entry in found]


async def has_created(stage: UpgradeRun, plan: str) -> bool:
    return plan in stage.ledger.names("plans")


async def labels(stage: UpgradeRun) -> list[str]:
    nodes = (await stage.client.list(NODES)).items
    return [label for node in nodes for label in objects.labels(node) if label.startswith("plan.upgrade.cattle.io/")]


@pytest.mark.rule(
    "workloads: agent-hold and skip-on precede what they protect, and the undoing Plans follow the last node",
    "workloads: no file and no hold of an upgrade is left on a host",
)
@pytest.mark.parametrize(
    ("scenario", "options", "plans"),
    [
        pytest.param(
            "three-nodes", OWN, [PRELOAD, SURVEY, HOLD, SKIP, UNSKIP, RELEASE, CLEANUP], id="three, our toolkit"
        ),
        pytest.param("three-nodes", HARVESTERS, [PRELOAD, SKIP, UNSKIP, CLEANUP], id="three, Harvester's toolkit"),
        pytest.param("witness", OWN, [PRELOAD, SURVEY, HOLD, SKIP, UNSKIP, RELEASE, CLEANUP], id="two and a witness"),
        pytest.param("one-node", OWN, [PRELOAD, SURVEY, HOLD, RELEASE, CLEANUP], id="one, our toolkit"),
        pytest.param("one-node", HARVESTERS, [PRELOAD, CLEANUP], id="one, Harvester's toolkit"),
    ],
)
@pytest.mark.thin
async def test_hosts_are_changed_around_the_jobs(scenario: str, options: RunOptions, plans: list[str]) -> None:
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=options)
        async with InClusterManager(stage, "node-0").running():
            await stage.create_plan()
            plan = await stage.succeed()
        # All changes are undone at the same time.
        assert sorted(stage.ledger.names("plans"), key=plans.index) == plans
        before = plans.index(RELEASE) - 1 if RELEASE in plans else len(plans)
        assert stage.ledger.names("plans")[:before] == plans[:before]
        assert simulation.hosts.undue == []
        assert changed_hosts(simulation) == []
        assert entries(plan) == []
        assert await labels(stage) == []
        assert (await stage.client.list(SUC_PLANS)).items == []


@pytest.mark.parametrize(
    ("left_out", "found"),
    [("agent-hold", "RKE2 restarts on node-0 with its VMs"), ("skip-on", "RKE2 upgrades rke2-multus from")],
)
async def test_harm_without_a_change_is_found(monkeypatch: pytest.MonkeyPatch, left_out: str, found: str) -> None:
    original = host_plans.apply

    async def apply(ctx: Any, change: Any) -> Any:
        return Completed() if change.apply == left_out else await original(ctx, change)

    monkeypatch.setattr(host_plans, "apply", apply)
    async with Simulation() as simulation:
        async with started(simulation, options=OWN) as stage:
            await stage.succeed()
        assert [text for text in simulation.hosts.undue if text.startswith(found)] != []


@pytest.mark.rule("workloads: the holds and files of an upgrade are removed after a failure and a deletion")
@pytest.mark.parametrize("work", ["post-drain", "agent-hold", "manifests", "skip-on", "pre-drain"])
@pytest.mark.thin
async def test_failure_leaves_nothing_on_hosts(work: str) -> None:
    scenario = RepairableScenario.of(**fault(work, "" if work == "manifests" else "node-2"))
    async with Simulation(scenario) as simulation:
        async with started(simulation, options=OWN) as stage:
            await stage.fail()
            await asyncio.sleep(60)
            plan = await stage.plan()
            assert changed_hosts(simulation) == []
            assert entries(plan) == []
            assert "may keep" not in str(objects.status(plan)["nextSteps"])
            scenario.repair()
            following = replace(stage, name="next")
            await following.create_plan()
            await following.succeed()
        assert changed_hosts(simulation) == []


@pytest.mark.rule("pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted")
@pytest.mark.parametrize("work", ["agent-hold", "skip-on"])
async def test_log_of_a_failed_change_stays(work: str) -> None:
    """The changes are undone before the clean-up, and the controller gives its Jobs a quarter of an hour."""
    async with Simulation(RepairableScenario.of(**fault(work, OFF))) as simulation:
        async with started(simulation, options=OWN) as stage:
            await stage.fail()
            await asyncio.sleep(3600)
            log = condition(await stage.plan(), "Progressing")[2].partition(" -n cattle-system ")[2]
            assert await failed_jobs(stage) == [log.removeprefix("job/")]
            assert changed_hosts(simulation) == []
            assert (await stage.client.list(SUC_PLANS)).items == []
            await stage.delete()
        assert await failed_jobs(stage) == []


async def failed_jobs(stage: UpgradeRun) -> list[str]:
    """Return the Jobs of Plans that are left, of which each has failed."""
    jobs = (await stage.client.list(JOBS, namespace="cattle-system")).items
    assert all(objects.condition(job, "Failed").get("status") == "True" for job in jobs)
    return [objects.name(job) for job in jobs]


@pytest.mark.rule("workloads: the holds and files of an upgrade are removed after a failure and a deletion")
@pytest.mark.parametrize("plan", ["", UNSKIP, HOLD, SKIP])
@pytest.mark.thin
async def test_deletion_leaves_nothing_on_hosts(plan: str) -> None:
    async with Simulation() as simulation:
        async with started(simulation, options=OWN) as stage:
            if plan:
                await eventually(lambda: has_created(stage, plan), seconds=600, pause=0.05)
            else:
                await stage.until_node("PreDrained")
            await stage.delete()
        assert changed_hosts(simulation) == []
        assert (await stage.client.list(SUC_PLANS)).items == []


@pytest.mark.rule("workloads: a host that is off keeps its file or hold for ten minutes of attempts, then it is named")
@pytest.mark.parametrize("is_deleted", [False, True], ids=["failed", "deleted"])
@pytest.mark.thin
async def test_host_that_is_off_is_named_and_passed_on(*, is_deleted: bool) -> None:
    scenario = RepairableScenario.of(**fault("post-drain"), node_faults={"lost_on_reboot": [OFF]})
    async with Simulation(scenario) as simulation:
        async with started(simulation, options=OWN) as stage:
            await stage.until_node("PostDraining")
            simulation.hosts.power_off(OFF)
            if is_deleted:
                await stage.client.delete(UPGRADE_PLANS, stage.name)
                await asyncio.sleep(GIVEN_UP)
                assert await stage.until("deleted") == "deleted"
            else:
                await stage.until_ended()
                await asyncio.sleep(GIVEN_UP)
                plan = await stage.plan()
                assert set(entries(plan)) == {"File.rke2-multus.yaml.skip", "Hold.rancher-system-agent.service"}
                assert f"Node {OFF} may keep the file" in str(objects.status(plan)["nextSteps"])
            assert [text.partition(" ")[0] for text in changed_hosts(simulation)] == [OFF]
            simulation.hosts.power_on(OFF)
            scenario.repair()
            scenario.__dict__["node_faults"] = NodeFaults()
            following = replace(stage, name="next")
            await following.create_plan()
            plan = await following.succeed()
        assert changed_hosts(simulation) == []
        assert entries(plan) == []


async def test_second_plan_of_a_long_name_works() -> None:
    async with Simulation() as simulation:
        stage = replace(await UpgradeRun.set_up(simulation, name="p" * 70), options=OWN)
        async with stage.life():
            for spec in (BY_VERSION, {**BY_VERSION, "force": True}):
                await stage.create_plan(spec)
                await stage.succeed()
                await stage.delete()
        assert changed_hosts(simulation) == []
        assert await labels(stage) == []
