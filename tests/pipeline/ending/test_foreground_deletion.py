"""A plan that is deleted in the foreground: the garbage collector ends no Pod that works on a node, or reads the ISO.

In that mode the garbage collector deletes every object with an ownerReference to the plan while the plan still exists,
before the manager's clean-up has seen the deletion.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pipeline.ending.test_orphaned_jobs import PLACE, WAITS, jobs, until_job
from tests.pipeline.ending.test_repository_handover import repository
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, node_states
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import SETTING_SERVER_VERSION
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, PODS, SETTINGS, UPGRADE_PLANS

pytestmark = pytest.mark.full

#: Seconds of a Job, in which the plan is deleted also by a busy machine.
_LONG = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A Job that runs when its plan is deleted."""

    #: The phase or the node state in which the plan is deleted.
    point: str
    #: The Job's name, without that of the plan; of a node that is in the state, {node}.
    job: str
    #: The work of the Job in the scenario's durations.
    work: str
    scenario: str = "three-nodes"
    #: True if the node was paused, so that its Job had the plan as owner until it was resumed.
    resumed: bool = False
    #: True if the deletion waits for the Job.
    awaited: bool = False


SINGLE = "node-upgrade-single-node-upgrade-{node}"
ROWS = [
    Row(point="PreDraining", job="node-upgrade-pre-drain-{node}", work="pre_drain"),
    Row(point="PostDraining", job="node-upgrade-post-drain-{node}", work="post_drain"),
    Row(point="SingleNodeUpgrading", job=SINGLE, work="single_node", scenario="one-node"),
    Row(point="ClusterUpgrading", job="cluster-upgrade", work="manifests", awaited=True),
    Row(point="PreDraining", job="node-upgrade-pre-drain-{node}", work="pre_drain", resumed=True),
    Row(point="SingleNodeUpgrading", job=SINGLE, work="single_node", scenario="one-node", resumed=True),
]


def _name(row: Row) -> str:
    return f"{row.point}{' after a pause' if row.resumed else ''}"


async def pod_of(stage: UpgradeRun, job: Object) -> str:
    """Return the uid of the Job's only Pod, which must not be in deletion."""
    found = (await stage.client.list(PODS, namespace=PLACE)).items
    (pod,) = [one for one in found if objects.owner_uid(one) == objects.uid(job)]
    assert not objects.is_deleting(pod)
    return objects.uid(pod)


async def running_job(stage: UpgradeRun, row: Row) -> Object:
    """Bring the plan to the row's point; return its Job, whose Pod runs."""
    if row.resumed:
        await stage.until_node("UpgradePaused")
        await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})
    await stage.reach(row.point)
    nodes = [name for name, state in node_states(await stage.plan()).items() if state == row.point]
    name = f"upgrade-{row.job.format(node=nodes[0] if nodes else '')}"
    return await until_job(stage, name, "ready")


async def runs(stage: UpgradeRun, job: Object, pod: str) -> None:
    """Check that the Job's first Pod runs, with the repository that it reads."""
    assert await pod_of(stage, job) == pod
    assert list(await repository(stage)) == ["Deployment", "Service", "VirtualMachineImage"]
    assert not any(map(objects.is_deleting, (await repository(stage)).values()))


async def is_awaited(stage: UpgradeRun, job: Object, pod: str) -> None:
    """Check that the deletion waits for the Job, whose first Pod runs to its end."""
    await stage.until_plan(lambda plan: WAITS in condition(plan, "Progressing")[2])
    await runs(stage, job, pod)
    assert await stage.until("deleted") == "deleted"
    # The last change of the Job.
    setting = await stage.client.get(SETTINGS, SETTING_SERVER_VERSION)
    assert setting["value"] == stage.simulation.scenario.release.harvester
    await stage.settle()
    assert (await repository(stage), await jobs(stage)) == ({}, [])


async def survives(stage: UpgradeRun, job: Object, pod: str) -> None:
    """Check that the Job's first Pod runs to its end, with the repository that it reads."""
    await runs(stage, job, pod)

    async def succeeded() -> Object | None:
        # The API server is unavailable while a single node reboots.
        with contextlib.suppress(Transient):
            found = await stage.client.get(JOBS, objects.name(job), namespace=PLACE)
            return found if objects.status(found).get("succeeded") else None
        return None

    ended: Object = await eventually(succeeded, seconds=900.0, pause=0.5)
    assert objects.uid(ended) == objects.uid(job)
    assert not objects.status(ended).get("failed")
    assert list(await repository(stage)) == ["Deployment", "Service", "VirtualMachineImage"]


@pytest.mark.rule("nodes: a Job that runs when its plan is deleted runs to its end, whatever the propagation policy")
@pytest.mark.servers
@pytest.mark.thin
@pytest.mark.parametrize("row", [pytest.param(row, id=_name(row)) for row in ROWS])
@pytest.mark.parametrize("is_alive", [True, False], ids=["with a manager", "before the manager sees it"])
async def test_running_pod_survives_a_foreground_deletion(simulate: Simulate, row: Row, *, is_alive: bool) -> None:
    scenario = RepairableScenario.of(row.scenario, durations={row.work: _LONG})
    async with simulate(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        pauses = list(scenario.nodes.names) if row.resumed else []
        async with stage.life() as life:
            await stage.create_plan({**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": pauses}})
            job = await running_job(stage, row)
            pod = await pod_of(stage, job)
            if not is_alive:
                await life.kill()
            await stage.client.delete(UPGRADE_PLANS, stage.name, propagation="Foreground")
            if is_alive:
                await outlives(stage, row, job, pod)
                return
        await stage.settle()
        assert await pod_of(stage, job) == pod
        async with stage.life(seed="successor"):
            await outlives(stage, row, job, pod)


async def outlives(stage: UpgradeRun, row: Row, job: Object, pod: str) -> None:
    """Check that the Job runs to its end, after the plan or with it."""
    if row.awaited:
        await is_awaited(stage, job, pod)
        return
    assert await stage.until("deleted") == "deleted"
    await stage.settle()
    await survives(stage, job, pod)


#: VMs that have to be shut down, and are slow to start again; the next node's upgrade fails meanwhile.
RESTORING: dict[str, Any] = {
    "vms": {"count": 0, "machines": [{"name": "vm-0", "node": "node-0", "migratable": False}]},
    # Within the 600 seconds of `until_job`.
    "durations": {"restore_vm": 500},
    **fault("pre-drain", SECOND),
}


@pytest.mark.rule("nodes: a Job that runs when its plan is deleted runs to its end, whatever the propagation policy")
async def test_restore_job_of_a_failed_plan_keeps_its_list(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**RESTORING)) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan({**BY_VERSION, "restoreVM": True})
            await stage.fail()
            job = await until_job(stage, "upgrade-node-upgrade-restore-vm-node-0", "ready")
            pod = await pod_of(stage, job)
            await stage.delete("Foreground")
            assert await pod_of(stage, job) == pod
            await stage.client.get(CONFIG_MAPS, restore_vm_config_map(stage.name), namespace=PLACE)
            ended = await until_job(stage, objects.name(job), "succeeded")
            assert objects.uid(ended) == objects.uid(job)
