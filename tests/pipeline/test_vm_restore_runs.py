"""Whole upgrades in which virtual machines have to be shut down, and are started again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.kinds import INSTANCES, KUBEVIRTS, VIRTUAL_MACHINES
from hack.cluster import scenario as scenarios
from hack.simulation import Simulation
from tests.support.upgrade import BY_VERSION, UpgradeRun, condition
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, UPGRADE_PLANS

if TYPE_CHECKING:
    from hack.cluster.scenario import Scenario
    from tests.support.simulate import Simulate
    from upgrade_manager.kube.objects import Object

RESTORING: dict[str, Any] = {**BY_VERSION, "restoreVM": True}
#: The one cannot move, the other can.
FIXED: dict[str, Any] = {"name": "fixed", "node": "node-1", "migratable": False}
FREE: dict[str, Any] = {"name": "free", "node": "node-0"}
PLACE = "harvester-system"
JOB = "upgrade-node-upgrade-restore-vm-node-1"


def cluster(*machines: dict[str, Any], name: str = "three-nodes", **values: Any) -> Scenario:
    described = list(machines) or [FIXED, FREE]
    return scenarios.load(name).changed(vms={"count": 0, "machines": described}, **values)


async def strategy(simulation: Simulation, name: str = "fixed") -> str:
    found = await simulation.client().get(VIRTUAL_MACHINES, name, namespace="default")
    return str(objects.spec(found)["runStrategy"])


async def warnings(stage: UpgradeRun) -> list[str]:
    """Reasons of the manager's own Warning events."""
    events = [event for event in await stage.events() if event["source"]["component"] == "upgradeplan-controller"]
    return [event["reason"] for event in events if event["type"] == "Warning"]


async def restore_jobs(simulation: Simulation) -> list[Object]:
    jobs = (await simulation.client().list(JOBS, namespace=PLACE)).items
    return [job for job in jobs if objects.name(job).startswith("upgrade-")]


@pytest.mark.rule(
    "api: restoreVM restarts VMs that were shut down",
    "nodes: with restoreVM a rebooted node gets a restore-vm Job",
)
@pytest.mark.servers
async def test_vms_are_started_again_after_their_nodes_upgrade(simulate: Simulate) -> None:
    async with simulate(cluster()) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            assert await stage.until_ended() == SUCCEEDED
        listed = await simulation.client().get(CONFIG_MAPS, "upgrade-restore-vm", namespace=PLACE)
        assert listed["data"] == {"node-0": "", "node-1": "default/fixed", "node-2": ""}
        assert await strategy(simulation) == "Always"
        messages = [event["message"] for event in await stage.events("RestoreVMCompleted")]
        assert messages == ["Restored 1 VMs for node node-1 during upgrade upgrade, success: 1, failed: 0"]
        assert await warnings(stage) == []
        assert await restore_jobs(simulation) == []
    restored = [name for _, name in stage.ledger.created if "restore-vm" in name]
    assert restored == [JOB]


@pytest.mark.rule(
    "api: restoreVM restarts VMs that were shut down",
    "nodes: without restoreVM there is no restore-vm Job",
)
async def test_without_restore_vm_vms_stay_off() -> None:
    async with Simulation(cluster()) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            assert await stage.until_ended() == SUCCEEDED
        assert await strategy(simulation) == "Halted"
        assert (await simulation.client().list(CONFIG_MAPS, namespace=PLACE)).items == []
    assert not any("restore-vm" in name for _, name in stage.ledger.created)


@pytest.mark.rule("nodes: a witness gets no restore-vm Job")
async def test_witness_gets_no_restore_job() -> None:
    async with Simulation(cluster({**FIXED, "node": "node-0"}, FREE, name="witness")) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            await stage.until("NodeUpgrading")
            # The witness is in the list.
            name = "upgrade-restore-vm"
            body = {"metadata": {"name": name, "namespace": PLACE}, "data": {"node-2": "default/fixed"}}
            await simulation.client().create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **body})
            assert await stage.until_ended() == SUCCEEDED
    restored = [name for _, name in stage.ledger.created if "restore-vm" in name]
    assert restored == ["upgrade-node-upgrade-restore-vm-node-0"]


