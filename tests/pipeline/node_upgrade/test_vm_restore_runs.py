"""Whole upgrades in which virtual machines have to be shut down, and are started again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack import scenario as scenarios
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.managers.histories import others
from tests.support.managers.upgrade import BY_VERSION, condition, started
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    KUBEVIRTS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from tests.support.cluster.simulate import Simulate
    from tests.support.managers.upgrade import UpgradeRun
    from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.full

OFF = "VMs that were stopped for the upgrade are off; start them"
RESTORING: dict[str, Any] = {**BY_VERSION, "restoreVM": True}
#: The one cannot move, the other can.
FIXED: dict[str, Any] = {"name": "fixed", "node": "node-1", "migratable": False}
FREE: dict[str, Any] = {"name": "free", "node": "node-0"}
PLACE = "harvester-system"
JOB = "upgrade-node-upgrade-restore-vm-node-1"


def cluster(*machines: dict[str, Any], name: str = "three-nodes", **values: Any) -> Scenario:
    described = list(machines) or [FIXED, FREE]
    return scenarios.load(name).changed(vms={"count": 0, "machines": described}, **values)


async def strategy(stage: UpgradeRun, name: str = "fixed") -> str:
    found = await stage.client.get(VIRTUAL_MACHINES, name, namespace="default")
    return str(objects.spec(found)["runStrategy"])


async def warnings(stage: UpgradeRun) -> list[Object]:
    """Return the manager's Warning events."""
    events = [event for event in await stage.events() if event["source"]["component"] == "upgradeplan-controller"]
    return [event for event in events if event["type"] == "Warning"]


async def plan_jobs(stage: UpgradeRun) -> list[str]:
    jobs = (await stage.client.list(JOBS, namespace=PLACE)).items
    return sorted(objects.name(job) for job in jobs if objects.name(job).startswith("upgrade-"))


def restored(stage: UpgradeRun) -> list[str]:
    """Return the names of the restore-vm Jobs that were created."""
    return [name for name in stage.ledger.names("jobs") if "restore-vm" in name]


@pytest.mark.rule(
    "api: restoreVM restarts VMs that were shut down",
    "nodes: with restoreVM a rebooted node gets a restore-vm Job",
)
@pytest.mark.servers
async def test_vms_are_started_again_after_their_nodes_upgrade(simulate: Simulate) -> None:
    async with simulate(cluster()) as simulation, started(simulation, RESTORING) as stage:
        await stage.until_recorded("CleaningUp")
        listed = await stage.client.get(CONFIG_MAPS, "upgrade-restore-vm", namespace=PLACE)
        assert listed["data"] == {"node-0": "", "node-1": "default/fixed", "node-2": ""}
        await stage.succeed()
        assert others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items) == []
        assert await strategy(stage) == "Always"
        messages = [event["message"] for event in await stage.events("RestoreVMCompleted")]
        assert messages == ["Restored 1 VMs for node node-1 during upgrade upgrade, success: 1, failed: 0"]
        assert await warnings(stage) == []
        assert await plan_jobs(stage) == []
        assert restored(stage) == [JOB]


@pytest.mark.rule(
    "api: restoreVM restarts VMs that were shut down",
    "nodes: without restoreVM there is no restore-vm Job",
)
async def test_without_restore_vm_vms_stay_off_and_are_named() -> None:
    async with Simulation(cluster()) as simulation, started(simulation) as stage:
        plan = await stage.succeed()
        assert condition(plan, "Progressing")[2].endswith(f"(3 nodes). {OFF}: default/fixed")
        assert objects.status(plan)["ledger"] == []
        assert await warnings(stage) == []
        assert await strategy(stage) == "Halted"
        assert others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items) == []
        assert restored(stage) == []


