"""VMs whose migration fails, in whole upgrades: `spec.nodeUpgradeOption.onMigrationFailure` and the VM's annotation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from hack.actors.evacuation import EVACUATION
from hack.simulation import Simulation
from tests.support.cluster.launchers import INSTANCE, launch, protect, set_least
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.resumed_run import reviewed
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun
from upgrade_manager.api.blockers import Blocker, BlockerReason, read_blockers
from upgrade_manager.api.keys import ANNOTATION_ON_MIGRATION_FAILURE, HARVESTER_SYSTEM
from upgrade_manager.api.names import ledger_config_map
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    MIGRATIONS,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)

pytestmark = pytest.mark.full

OPTION = "onMigrationFailure"
#: Virtual seconds in which a user's decision counts.
SECONDS = 30.0
#: Looks at the plan, one a second, until its blockers are those that a test expects.
_LOOKS = 900
Decision: TypeAlias = Callable[[UpgradeRun, str], Awaitable[None]]


def scenario(*names: str) -> RepairableScenario:
    """Return a cluster with VMs of the first node whose evacuation KubeVirt repeats without success."""
    machines = [{"name": name, "node": "node-0", "failing_migrations": 1000} for name in names]
    return RepairableScenario.of(operators=True, vms={"count": 0, "machines": machines})


def spec(policy: str = "") -> dict[str, Any]:
    return {**BY_VERSION, **({"nodeUpgradeOption": {OPTION: policy}} if policy else {})}


async def begun(simulation: Simulation, options: RunOptions = OWN) -> UpgradeRun:
    return replace(await UpgradeRun.set_up(simulation), options=options)


async def change(stage: UpgradeRun, name: str, body: Object) -> None:
    await stage.client.patch(VIRTUAL_MACHINES, name, MergePatch(body), namespace="default")


async def annotate(stage: UpgradeRun, name: str, value: str) -> None:
    await change(stage, name, {"metadata": {"annotations": {ANNOTATION_ON_MIGRATION_FAILURE: value}}})


async def migrate(stage: UpgradeRun, name: str) -> None:
    """Let the VM arrive on another node, as a migration by its user does."""
    body = {"metadata": {"labels": {"kubevirt.io/nodeName": "node-2"}}, "status": {"nodeName": "node-2"}}
    await stage.client.patch(VIRTUAL_MACHINE_INSTANCES, name, MergePatch(body), namespace="default")
    for one in (await stage.client.list(MIGRATIONS)).items:
        if objects.spec(one)["vmiName"] == name and objects.annotations_of(one).get(EVACUATION):
            await stage.client.delete(MIGRATIONS, objects.name(one), namespace="default")


async def halted(stage: UpgradeRun) -> list[str]:
    """Return the VMs that are stopped."""
    found = (await stage.client.list(VIRTUAL_MACHINES)).items
    return sorted(objects.name(one) for one in found if objects.spec(one)["runStrategy"] == "Halted")


async def recorded(stage: UpgradeRun) -> list[str]:
    """Return the VMs that the upgrade has recorded before it stopped them."""
    name = ledger_config_map(stage.name)
    found = await stage.client.find(CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM) or {}
    in_status = [str(one["id"]) for one in objects.status(await stage.plan()).get("ledger") or []]
    keys = {*(found.get("data") or {}), *in_status}
    return sorted(key.rpartition(".")[2] for key in keys if key.startswith("StoppedVM."))


async def blockers(stage: UpgradeRun, *names: str) -> list[Blocker]:
    """Wait until these objects, and no others, are the plan's blockers."""
    found: list[Blocker] = []
    for _ in range(_LOOKS):
        found = read_blockers(objects.status(await stage.plan()).get("blockers"))
        if sorted(one.name for one in found) == sorted(names):
            return found
        await asyncio.sleep(1)
    raise AssertionError([one.message for one in found])


async def until_drained(stage: UpgradeRun) -> None:
    """Wait until the first node's Job has ended, for as long as a decision takes to count."""
    async with asyncio.timeout(SECONDS):
        await stage.until_node("PreDrained", node="node-0")


async def stop(stage: UpgradeRun, name: str) -> None:
    await change(stage, name, {"spec": {"runStrategy": "Halted"}})


async def annotate_stop(stage: UpgradeRun, name: str) -> None:
    await annotate(stage, name, "Stop")


