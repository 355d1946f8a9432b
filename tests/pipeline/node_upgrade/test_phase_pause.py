"""The node upgrade with a list of nodes to hold back; between any two writes the manager may die."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hack.virtual_time import virtual_now
from tests.support.cluster.nodes import OPTIONS, PRE
from tests.support.managers.node_upgrade import PLACE, NodeUpgradeRun
from tests.support.managers.phase_results import shown
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, MACHINES, NODES, UPGRADE_PLANS
from upgrade_manager.pipeline.outcome import Waiting


async def listing(stage: NodeUpgradeRun, *nodes: str) -> None:
    patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": list(nodes)}}})
    await stage.client.patch(UPGRADE_PLANS, "up", patch)


async def suspend(stage: NodeUpgradeRun, node: str) -> Any:
    return objects.spec(await stage.cluster.find(JOBS, f"up-node-upgrade-pre-drain-{node}", PLACE)).get("suspend")


#: Virtual seconds of a long pause.
HOURS = 7200.0
FIELD = "spec.nodeUpgradeOption.pauseNodes"


async def begun(stage: NodeUpgradeRun, *nodes: str) -> None:
    await stage.begin("n1", "n2", "n3")
    await listing(stage, *nodes)


@pytest.mark.rule(
    "nodes: a listed node becomes UpgradePaused with a suspended Job when its hook is pending",
    "nodes: the hook of a paused node is not acknowledged",
    "workloads: a node Job is suspended only while the node is paused",
)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record"])
async def test_node_is_paused_and_resumed(stage: NodeUpgradeRun, *, record: bool) -> None:
    await begun(stage, "n1")
    await stage.rancher("n1", pre=OPTIONS)
    paused = f"n1 is paused (cordoned); remove it from {FIELD} to continue (0 of 3 nodes done)"
    for _ in range(3):
        outcome = await stage.run(record=record)
        assert await suspend(stage, "n1") is True
        assert shown(outcome) == Waiting(waits=(), message=paused)
        assert await stage.acknowledgements("n1") == {}
        assert (await stage.states())["n1"] == ("UpgradePaused" if record else "ImagePreloaded")
    await listing(stage)
    outcome = await stage.run(record=record)
    assert await suspend(stage, "n1") is False
    assert (await stage.states())["n1"] == "PreDraining"
    job = "Job harvester-system/up-node-upgrade-pre-drain-n1"
    assert shown(outcome) == Waiting(waits=(), message=f"n1: pre-drain {job}, attempt 1 of 3 (0 of 3 nodes done)")
    # It has started: listing it once more does not stop it.
    await listing(stage, "n1")
    await stage.run(record=record)
    assert await suspend(stage, "n1") is False
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}
    assert len(await stage.jobs()) == 1
    assert {reason for reason, _ in stage.warned()} == {"PauseIgnored"}


@pytest.mark.rule("nodes: a name may be listed during the run")
async def test_name_added_after_the_read_prevents_the_start(stage: NodeUpgradeRun) -> None:
    await begun(stage)
    await stage.rancher("n1", pre=OPTIONS)
    ctx = await stage.context()
    await listing(stage, "n1")
    with pytest.raises(Conflict):
        await stage.phase.run(ctx)
    assert await stage.jobs() == []
    await stage.run()
    assert await suspend(stage, "n1") is True


async def test_recorded_start_is_resumed_after_a_crash(stage: NodeUpgradeRun) -> None:
    await begun(stage, "n1")
    await stage.request("n1", "pre")
    await listing(stage)
    await stage.move(n1="PreDraining")
    await listing(stage, "n1")
    await stage.run()
    assert await suspend(stage, "n1") is False


async def test_deleted_suspended_job_is_recreated(stage: NodeUpgradeRun) -> None:
    await begun(stage, "n1")
    await stage.request("n1", "pre")
    job = "up-node-upgrade-pre-drain-n1"
    await stage.client.delete(JOBS, job, namespace=PLACE)
    await stage.run()
    assert await suspend(stage, "n1") is True
    await listing(stage)
    await stage.client.delete(JOBS, job, namespace=PLACE)
    await stage.run()
    assert not await suspend(stage, "n1")


@pytest.mark.rule("nodes: the Progressing message names paused nodes")
async def test_message_names_paused_and_running_nodes(stage: NodeUpgradeRun) -> None:
    await begun(stage, "n1", "n3")
    # A node that has joined takes the VMs of n2.
    await stage.cluster.nodes("n4")
    await stage.report("n4")
    for node in ("n1", "n2", "n3"):
        await stage.rancher(node, pre=OPTIONS)
    message = await stage.waiting()
    job = "Job harvester-system/up-node-upgrade-pre-drain-n2"
    paused = f"n1, n3 are paused (cordoned); remove them from {FIELD} to continue"
    assert await stage.states() == {"n1": "UpgradePaused", "n2": "PreDraining", "n3": "ImagePreloaded"}
    assert message.startswith("n1 is paused (cordoned); remove it from")
    assert f"n2: pre-drain {job}" in message
    await stage.complete("n2", "pre-drain")
    await stage.request("n2", "post")
    await stage.finish("n2", "post-drain")
    await stage.reboot("n2")
    await stage.run()
    assert shown(await stage.run()) == Waiting(waits=(), message=f"{paused} (1 of 3 nodes done)")


async def test_resumed_node_waits_for_the_node_in_progress(stage: NodeUpgradeRun) -> None:
    await begun(stage, "n1")
    await stage.rancher("n1", pre=OPTIONS)
    await stage.request("n2", "pre")
    await stage.run()
    await listing(stage)
    assert "n1: waiting until node n2 is upgraded" in await stage.waiting()
    assert await suspend(stage, "n1") is True


async def test_paused_node_blocks_the_others_only_while_it_is_missing(stage: NodeUpgradeRun) -> None:
    await begun(stage, "n1")
    await stage.request("n1", "pre")
    await stage.client.delete(NODES, "n1")
    await stage.rancher("n2", pre=OPTIONS)
    assert "n2: waiting for Node n1: its Node does not exist, but Machine" in await stage.waiting()
    assert (await stage.states())["n2"] == "ImagePreloaded"
    await stage.client.delete(MACHINES, "m-n1", namespace="fleet-local")
    await stage.run()
    assert (await stage.states())["n2"] == "PreDraining"


@pytest.mark.rule("blockers: a Job that was resumed is waited for since then")
async def test_job_is_waited_for_since_its_resumption(stage: NodeUpgradeRun) -> None:
    """The Job controller has not seen yet that the Job, which was suspended for hours, is resumed."""
    await begun(stage, "n1")
    await stage.request("n1", "pre")
    suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await stage.finish("n1", "pre-drain", {"conditions": [suspended]})
    await asyncio.sleep(HOURS)
    await listing(stage)
    await stage.run()
    resumed = virtual_now()
    result = await stage.run()
    assert isinstance(result, Waiting)
    assert [wait.since >= resumed for wait in result.waits if isinstance(wait, JobWait)] == [True]
