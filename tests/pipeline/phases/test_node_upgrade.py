"""The phase as a whole; the test changes Rancher's objects, Jobs and Nodes step by step."""

from __future__ import annotations

import pytest

from tests.support.harvester import RELEASE
from tests.support.node_upgrade import COMPLETE, OPTIONS, PENDING, POST, PRE, NodeUpgradeRun
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SECRETS, UPGRADE_PLANS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.phases.base import Completed, Failed, Waiting


@pytest.mark.rule(
    "api: pendingOSImage on a Node is the OS expected after its reboot",
    "api: pre-hook and post-hook on a machine-plan Secret copy Rancher's pre-drain and post-drain",
    "nodes: the cluster is patched once when the manager crashes between patch and record",
    "nodes: when the pre-drain Job completes the node is PreDrained and the hook is acknowledged verbatim",
    "nodes: when the post-drain Job completes the node is WaitingReboot and has pendingOSImage",
    "nodes: a Ready node with the release's OS is PostDrained",
    "nodes: the post-drain hook is acknowledged only when the node is PostDrained",
    "pipeline: NodeUpgrade completes when every node is PostDrained or SingleNodeUpgraded",
)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record but the last"])
async def test_node_passes_both_hooks_and_the_reboot(stage: NodeUpgradeRun, record: bool) -> None:  # noqa: FBT001  # a table
    await stage.set_up("n1", "n2")
    await stage.enter()
    for node in ("n1", "n2"):
        await stage.run(record=record)
        assert await stage.generation() == 5
        await stage.rancher(node, pre=OPTIONS)
        await stage.run(record=record)
        assert await stage.acknowledgements(node) == {}
        await stage.finish(node, "pre-drain", COMPLETE)
        await stage.run(record=record)
        assert await stage.acknowledgements(node) == {PRE: OPTIONS}
        await stage.rancher(node, post=OPTIONS)
        await stage.run(record=record)
        await stage.finish(node, "post-drain", COMPLETE)
        await stage.run()
        assert (await stage.states())[node] == "WaitingReboot"
        assert objects.annotations_of(await stage.cluster.find(NODES, node))[PENDING] == RELEASE["os"]
        assert await stage.acknowledgements(node) == {PRE: OPTIONS}
        await stage.reboot(node)
        outcome = await stage.run()
        assert await stage.acknowledgements(node) == {PRE: OPTIONS, POST: OPTIONS}
        assert PENDING not in objects.annotations_of(await stage.cluster.find(NODES, node))
        assert isinstance(outcome, Waiting)
        await stage.rancher(node, pre=None, post=None)
    assert await stage.run() == Completed()
    assert await stage.states() == {"n1": "PostDrained", "n2": "PostDrained"}
    assert await stage.generation() == 5
    assert len(await stage.cluster.names(JOBS)) == 4


@pytest.mark.rule("nodes: the phase waits until all nodes are PostDrained")
@pytest.mark.parametrize(
    "state", ["ImagePreloaded", "UpgradePaused", "PreDraining", "PreDrained", "PostDraining", "WaitingReboot"]
)
async def test_phase_waits_for_every_node(stage: NodeUpgradeRun, state: str) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    ctx = await stage.context()
    ctx.status.move_node("n1", NodeState.POST_DRAINED)
    ctx.status.move_node("n2", NodeState(state))
    await ctx.persist()
    outcome = await stage.run()
    assert isinstance(outcome, Waiting)
    assert outcome.message.endswith("(1 of 2 nodes done)")
    ctx = await stage.context()
    ctx.status.move_node("n2", NodeState.POST_DRAINED)
    await ctx.persist()
    assert await stage.run() == Completed()