@pytest.mark.rule("nodes: a ConfigMap PLAN-restore-vm of an earlier plan of that name is ignored")
async def test_stopped_vm_of_an_earlier_plan_stays_off() -> None:
    async with Simulation(cluster()) as simulation:
        client = simulation.client()
        metadata = {"name": "upgrade-restore-vm", "namespace": PLACE}
        data = {"node-0": "default/free", "node-1": "default/free"}
        await client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})
        halted = MergePatch({"spec": {"runStrategy": "Halted"}})
        await client.patch(VIRTUAL_MACHINES, "free", halted, namespace="default")
        await asyncio.sleep(60)
        async with started(simulation, RESTORING) as stage:
            await stage.succeed()
            assert [await strategy(stage, name) for name in ("fixed", "free")] == ["Always", "Halted"]
            assert others((await client.list(CONFIG_MAPS, namespace=PLACE)).items) == []


async def test_restore_job_survives_deletion_with_its_list() -> None:
    async with Simulation(cluster()) as simulation, started(simulation, RESTORING) as stage:
        patch = MergePatch({"status": {"phase": "Deploying"}})
        await stage.until("NodeUpgrading")
        await stage.client.patch(KUBEVIRTS, "kubevirt", patch, namespace=PLACE, subresource="status")
        await stage.until("CleanedUp")
        await stage.delete()
        patch = MergePatch({"status": {"phase": "Deployed"}})
        await stage.client.patch(KUBEVIRTS, "kubevirt", patch, namespace=PLACE, subresource="status")
        await asyncio.sleep(60)
        assert await strategy(stage) == "Always"
        # An hour after the Job.
        await asyncio.sleep(2 * 3600)
        assert await plan_jobs(stage) == []
        assert others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items) == []


@pytest.mark.rule("nodes: a witness gets no restore-vm Job")
async def test_witness_gets_no_restore_job() -> None:
    scenario = cluster({**FIXED, "node": "node-0"}, FREE, name="witness")
    async with Simulation(scenario) as simulation, started(simulation, RESTORING) as stage:
        await stage.until("NodeUpgrading")
        # The witness is in the list.
        metadata = {"name": "upgrade-restore-vm", "namespace": PLACE}
        await stage.client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"node-2": "default/fixed"}})
        await stage.succeed()
        assert restored(stage) == ["upgrade-node-upgrade-restore-vm-node-0"]


FAULTS = [
    pytest.param(
        {"faults": [{"work": "restore-vm", "message": "KubeVirt says no"}]}, "KubeVirt says no", id="it fails"
    ),
    pytest.param(
        {"vms": {"count": 0, "machines": [{**FIXED, "failing_starts": 10_000}]}},
        "unable to start VM fixed",
        id="KubeVirt refuses to start the VM",
    ),
    pytest.param({"faults": [{"work": "restore-vm", "hang": True}]}, "DeadlineExceeded", id="it never ends"),
]


@pytest.mark.rule(
    "nodes: a failed restore-vm Job records a Warning event",
    "nodes: a failed restore-vm Job fails neither node nor upgrade",
)
@pytest.mark.parametrize(("fault", "cause"), FAULTS)
@pytest.mark.thin
async def test_restore_failure_is_one_warning(fault: dict[str, Any], cause: str) -> None:
    async with Simulation(cluster().changed(**fault)) as simulation, started(simulation, RESTORING) as stage:
        plan = await stage.succeed()
        # A Job that hangs is slow before it fails.
        (event,) = [one for one in await warnings(stage) if one["reason"] != "JobSlow"]
        assert (event["reason"], event["count"]) == ("RestoreVMFailed", 1)
        assert cause in event["message"]
        assert f"Job {PLACE}/{JOB}" in event["message"]
        assert "Start the VMs that are off: default/fixed. Cause: " in event["message"]
        entry = objects.status(plan)["nodeUpgradeStatuses"]["node-1"]
        assert (entry["reason"], entry["message"]) == (event["reason"], event["message"])
        assert condition(plan, "Degraded")[0] == "False"
        assert await plan_jobs(stage) == []


async def test_temporary_refusal_is_not_a_failure() -> None:
    scenario = cluster({**FIXED, "failing_starts": 1})
    async with Simulation(scenario) as simulation, started(simulation, RESTORING) as stage:
        await stage.succeed()
        assert await warnings(stage) == []
        assert await strategy(stage) == "Always"


