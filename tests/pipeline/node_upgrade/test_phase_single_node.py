"""The node upgrade of an only node."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.harvester import RELEASE
from tests.support.cluster.nodes import OPTIONS, POST_DRAIN
from tests.support.managers.phase_results import shown
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun


@pytest.mark.rule(
    "api: pendingOSImage on a Node is the OS expected after its reboot",
    "nodes: a single node is upgraded by one Job, single-node-upgrade",
    "nodes: when its Job completes a single node is WaitingReboot and has pendingOSImage",
    "nodes: a Ready single node with the release's OS is SingleNodeUpgraded without pendingOSImage",
    "nodes: the phase waits until the single node is SingleNodeUpgraded",
    "pipeline: NodeUpgrade completes when every node is PostDrained or SingleNodeUpgraded",
)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record but the last"])
async def test_one_job_does_all_of_it(stage: NodeUpgradeRun, *, record: bool) -> None:
    await stage.set_up("n1")
    await stage.enter()
    await stage.run(record=record)
    assert await stage.jobs() == ["single-node-upgrade-n1"]
    outcome = await stage.complete("n1", "single-node-upgrade")
    assert shown(outcome) == Waiting(
        waits=(),
        message="n1: rebooting. If it takes over 30 min: Find out on node n1 whether it has rebooted: journalctl "
        "--list-boots --no-pager (0 of 1 nodes done)",
    )
    assert await stage.states() == {"n1": "WaitingReboot"}
    assert await stage.pending_os("n1") == RELEASE["os"]
    await stage.reboot("n1")
    assert await stage.run() == Completed()
    assert await stage.states() == {"n1": "SingleNodeUpgraded"}
    assert await stage.pending_os("n1") is None
    assert len(await stage.jobs()) == 1


@pytest.mark.rule("nodes: on a single node the Rancher cluster is not patched and no hook is acknowledged")
async def test_rancher_cluster_is_neither_patched_nor_recorded(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    before = await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
    await stage.enter()
    await stage.run()
    assert await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local") == before
    plan = await stage.plan()
    assert "provisionGeneration" not in objects.status(plan)
    assert objects.status(plan)["singleNode"] == "n1"
    assert objects.annotations_of(plan) == {}


async def test_single_node_does_not_wait_for_rancher(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.set_up("n1")
    await stage.enter()
    refused = AsyncMock(side_effect=Transient("no answer"))
    monkeypatch.setattr("upgrade_manager.pipeline.node_upgrade.phase.overrides.apply_overrides", refused)
    with pytest.raises(Transient):
        await stage.run()
    assert "Rancher" not in str(await stage.status())


@pytest.mark.rule("pipeline: NodeUpgrade waits until Rancher has removed every post-drain annotation")
async def test_phase_waits_until_rancher_removes_the_hook(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1")
    await stage.finish("n1", "single-node-upgrade")
    await stage.reboot("n1")
    await stage.rancher("n1", post="{}")
    hook = "n1: rke.cattle.io/post-drain of Secret fleet-local/s-n1 is acknowledged"
    waits = f"{hook}; waiting for Rancher to uncordon the node (1 of 1 nodes done)"
    assert shown(await stage.run()) == Waiting(waits=(), message=waits)
    await stage.rancher("n1", post=None)
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: on a single node the Rancher cluster is not patched and no hook is acknowledged")
async def test_stale_hook_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.rancher("n1", pre=OPTIONS, post=OPTIONS)
    await stage.enter()
    await stage.run()
    assert await stage.jobs() == ["single-node-upgrade-n1"]
    assert await stage.acknowledgements("n1") == {}
    await stage.finish("n1", "single-node-upgrade")
    await stage.reboot("n1")
    assert f"{POST_DRAIN} of Secret fleet-local/s-n1 is pending since an earlier upgrade" in await stage.waiting()
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("nodes: Initialize decides once that a cluster is a single node")
async def test_node_that_joins_before_the_phase_changes_nothing(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.cluster.nodes("n2")
    await stage.enter()
    await stage.run()
    assert (await stage.status())["singleNode"] == "n1"
    assert await stage.generation() == 4


async def test_node_that_joins_later_changes_nothing(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1")
    await stage.cluster.nodes("n2")
    await stage.machine("n2")
    await stage.request("n2", "pre")
    assert await stage.states() == {"n1": "SingleNodeUpgrading"}
    await stage.finish("n1", "single-node-upgrade")
    await stage.reboot("n1")
    assert await stage.run() == Completed()
    assert await stage.generation() == 4


async def test_missing_single_node_holds_the_phase(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1")
    await stage.client.delete(NODES, "n1")
    assert (await stage.waiting()).startswith("n1: its Node does not exist, but Machine fleet-local/m-n1 does")


@pytest.mark.rule(
    "api: a failed single-node upgrade fails the plan",
    'nodes: the plan fails with "Node NAME: WORK failed N times: CAUSE", and the command of the log',
    "nodes: CAUSE is the message of the Job's condition",
)
async def test_failed_job_fails_the_plan(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1")
    await stage.fail("n1", "single-node-upgrade", message="no luck")
    assert await stage.run() == Failed(
        cause="Node n1: upgrade failed 3 times: BackoffLimitExceeded: no luck",
        log="kubectl logs -n harvester-system job/up-node-upgrade-single-node-upgrade-n1",
        node="n1",
    )
    assert await stage.states() == {"n1": "SingleNodeUpgradeFailed"}