@pytest.mark.rule(
    "nodes: the phase waits until no Secret has a post-drain hook",
    "pipeline: NodeUpgrade waits until Rancher has removed every post-drain annotation",
)
async def test_phase_waits_until_rancher_removes_the_hook(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    ctx = await stage.context()
    for node in ("n1", "n2"):
        ctx.status.move_node(node, NodeState.POST_DRAINED)
    await ctx.persist()
    await stage.rancher("n1", post=OPTIONS)
    hook = "n1: rke.cattle.io/post-drain on Secret fleet-local/s-n1"
    waits = f"{hook} is acknowledged; waiting for Rancher to uncordon the node (2 of 2 nodes done)"
    for _ in range(2):
        assert await stage.run() == Waiting(message=waits)
        assert await stage.acknowledgements("n1") == {POST: OPTIONS}
    await stage.rancher("n1", post=None)
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: a post-drain hook that delays the phase is reported with node, Secret, state and next step")
async def test_remaining_hooks_are_reported_with_node_and_state(stage: NodeUpgradeRun) -> None:
    nodes = ("n1", "n2", "n3", "n4", "n5")
    await stage.set_up(*nodes)
    await stage.enter()
    await stage.run()
    ctx = await stage.context()
    for node in nodes:
        ctx.status.move_node(node, NodeState.POST_DRAINED)
        await stage.rancher(node, post="{}" if node == "n2" else OPTIONS)
    await ctx.persist()
    await stage.cluster.client.delete(NODES, "n3")
    outcome = await stage.run()
    assert isinstance(outcome, Waiting)
    place = "rke.cattle.io/post-drain on Secret fleet-local"
    assert outcome.message == (
        f"n1: {place}/s-n1 is acknowledged; waiting for Rancher to uncordon the node; "
        f"n2: {place}/s-n2 does not name {POST}; the controller that set it must acknowledge or remove it; "
        f"n3: {place}/s-n3 is pending, but the node does not exist or lacks harvesterhci.io/managed=true; remove it; "
        "2 more (4 of 4 nodes done)"
    )
    await stage.rancher("n2", post=None)
    assert [(await stage.acknowledgements(node)).get(POST) for node in nodes] == [OPTIONS, None, None, OPTIONS, OPTIONS]


@pytest.mark.rule("nodes: acknowledging changes one annotation of the Secret, whose data is never read")
async def test_acknowledgement_changes_one_annotation(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    data = MergePatch({"data": {"plan": "e30=", "appliedPlan": "e30="}, "metadata": {"annotations": {"other": "x"}}})
    await stage.cluster.client.patch(SECRETS, "s-n1", data, namespace="fleet-local")
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    await stage.run()
    await stage.finish("n1", "pre-drain", COMPLETE)
    before = await stage.cluster.find(SECRETS, "s-n1", "fleet-local")
    await stage.run()
    after = await stage.cluster.find(SECRETS, "s-n1", "fleet-local")
    assert objects.annotations_of(after).pop(PRE) == OPTIONS
    for secret in (before, after):
        objects.metadata(secret).pop("resourceVersion")
        objects.metadata(secret).pop("managedFields", None)
    assert after == before


@pytest.mark.rule("nodes: status.provisionGeneration is recorded before any hook is acknowledged")
async def test_generation_is_recorded_before_acknowledgements(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: ReconcileContext) -> bool:
        raise Conflict("changed meanwhile")

    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.rancher("n1", pre=OPTIONS)
    with monkeypatch.context() as refusing:
        refusing.setattr(ReconcileContext, "persist", refuse)
        for _ in range(2):
            with pytest.raises(Conflict):
                await stage.run()
    assert await stage.generation() == 5
    assert await stage.cluster.names(JOBS) == []
    await stage.run()
    plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
    assert objects.status(plan)["provisionGeneration"] == await stage.generation() == 5
    assert await stage.cluster.names(JOBS) == ["up-node-upgrade-pre-drain-n1"]


@pytest.mark.rule(
    "api: a failed pre-drain fails the plan",
    'nodes: the plan fails with "node NAME upgrade failed: CAUSE"',
    "nodes: when a node fails the states of other nodes are unchanged",
    "pipeline: NodeUpgrade fails when a node has failed",
)
async def test_failure_names_node_and_cause(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    await stage.run()
    reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    await stage.finish("n1", "pre-drain", {"conditions": [reason], "failed": 3})
    assert await stage.run() == Failed(
        cause="node n1 upgrade failed: Job harvester-system/up-node-upgrade-pre-drain-n1 failed: BackoffLimitExceeded"
    )
    assert await stage.states() == {"n1": "PreDrainFailed", "n2": "ImagePreloaded"}
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("workloads: the node's message shows each failed attempt of a node Job that retries")
async def test_failed_attempts_are_reported_at_the_node(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    await stage.run()
    await stage.finish("n1", "pre-drain", {"failed": 2})
    outcome = await stage.run()
    plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
    assert plan["status"]["nodeUpgradeStatuses"]["n1"]["message"] == "2 failed attempts"
    assert isinstance(outcome, Waiting)
    assert "attempt 3 of 3" in outcome.message