FAULTS = [
    pytest.param(
        {"faults": [{"work": "restore-vm", "message": "KubeVirt says no"}]}, "KubeVirt says no", id="it fails"
    ),
    pytest.param(
        {"vms": {"count": 0, "machines": [{**FIXED, "failing_starts": 99}]}},
        "1 of 1 VMs could not be started: default/fixed",
        id="KubeVirt refuses to start the VM",
    ),
    pytest.param({"faults": [{"work": "restore-vm", "hang": True}]}, "DeadlineExceeded", id="it never ends"),
]


@pytest.mark.rule(
    "nodes: a failed restore-vm Job records a Warning event",
    "nodes: a failed restore-vm Job fails neither node nor upgrade",
)
@pytest.mark.parametrize(("fault", "said"), FAULTS)
@pytest.mark.thin
async def test_restore_failure_is_one_warning(fault: dict[str, Any], said: str) -> None:
    async with Simulation(cluster().changed(**fault)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == ["RestoreVMFailed"]
        (event,) = [e for e in await stage.events("RestoreVMFailed") if e["source"]["component"] != "restore-vm"]
        assert said in event["message"]
        assert f"Job {PLACE}/{JOB}" in event["message"]
        assert f"kubectl get configmap -n {PLACE} upgrade-restore-vm" in event["message"]
        assert event["count"] == 1
        assert condition(await stage.plan(), "Degraded")[0] == "False"
        assert await restore_jobs(simulation) == []


async def test_temporary_refusal_is_not_a_failure() -> None:
    async with Simulation(cluster({**FIXED, "failing_starts": 1})) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == []
        assert await strategy(simulation) == "Always"


async def test_only_the_end_waits_for_restore_jobs() -> None:
    async with Simulation(cluster()) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        client = simulation.client()
        async with stage.life():
            await stage.create_plan(RESTORING)
            await stage.until("NodeUpgrading")
            patch = MergePatch({"status": {"phase": "Deploying"}})
            await client.patch(KUBEVIRTS, "kubevirt", patch, namespace=PLACE, subresource="status")
            await stage.until("CleanedUp")
            await stage.settle()
            plan = await stage.plan()
            assert objects.status(plan)["currentPhase"] == "CleanedUp"
            expected = f"Job {PLACE}/{JOB}: restarting VMs, attempt 1 of 3"
            assert condition(plan, "Progressing") == ("True", "CleanedUp", expected)
            assert await strategy(simulation) == "Halted"
            patch = MergePatch({"status": {"phase": "Deployed"}})
            await client.patch(KUBEVIRTS, "kubevirt", patch, namespace=PLACE, subresource="status")
            assert await stage.until_ended() == SUCCEEDED
        assert await strategy(simulation) == "Always"
        assert await warnings(stage) == []


async def test_unset_restore_vm_ends_the_wait() -> None:
    async with Simulation(cluster(faults=[{"work": "restore-vm", "hang": True}])) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            await stage.until("CleanedUp")
            await simulation.client().patch(UPGRADE_PLANS, stage.name, MergePatch({"spec": {"restoreVM": False}}))
            assert await stage.until_ended() == SUCCEEDED
        assert await restore_jobs(simulation) == []


@pytest.mark.parametrize(
    ("work", "kept"),
    [
        pytest.param("pre-drain", ["upgrade-node-upgrade-pre-drain-node-2"], id="with the next node"),
        pytest.param("image-cleanup", [], id="with the images"),
    ],
)
async def test_failed_upgrade_keeps_running_restore_jobs(work: str, kept: list[str]) -> None:
    faults = [{"work": "restore-vm", "hang": True}, {"work": work, "node": "node-2"}]
    impatient = {"backoff_limit": 0}
    described = cluster({**FIXED, "node": "node-0"}, faults=faults, upgrade_controller=impatient)
    async with Simulation(described) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            assert await stage.until_ended() == "Failed"
            await stage.settle()
        left = sorted(objects.name(job) for job in await restore_jobs(simulation))
        assert left == [*kept, "upgrade-node-upgrade-restore-vm-node-0"]
        assert "restore" not in condition(await stage.plan(), "Progressing")[2]


@pytest.mark.rule("nodes: with restoreVM a rebooted node gets a restore-vm Job")
async def test_single_nodes_vms_are_restored() -> None:
    async with Simulation("one-node") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(RESTORING)
            assert await stage.until_ended() == SUCCEEDED
        assert await warnings(stage) == []
        assert [await strategy(simulation, name) for name in ("vm-0", "vm-1")] == ["Always", "Always"]
        await stage.settle()
        assert len((await simulation.client().list(INSTANCES)).items) == 2