async def set_stop(stage: UpgradeRun, _: str) -> None:
    await stage.patch(spec={"nodeUpgradeOption": {OPTION: "Stop"}})


@pytest.mark.rule("nodes: a VM whose migration fails is stopped by its user, by its annotation or by Stop alone")
@pytest.mark.parametrize(
    ("first", "second", "off", "by_upgrade"),
    [
        pytest.param(stop, set_stop, ["first", "second"], ["second"], id="stop-option"),
        pytest.param(migrate, annotate_stop, ["second"], ["second"], id="migration-annotation"),
    ],
)
@pytest.mark.thin
async def test_stuck_vms_wait_for_decisions(
    first: Decision, second: Decision, off: list[str], by_upgrade: list[str]
) -> None:
    async with Simulation(scenario("first", "second")) as simulation:
        stage = await begun(simulation)
        async with stage.life():
            await stage.create_plan(spec())
            found = await blockers(stage, "first", "second")
            assert {(str(one.reason), one.kind) for one in found} == {("MigrationStuck", "VirtualMachineInstance")}
            assert [one for one in found if f"virtctl stop {one.name} -n default" not in one.remedy] == []
            assert (await halted(stage), await recorded(stage)) == ([], [])
            await first(stage, "first")
            await blockers(stage, "second")
            assert await recorded(stage) == []
            await second(stage, "second")
            await until_drained(stage)
            assert (await halted(stage), await recorded(stage)) == (off, by_upgrade)
            # A VM that has moved does not leave its next node either.
            await annotate_stop(stage, "first")
            await stage.succeed()


@pytest.mark.rule("nodes: Stop, and Harvester's toolkit, stop each VM whose migration fails")
@pytest.mark.parametrize(
    ("options", "policy"),
    [
        pytest.param(RunOptions(), "", id="harvester"),
        pytest.param(OWN, "Stop", id="own-stop"),
        pytest.param(RunOptions(), "Stop", id="harvester-stop"),
    ],
)
@pytest.mark.thin
async def test_stop_needs_no_decision(options: RunOptions, policy: str) -> None:
    async with Simulation(scenario("left")) as simulation:
        stage = await begun(simulation, options)
        async with stage.life():
            await stage.create_plan(spec(policy))
            await stage.until_node("PreDrained", node="node-0")
            assert await halted(stage) == ["left"]
            assert "Stalled" not in {one["type"] for one in objects.status(await stage.plan())["conditions"]}
            await stage.succeed()


@pytest.mark.rule("nodes: the annotation of a VM comes before the plan's option")
async def test_annotation_keeps_a_vm_that_stop_would_stop() -> None:
    async with Simulation(scenario("left", "kept")) as simulation:
        stage = await begun(simulation)
        await annotate(stage, "kept", "Wait")
        async with stage.life():
            await stage.create_plan(spec("Stop"))
            await blockers(stage, "kept")
            assert await halted(stage) == ["left"]
            await change(stage, "kept", {"metadata": {"annotations": {ANNOTATION_ON_MIGRATION_FAILURE: None}}})
            await until_drained(stage)
            assert await halted(stage) == ["kept", "left"]


@pytest.mark.rule("nodes: a wait for a VM's user survives tries of the Job and restarts of the manager")
async def test_wait_survives_tries_and_restarts() -> None:
    async with Simulation(scenario("left")) as simulation:
        stage = await begun(simulation)
        async with stage.life() as life:
            await stage.create_plan(spec())
            (before,) = await blockers(stage, "left")
            await life.kill()
        for pod in (await stage.client.list(PODS, namespace=HARVESTER_SYSTEM)).items:
            if "-pre-drain-" in objects.name(pod):
                await stage.client.delete(PODS, objects.name(pod), namespace=HARVESTER_SYSTEM)
        async with stage.life(seed="second"):
            await asyncio.sleep(120)
            (after,) = await blockers(stage, "left")
            assert after.since == before.since
            assert await halted(stage) == []
            await annotate(stage, "left", "Stop")
            await until_drained(stage)
            assert await recorded(stage) == ["left"]


@pytest.mark.rule("control: a Job whose plan was deleted or replaced stops no VM, and does not reboot from a hold")
async def test_new_plan_of_that_name_stops_no_vm_of_the_old_job() -> None:
    async with Simulation(scenario("left")) as simulation:
        stage = await begun(simulation)
        async with stage.life() as life:
            await stage.create_plan(spec())
            await blockers(stage, "left")
            await life.kill()
        await stage.patch(metadata={"finalizers": None})
        await stage.delete()
        await annotate(stage, "left", "Stop")
        await stage.create_plan(spec("Stop"))
        await asyncio.sleep(120)
        assert await halted(stage) == []