async def test_only_the_end_waits_for_restore_jobs() -> None:
    async def change_kubevirt(phase: str) -> None:
        patch = MergePatch({"status": {"phase": phase}})
        await stage.client.patch(KUBEVIRTS, "kubevirt", patch, namespace=PLACE, subresource="status")

    async with Simulation(cluster()) as simulation, started(simulation, RESTORING) as stage:
        await stage.until("NodeUpgrading")
        await change_kubevirt("Deploying")
        await stage.until("CleanedUp")
        await stage.settle()
        plan = await stage.plan()
        assert objects.status(plan)["currentPhase"] == "CleanedUp"
        expected = f"Job {PLACE}/{JOB}: restarting VMs, attempt 1 of 3"
        assert condition(plan, "Progressing") == ("True", "CleanedUp", expected)
        assert await strategy(stage) == "Halted"
        await change_kubevirt("Deployed")
        await stage.succeed()
        assert await strategy(stage) == "Always"
        assert await warnings(stage) == []


async def test_unset_restore_vm_ends_the_wait() -> None:
    scenario = cluster(faults=[{"work": "restore-vm", "hang": True}])
    async with Simulation(scenario) as simulation, started(simulation, RESTORING) as stage:
        await stage.until("CleanedUp")
        await stage.patch(spec={"restoreVM": False})
        await stage.succeed()
        assert await plan_jobs(stage) == []
        assert others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items) == []


@pytest.mark.rule("nodes: the ConfigMap PLAN-restore-vm is removed at the end, or goes with the Jobs that read it")
@pytest.mark.thin
async def test_unset_restore_vm_removes_the_list() -> None:
    async with Simulation(cluster()) as simulation, started(simulation, RESTORING) as stage:
        await stage.until("CleaningUp")
        assert others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items) != []
        await stage.patch(spec={"restoreVM": False})
        await stage.succeed()
        assert others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items) == []


@pytest.mark.thin
async def test_failed_upgrade_keeps_running_restore_jobs() -> None:
    faults = [{"work": "restore-vm", "hang": True}, {"work": "pre-drain", "node": "node-2"}]
    scenario = cluster({**FIXED, "node": "node-0"}, faults=faults, upgrade_controller={"backoff_limit": 0})
    async with Simulation(scenario) as simulation, started(simulation, RESTORING) as stage:
        plan = await stage.fail()
        kept = ["upgrade-node-upgrade-pre-drain-node-2", "upgrade-node-upgrade-restore-vm-node-0"]
        assert await plan_jobs(stage) == kept
        assert "restore" not in condition(plan, "Progressing")[2]


@pytest.mark.rule("nodes: the ConfigMap PLAN-restore-vm is removed at the end, or goes with the Jobs that read it")
async def test_failed_upgrade_names_the_stopped_vms() -> None:
    scenario = cluster(faults=[{"work": "post-drain", "node": "node-1"}])
    async with Simulation(scenario) as simulation, started(simulation, RESTORING) as stage:
        plan = await stage.fail()
        assert await strategy(stage) == "Halted"
        # The next attempt adds to the list.
        (kept,) = others((await stage.client.list(CONFIG_MAPS, namespace=PLACE)).items)
        assert objects.name(kept) == "upgrade-restore-vm"
        assert (
            "Start those that are off: default/fixed"
            in objects.status(plan)["nodeUpgradeStatuses"]["node-1"]["message"]
        )
        (message,) = [event["message"] for event in await stage.events("RestoreVMFailed")]
        assert message.endswith("Start those that are off: default/fixed")


@pytest.mark.rule("nodes: with restoreVM a rebooted node gets a restore-vm Job")
async def test_single_nodes_vms_are_restored() -> None:
    async with Simulation("one-node") as simulation, started(simulation, RESTORING) as stage:
        await stage.succeed()
        assert await warnings(stage) == []
        assert [await strategy(stage, name) for name in ("vm-0", "vm-1")] == ["Always", "Always"]
        assert len((await stage.client.list(VIRTUAL_MACHINE_INSTANCES)).items) == 2


