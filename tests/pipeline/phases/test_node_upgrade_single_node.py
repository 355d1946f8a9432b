"""The node upgrade of an only node."""

from __future__ import annotations

import pytest

from tests.support.harvester import RELEASE
from tests.support.node_upgrade import COMPLETE, OPTIONS, PENDING, POST, NodeUpgradeRun
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, LONGHORN_SETTINGS, NODES, PROVISIONING_CLUSTERS, UPGRADE_PLANS
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.phases.base import Completed, Failed, Waiting


@pytest.mark.rule(
    "api: pendingOSImage on a Node is the OS expected after its reboot",
    "nodes: a single node is upgraded by one Job, single-node-upgrade",
    "nodes: when its Job completes a single node is WaitingReboot and has pendingOSImage",
    "nodes: a Ready single node with the release's OS is SingleNodeUpgraded without pendingOSImage",
    "nodes: the phase waits until the single node is SingleNodeUpgraded",
    "pipeline: NodeUpgrade completes when every node is PostDrained or SingleNodeUpgraded",
)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record but the last"])
async def test_one_job_does_all_of_it(stage: NodeUpgradeRun, record: bool) -> None:  # noqa: FBT001  # a table
    await stage.set_up("n1")
    await stage.enter()
    await stage.run(record=record)
    assert await stage.cluster.names(JOBS) == ["up-node-upgrade-single-node-upgrade-n1"]
    await stage.finish("n1", "single-node-upgrade", COMPLETE)
    outcome = await stage.run()
    rebooting = f"n1: rebooting from Harvester v1.6.1 into {RELEASE['os']}; check its console if this lasts"
    assert outcome == Waiting(message=f"{rebooting} (0 of 1 nodes done)")
    assert await stage.states() == {"n1": "WaitingReboot"}
    assert objects.annotations_of(await stage.cluster.find(NODES, "n1"))[PENDING] == RELEASE["os"]
    await stage.reboot("n1")
    assert await stage.run() == Completed()
    assert await stage.states() == {"n1": "SingleNodeUpgraded"}
    assert PENDING not in objects.annotations_of(await stage.cluster.find(NODES, "n1"))
    assert len(await stage.cluster.names(JOBS)) == 1


@pytest.mark.rule("nodes: on a single node the Rancher cluster is not patched and no hook is acknowledged")
async def test_rancher_cluster_is_neither_patched_nor_recorded(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    before = await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
    await stage.enter()
    await stage.run()
    assert await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local") == before
    plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
    assert "provisionGeneration" not in objects.status(plan)
    assert objects.annotations_of(plan) == {}


@pytest.mark.rule("nodes: the interval is raised on a single node, too")
async def test_interval_is_raised_on_a_single_node(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    name = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
    await stage.cluster.put(LONGHORN_SETTINGS, {"metadata": name, "value": "600"})
    await stage.enter()
    setting = await stage.cluster.find(LONGHORN_SETTINGS, "replica-replenishment-wait-interval", "longhorn-system")
    assert setting["value"] == "1800"


@pytest.mark.rule("pipeline: NodeUpgrade waits until Rancher has removed every post-drain annotation")
async def test_phase_waits_until_rancher_removes_the_hook(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.enter()
    await stage.run()
    await stage.finish("n1", "single-node-upgrade", COMPLETE)
    await stage.reboot("n1")
    await stage.rancher("n1", post="{}")
    hook = f"n1: rke.cattle.io/post-drain on Secret fleet-local/s-n1 does not name {POST}"
    waits = f"{hook}; the controller that set it must acknowledge or remove it (1 of 1 nodes done)"
    assert await stage.run() == Waiting(message=waits)
    await stage.rancher("n1", post=None)
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: on a single node the Rancher cluster is not patched and no hook is acknowledged")
async def test_stale_hook_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.rancher("n1", pre=OPTIONS, post=OPTIONS)
    await stage.enter()
    await stage.run()
    assert await stage.cluster.names(JOBS) == ["up-node-upgrade-single-node-upgrade-n1"]
    assert await stage.acknowledgements("n1") == {}
    await stage.finish("n1", "single-node-upgrade", COMPLETE)
    await stage.reboot("n1")
    outcome = await stage.run()
    assert isinstance(outcome, Waiting)
    assert "rke.cattle.io/post-drain on Secret fleet-local/s-n1 is pending since an earlier upgrade" in outcome.message
    assert await stage.acknowledgements("n1") == {}


async def test_node_that_joins_before_the_phase_takes_part(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    ctx = await stage.context()
    ctx.status["singleNode"] = "n1"
    await ctx.persist()
    await stage.enter()
    await stage.run()
    plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
    assert "singleNode" not in objects.status(plan)
    assert await stage.generation() == 5


async def test_node_that_remains_alone_is_upgraded_by_one_job(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.enter()
    assert objects.status(await stage.cluster.client.get(UPGRADE_PLANS, "up"))["singleNode"] == "n1"


async def test_node_that_joins_later_changes_nothing(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.enter()
    await stage.run()
    await stage.cluster.nodes("n2")
    await stage.machine("n2")
    await stage.rancher("n2", pre=OPTIONS)
    await stage.run()
    assert await stage.states() == {"n1": "SingleNodeUpgrading"}
    await stage.finish("n1", "single-node-upgrade", COMPLETE)
    await stage.reboot("n1")
    assert await stage.run() == Completed()
    assert await stage.generation() == 4


async def test_missing_single_node_is_an_error(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.enter()
    await stage.run()
    await stage.cluster.client.delete(NODES, "n1")
    with pytest.raises(BadCluster, match="Node n1 does not exist"):
        await stage.run()


@pytest.mark.rule(
    "api: a failed single-node upgrade fails the plan",
    'nodes: the plan fails with "node NAME upgrade failed: CAUSE"',
    "nodes: CAUSE is the message of the Job's condition",
)
async def test_failed_job_fails_the_plan(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.enter()
    await stage.run()
    reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no luck"}
    await stage.finish("n1", "single-node-upgrade", {"conditions": [reason], "failed": 3})
    assert await stage.run() == Failed(
        cause="node n1 upgrade failed: Job harvester-system/up-node-upgrade-single-node-upgrade-n1 failed: "
        "BackoffLimitExceeded: no luck"
    )
    assert await stage.states() == {"n1": "SingleNodeUpgradeFailed"}
