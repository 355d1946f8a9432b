"""VMs do not migrate to new launchers while nodes are drained: whole upgrades with both kinds of toolkit."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.workload_updates import PREFIX
from hack.simulation import Simulation
from tests.pipeline.ending.test_orphaned_jobs import COMPONENT_JOB, WAITS, until_job
from tests.support.cluster.cluster_state import end_state, update_methods
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition
from upgrade_manager.api.keys import ANNOTATION_LEDGER, FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.facts import update_methods as facts
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    EVENTS,
    JOBS,
    KUBEVIRTS,
    MANAGED_CHARTS,
    PROVISIONING_CLUSTERS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
)
from upgrade_manager.pipeline.ending import component_job

if TYPE_CHECKING:
    from hack.apiserver.history import Entry

pytestmark = pytest.mark.full

KINDS = pytest.mark.parametrize("options", [OWN, RunOptions()], ids=["own", "harvester"])
ORIGINAL = [None, None, {"workloadUpdateMethods": ["LiveMigrate"]}]
#: Harvester's toolkit writes the list, too, as Harvester's own upgrade to v1.8.0 does.
WRITING: dict[str, Any] = {"toolkit_writes_methods": True}
HANGING: dict[str, Any] = {"faults": [{"work": "manifests", "hang": True}]}
#: The Job writes the list long after the deletion has stopped to wait for it.
LONG: dict[str, Any] = {"durations": {"manifests": 5400}}
VMS: dict[str, Any] = {**WRITING, "vms": {"count": 6}}
#: Our own toolkit's command runs, too, where the services exist that it upgrades.
SERVICES: dict[str, Any] = {**VMS, "services": True}


class Created:
    """Records created migrations, and KubeVirt's list as the Job of the cluster upgrade is created."""

    def __init__(self, simulation: Simulation) -> None:
        self.migrations: set[str] = set()
        self.before_job: list[Any] = []
        self._methods: Any = None
        simulation.server.storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        found = entry.stored.object
        if collection.startswith("virtualmachineinstancemigrations"):
            self.migrations.add(objects.name(found))
        elif collection.startswith("kubevirts"):
            self._methods = facts.of_kubevirt(found)
        elif collection.startswith("jobs") and objects.name(found).endswith("-cluster-upgrade") and not self.before_job:
            self.before_job.append(self._methods)

    @property
    def updates(self) -> list[str]:
        """The migrations to new launchers."""
        return [name for name in self.migrations if name.startswith(PREFIX)]


async def methods(simulation: Simulation) -> Any:
    """Return KubeVirt's list."""
    found = await simulation.client().get(KUBEVIRTS, "kubevirt", namespace=HARVESTER_SYSTEM)
    return facts.of_kubevirt(found)


async def state(simulation: Simulation) -> list[Any]:
    return update_methods(await end_state(simulation))


async def launchers(stage: UpgradeRun) -> set[str]:
    """Return the versions of the launchers."""
    found = (await stage.client.list(VIRTUAL_MACHINE_INSTANCES)).items
    return {objects.text(one, "status", "launcherContainerImageVersion") for one in found}


@KINDS
@pytest.mark.parametrize("changes", [SERVICES, VMS], ids=["services", "simulated"])
@pytest.mark.thin
async def test_vms_get_new_launchers_by_drains_alone(options: RunOptions, changes: dict[str, Any]) -> None:
    async with Simulation(RepairableScenario.of(**changes)) as simulation:
        assert await state(simulation) == ORIGINAL
        stage = replace(await UpgradeRun.set_up(simulation), options=options)
        created = Created(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            for point in ("ClusterUpgraded", "PostDrained"):
                await stage.reach(point)
                assert await methods(simulation) == []
            await stage.succeed()
        assert created.before_job == [[]]
        assert created.migrations
        assert created.updates == []
        assert await state(simulation) == ORIGINAL
        assert await launchers(stage) == {"1.7.0"}
    assert stage.ledger.conflicts == []


async def test_list_that_is_filled_too_early_migrates_vms() -> None:
    """The simulated KubeVirt does what the manager prevents."""
    async with Simulation(RepairableScenario.of(**VMS)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        created = Created(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node("PreDraining")
            values = {"kubevirt": {"spec": {"workloadUpdateStrategy": None}}}
            patch = MergePatch({"spec": {"values": values, "timeoutSeconds": 700}})
            await stage.client.patch(MANAGED_CHARTS, "harvester", patch, namespace=FLEET_LOCAL)
            await stage.succeed()
        assert created.updates
        assert "SettingNotRestored" not in dict(await stage.warnings())


@KINDS
@pytest.mark.parametrize("work", ["manifests", "post-drain"])
@pytest.mark.thin
async def test_list_is_given_back_after_a_failure(options: RunOptions, work: str) -> None:
    scenario = RepairableScenario.of(**WRITING, **fault(work, "" if work == "manifests" else SECOND))
    async with Simulation(scenario) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=options)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            plan = await stage.fail()
            assert [one for one in objects.status(plan)["ledger"] if one["kind"] == "UpdateMethods"] == []
            assert await state(simulation) == ORIGINAL
            scenario.repair()
            following = replace(stage, name="next")
            await following.create_plan(BY_VERSION)
            await following.until_recorded("ClusterUpgraded")
            assert await methods(simulation) == []
            await following.succeed()
        assert await state(simulation) == ORIGINAL


@KINDS
@pytest.mark.parametrize("point", ["PreDrained", "ClusterUpgrading"])
@pytest.mark.thin
async def test_list_is_given_back_when_the_plan_is_deleted(options: RunOptions, point: str) -> None:
    async with Simulation(RepairableScenario.of(**WRITING)) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=options)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.reach(point)
            await stage.delete()
        assert await state(simulation) == ORIGINAL


@KINDS
async def test_refused_value_is_named_and_holds_the_next_plan(options: RunOptions) -> None:
    async with Simulation(RepairableScenario.of(**WRITING, **fault("manifests"))) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=options)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded("ClusterUpgrading")
            await stage.until_plan(lambda plan: "attempt 1" in condition(plan, "Progressing")[2])
            accept = stage.refuse("patch", MANAGED_CHARTS.name)
            await stage.until_ended()
            named = await stage.until_plan(lambda plan: bool(objects.status(plan).get("blockers")))
            (blocker,) = objects.status(named)["blockers"]
            assert [blocker[key] for key in ("reason", "kind", "name")] == [
                "CleanupRefused",
                "ManagedChart",
                "harvester",
            ]
            following = replace(stage, name="next")
            await following.create_plan(BY_VERSION)
            await stage.settle()
            assert await following.phase() == ""
            accept()
            await following.until_recorded("Initializing")
        assert [one["kind"] for one in objects.status(await stage.plan())["ledger"]] == []