async def test_unreadable_list_does_not_end_a_running_node_job() -> None:
    scenario = cluster(durations={"post_drain": 60})
    async with Simulation(scenario) as simulation, started(simulation, RESTORING) as stage:
        await stage.until_node("PostDraining", node="node-1")
        refusal = Refuse(status=403, reason="Forbidden", message="no permission")
        simulation.middleware.add(Rule(match=Match(verbs=("get",), resource="configmaps"), action=refusal))
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        assert await stage.until("deleted") == "deleted"
        await asyncio.sleep(20)
        job = await stage.client.get(JOBS, "upgrade-node-upgrade-post-drain-node-1", namespace=PLACE)
        assert objects.owner_uid(job) == ""


@pytest.mark.rule("blockers: a phase that waits names what for")
async def test_suspended_restore_is_named_until_it_is_resumed() -> None:
    async with Simulation(cluster()) as simulation, started(simulation, RESTORING) as stage:

        async def is_suspended() -> bool:
            jobs = (await stage.client.list(JOBS, namespace=PLACE)).items
            if JOB in map(objects.name, jobs):
                await stage.client.patch(JOBS, JOB, MergePatch({"spec": {"suspend": True}}), namespace=PLACE)
            return JOB in map(objects.name, jobs)

        await eventually(is_suspended, seconds=600, pause=0.1)
        plan = await stage.until_plan(lambda plan: condition(plan, "Stalled")[0] == "True")
        assert condition(plan, "Stalled")[1] == "JobSuspended"
        (blocker,) = objects.status(plan)["blockers"]
        assert blocker["name"] == JOB
        assert blocker["remedy"].startswith(f"Resume it: kubectl patch job -n {PLACE} {JOB} ")
        await stage.client.patch(JOBS, JOB, MergePatch({"spec": {"suspend": False}}), namespace=PLACE)
        await stage.succeed()
        assert await strategy(stage) == "Always"


@pytest.mark.rule("nodes: VMs of a node that Rancher drains again are started again")
async def test_vms_of_a_node_that_is_drained_again_run_at_the_end() -> None:
    # Rancher comes to node-1 last.
    spec = {**RESTORING, "nodeUpgradeOption": {"pauseNodes": ["node-1"]}}
    scenario = cluster({**FIXED, "node": "node-0"})
    async with Simulation(scenario) as simulation, started(simulation, spec) as stage:
        await stage.until_node("PostDrained", node="node-0")
        await stage.until_node("UpgradePaused", node="node-1")
        await stage.plan_again()
        await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})
        plan = await stage.succeed()
        assert condition(plan, "Progressing")[2].endswith("(3 nodes)")
        assert stage.ledger.names("jobs").count("upgrade-node-upgrade-pre-drain-node-0") > 1
        assert await strategy(stage) == "Always"
        assert await instance_phase(stage) == "Running"


@pytest.mark.rule("blockers: a VM that was stopped for the upgrade and does not run again is LedgerUnsettled")
async def test_vm_that_does_not_start_holds_the_success() -> None:
    async with Simulation(cluster()) as simulation, started(simulation, RESTORING) as stage:
        await stage.until_node("PostDrained", node="node-1")
        simulation.freezer.freeze("VirtualMachineController")
        plan = await stage.until_plan(lambda plan: "LedgerUnsettled" in reasons(plan), seconds=3600)
        (blocker,) = objects.status(plan)["blockers"]
        assert (blocker["kind"], blocker["namespace"], blocker["name"]) == ("VirtualMachine", "default", "fixed")
        simulation.freezer.thaw("VirtualMachineController")
        plan = await stage.succeed()
        assert await instance_phase(stage) == "Running"
        assert condition(plan, "Progressing")[2].endswith("(3 nodes)")


def reasons(plan: Object) -> list[str]:
    return [one["reason"] for one in objects.status(plan).get("blockers") or []]


async def instance_phase(stage: UpgradeRun) -> str:
    found = await stage.client.get(VIRTUAL_MACHINE_INSTANCES, "fixed", namespace="default")
    return str(objects.status(found)["phase"])