@pytest.mark.rule("nodes: a plan with Harvester's toolkit that is to wait is refused before anything is changed")
async def test_wait_is_refused_without_the_webhook() -> None:
    async with Simulation(scenario("left")) as simulation:
        stage = await begun(simulation, RunOptions())
        async with stage.life():
            await stage.create_plan(spec("Wait"))
            plan = await stage.fail()
            conditions = {one["type"]: one["message"] for one in objects.status(plan)["conditions"]}
            assert "Harvester's toolkit (kind harvester) cannot wait" in conditions["Degraded"]
            assert objects.status(plan)["phaseTransitionTimestamps"][0]["phase"] == "Initializing"


async def test_wait_that_comes_later_is_reported_as_ignored() -> None:
    async with Simulation(scenario("left")) as simulation:
        stage = await begun(simulation, RunOptions())
        async with stage.life():
            await stage.create_plan(spec())
            await stage.until_recorded("ImagePreloading")
            await stage.patch(spec={"nodeUpgradeOption": {OPTION: "Wait"}})
            await stage.until_node("PreDrained", node="node-0")
            assert await halted(stage) == ["left"]
            found = [one["message"] for one in await stage.events("OptionIgnored")]
            assert len(found) == 1
            assert found[0].startswith("spec.nodeUpgradeOption.onMigrationFailure is Wait, and Harvester's toolkit")


@pytest.mark.rule("nodes: an invalid policy of a VM is named where the VM holds up its node, as by an event")
async def test_invalid_annotation_is_named_until_it_is_corrected() -> None:
    async with Simulation(scenario("db")) as simulation:
        stage = await begun(simulation)
        await annotate(stage, "db", "stop")
        async with stage.life():
            await stage.create_plan(spec("Stop"))
            (blocker,) = await blockers(stage, "db")
            assert blocker.reason == "MigrationStuck"
            assert f"its annotation {ANNOTATION_ON_MIGRATION_FAILURE} is 'stop', which is neither" in blocker.message
            assert len(await stage.events("AnnotationInvalid")) == 1
            assert await halted(stage) == []
            await annotate(stage, "db", "Stop")
            await until_drained(stage)


#: One that cannot move at all, and one whose migration fails.
FORBIDDEN = [
    {"name": "fixed", "node": "node-0", "migratable": False},
    {"name": "left", "node": "node-0", "failing_migrations": 99},
]


@pytest.mark.rule(
    "nodes: no VM is stopped against a user's PodDisruptionBudget, which KubeVirt's own are not",
    "nodes: Stop, and Harvester's toolkit, stop each VM whose migration fails",
)
async def test_budget_holds_up_the_stop_of_an_admitted_vm() -> None:
    scenario = RepairableScenario.of(operators=True, vms={"count": 0, "machines": FORBIDDEN})
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OWN
        for name in ("fixed", "left"):
            owner = await launch(stage.client, name, app=name, node="node-0")
            # KubeVirt's own, one for each VM.
            await protect(stage.client, f"kubevirt-{name}", least=1, owner=owner, **{INSTANCE: owner["uid"]})
        await protect(stage.client, "users", least=1, app="fixed")
        head = {"metadata": {"name": "upgrade"}}
        (denial,) = await reviewed(stage, {**head, "spec": spec("Stop")})
        assert denial.startswith("VirtualMachine default/fixed cannot be live-migrated")
        restoring = {**spec("Stop"), "restoreVM": True}
        assert await reviewed(stage, {**head, "spec": restoring}) == []
        async with stage.life():
            await stage.create_plan(restoring)
            (found,) = await blockers(stage, "users")
            assert (found.reason, found.kind) == (BlockerReason.EVICTION_FORBIDDEN, "PodDisruptionBudget")
            assert "default/fixed" in found.message
            assert (await halted(stage), await recorded(stage)) == ([], [])
            await set_least(stage.client, "users", 0)
            await stage.until_node("PreDrained", node="node-0")
            stopped = ["fixed", "left"]
            assert (await halted(stage), await recorded(stage)) == (stopped, stopped)
            await stage.succeed()
            assert await halted(stage) == []