@pytest.mark.servers
async def test_fleet_deploys_both_changes_on_both_servers(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**WRITING)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_recorded("ClusterUpgraded")
            assert await methods(simulation) == []
            await stage.succeed()
        assert await state(simulation) == ORIGINAL


@pytest.mark.rule("pipeline: a deletion gives KubeVirt's update methods back once the cluster upgrade's Job has ended")
@KINDS
async def test_list_is_given_back_after_the_job_of_a_deleted_plan(options: RunOptions) -> None:
    async with Simulation(RepairableScenario.of(**WRITING)) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=options)
        async with stage.life():
            await _delete_during_the_job(stage)
            assert await methods(simulation) == []
            assert await stage.until("deleted") == "deleted"
            await stage.settle()
        assert await state(simulation) == ORIGINAL
        assert await stage.warnings() == []


async def _delete_during_the_job(stage: UpgradeRun) -> None:
    await stage.create_plan(BY_VERSION)
    await stage.until_recorded("ClusterUpgrading")
    await until_job(stage, COMPONENT_JOB, "ready")
    await stage.client.delete(UPGRADE_PLANS, stage.name)
    await stage.until_plan(lambda plan: WAITS in condition(plan, "Progressing")[2])


async def test_deleted_job_ends_the_wait_of_the_deletion() -> None:
    async with Simulation(RepairableScenario.of(**WRITING, **HANGING)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await _delete_during_the_job(stage)
            began = asyncio.get_running_loop().time()
            await stage.client.delete(JOBS, COMPONENT_JOB, namespace=HARVESTER_SYSTEM, propagation="Background")
            assert await stage.until("deleted") == "deleted"
            assert asyncio.get_running_loop().time() - began < 60
            await stage.settle()
        assert await state(simulation) == ORIGINAL


@pytest.mark.rule(
    "pipeline: a deletion waits for the Job of the cluster upgrade, for at most an hour",
    "nodes: the next plan gives back the update methods that a deleted plan has left",
)
@pytest.mark.parametrize("fails", [True, False], ids=["fails in its checks", "succeeds"])
@pytest.mark.thin
async def test_job_that_takes_long_leaves_the_list_to_the_next_plan(*, fails: bool) -> None:
    async with Simulation(RepairableScenario.of(**WRITING, **LONG)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await _delete_during_the_job(stage)
            await asyncio.sleep(component_job.LIMIT - 60)
            assert await stage.until("deleted") == "deleted"
            events = (await stage.client.list(EVENTS, namespace=FLEET_LOCAL)).items
            owed = [one["message"] for one in events if one["reason"] == "UpgradeOwes"]
            assert sum("kubectl delete job" in text for text in owed) == 1
            assert await methods(simulation) == []
            following = replace(stage, name="next")
            await following.create_plan({**BY_VERSION, **({"version": "v1.7.0"} if fails else {})})
            await following.until_plan(lambda plan: COMPONENT_JOB in condition(plan, "Available")[2])
            # Both Jobs take that long.
            await asyncio.sleep(2 * LONG["durations"]["manifests"] - component_job.LIMIT)
            await (following.fail() if fails else following.succeed())
        assert await state(simulation) == ORIGINAL
        cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace=FLEET_LOCAL)
        assert ANNOTATION_LEDGER not in objects.annotations_of(cluster)
