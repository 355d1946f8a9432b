"""The phase as a whole; the test changes Rancher's objects, Jobs and Nodes step by step."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.harvester import RELEASE
from tests.support.cluster.nodes import OPTIONS, POST, POST_DRAIN, PRE, PRE_DRAIN, secret
from tests.support.managers.node_upgrade import COMPLETE, INTERVAL, NodeUpgradeRun, entry_of
from tests.support.managers.phase_results import shown
from upgrade_manager.api.keys import MANAGED_LABEL, JobType
from upgrade_manager.facts.drain_hooks import leftover_hook
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, JOBS, MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS, UPGRADE_PLANS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import BadCluster, ForeignObject, MissingObject
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.settings.upgrade_strategy import holds_nodes
from upgrade_manager.resources.jobs import JobSettings, node_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.toolkit import ToolkitImage


@pytest.mark.rule("nodes: managed nodes without a state become ImagePreloaded; others are unchanged")
async def test_nodes_begin_as_preloaded_and_none_moves_back(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.move(n1="PreDrained")
    await stage.cluster.nodes("unmanaged", **{MANAGED_LABEL: "false"})
    await stage.enter()
    assert await stage.states() == {"n1": "PreDrained", "n2": "ImagePreloaded"}


@pytest.mark.rule("nodes: an original value is recorded before it is changed")
async def test_nothing_changes_before_originals_are_recorded(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.put_interval()
    spec = {"enabled": True, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
    await stage.cluster.put(ADDONS, {"metadata": {"name": "descheduler", "namespace": "kube-system"}, "spec": spec})
    before = await stage.of_others()
    ctx = await stage.context()
    # The plan changes meanwhile, so that the record conflicts.
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"metadata": {"labels": {"touched": "yes"}}}))
    await stage.phase.enter(ctx)
    with pytest.raises(Conflict):
        await stage.phase.run(ctx)
    assert await stage.of_others() == before


@pytest.mark.rule(
    "api: replica-replenishment-wait-interval on the plan is Longhorn's original value",
    "nodes: Longhorn's replica-replenishment-wait-interval is raised to 1800",
    "nodes: the interval is raised on a single node, too",
    "nodes: the interval's original value is recorded on the plan",
    "nodes: a crash neither loses an original value nor records the override as one",
)
async def test_original_is_recorded_once_before_the_change(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.put_interval()
    await stage.enter()
    for _ in range(3):
        await stage.run(record=False)
    assert objects.annotations_of(await stage.plan())[f"management.harvesterhci.io/{INTERVAL}"] == "600"
    (entry,) = (await stage.status())["ledger"]
    assert (entry["original"], entry["applied"]) == ("600", "1800")
    assert await stage.interval() == "1800"


async def test_missing_rancher_cluster_blocks_the_phase(stage: NodeUpgradeRun) -> None:
    await stage.cluster.nodes("n1", "n2")
    await stage.cluster.plan(status={"releaseMetadata": RELEASE})
    with pytest.raises(MissingObject):
        await stage.enter()


@pytest.mark.rule(
    "api: pendingOSImage on a Node is the OS expected after its reboot",
    "api: pre-hook and post-hook on a machine-plan Secret copy Rancher's pre-drain and post-drain",
    "nodes: the cluster is patched once when the manager crashes between patch and record",
    "nodes: when the pre-drain Job completes the node is PreDrained and the hook is acknowledged verbatim",
    "nodes: when the post-drain Job completes the node is WaitingReboot and has pendingOSImage",
    "nodes: a Ready node with the release's OS is PostDrained",
    "nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched",
    "nodes: the post-drain hook is acknowledged only when the node is PostDrained",
    "pipeline: NodeUpgrade completes when every node is PostDrained or SingleNodeUpgraded",
)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "killed before every record but the last"])
async def test_node_passes_both_hooks_and_the_reboot(stage: NodeUpgradeRun, *, record: bool) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    for node in ("n1", "n2"):
        await stage.run(record=record)
        assert await stage.generation() == 5
        await stage.request(node, "pre", record=record)
        assert await stage.acknowledgements(node) == {}
        await stage.complete(node, "pre-drain", record=record)
        assert await stage.acknowledgements(node) == {PRE: OPTIONS}
        await stage.request(node, "post", record=record)
        await stage.complete(node, "post-drain")
        assert (await stage.states())[node] == "WaitingReboot"
        assert await stage.pending_os(node) == RELEASE["os"]
        assert await stage.acknowledgements(node) == {PRE: OPTIONS}
        await stage.reboot(node)
        assert await stage.waiting()
        assert await stage.acknowledgements(node) == {PRE: OPTIONS, POST: OPTIONS}
        assert await stage.pending_os(node) is None
        await stage.rancher(node, pre=None, post=None)
    assert await stage.run() == Completed()
    assert await stage.states() == {"n1": "PostDrained", "n2": "PostDrained"}
    assert await stage.generation() == 5
    assert len(await stage.jobs()) == 4


@pytest.mark.rule("nodes: the phase waits until all nodes are PostDrained")
@pytest.mark.parametrize(
    "state", ["ImagePreloaded", "UpgradePaused", "PreDraining", "PreDrained", "PostDraining", "WaitingReboot"]
)
async def test_phase_waits_for_every_node(stage: NodeUpgradeRun, state: str) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2=state)
    assert (await stage.waiting()).endswith("(1 of 2 nodes done)")
    await stage.move(n2="PostDrained")
    assert await stage.run() == Completed()


@pytest.mark.rule(
    "nodes: the phase waits until no Secret has a post-drain hook",
    "pipeline: NodeUpgrade waits until Rancher has removed every post-drain annotation",
)
async def test_phase_waits_until_rancher_removes_the_hook(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    await stage.rancher("n1", post=OPTIONS)
    hook = "n1: rke.cattle.io/post-drain of Secret fleet-local/s-n1"
    waits = f"{hook} is acknowledged; waiting for Rancher to uncordon the node (2 of 2 nodes done)"
    for _ in range(2):
        assert shown(await stage.run()) == Waiting(waits=(), message=waits)
        assert await stage.acknowledgements("n1") == {POST: OPTIONS}
    await stage.rancher("n1", post=None)
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: a post-drain hook that delays the phase is reported with node, Secret, state and next step")
async def test_remaining_hooks_are_reported_with_node_and_state(stage: NodeUpgradeRun) -> None:
    nodes = ("n1", "n2", "n4", "n5")
    await stage.begin(*nodes)
    await stage.move(**dict.fromkeys(nodes, "PostDrained"))
    await stage.machine("n3")
    for node in (*nodes, "n3"):
        await stage.rancher(node, post="{}" if node == "n2" else OPTIONS)
    place = "rke.cattle.io/post-drain of Secret fleet-local"
    assert await stage.waiting() == (
        f"n1: {place}/s-n1 is acknowledged; waiting for Rancher to uncordon the node; "
        f"n2: {place}/s-n2 is acknowledged; waiting for Rancher to uncordon the node; "
        f"n3: {place}/s-n3 is pending, but the node takes no part: its Node does not exist, but Machine "
        f"fleet-local/m-n3 does (acknowledge it: {leftover_hook('s-n3', 'rke.cattle.io/post-drain')}); "
        "2 more (4 of 4 nodes done)"
    )
    await stage.rancher("n2", post=None)
    assert [(await stage.acknowledgements(node)).get(POST) for node in nodes] == [OPTIONS, None, OPTIONS, OPTIONS]


@pytest.mark.rule("nodes: acknowledging changes two annotations of the Secret, whose data is never read")
async def test_acknowledgement_changes_two_annotations(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    data = {"plan": "e30=", "appliedPlan": "e30="}
    await stage.patch_secret("n1", {"data": data, "metadata": {"annotations": {"other": "x"}}})
    await stage.enter()
    await stage.run()
    await stage.request("n1", "pre")
    await stage.finish("n1", "pre-drain")
    before = await stage.secret("n1")
    await stage.run()
    after = await stage.secret("n1")
    assert objects.annotations_of(after).pop(PRE) == OPTIONS
    plan = objects.uid(await stage.plan())
    assert objects.annotations_of(after).pop("management.harvesterhci.io/acknowledged-request") == f"{plan} 1"
    for one in (before, after):
        objects.metadata(one).pop("resourceVersion")
        objects.metadata(one).pop("managedFields", None)
    assert after == before


@pytest.mark.rule("nodes: status.provisionGeneration is recorded before the Rancher cluster is patched")
async def test_generation_is_recorded_before_the_patch(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.rancher("n1", pre=OPTIONS)
    with monkeypatch.context() as refusing:
        refusing.setattr(ReconcileContext, "persist", AsyncMock(side_effect=Conflict("changed meanwhile")))
        for _ in range(2):
            with pytest.raises(Conflict):
                await stage.run()
    assert await stage.generation() == 4
    assert await stage.jobs() == []
    await stage.run()
    assert (await stage.status())["provisionGeneration"] == await stage.generation() == 5
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]


@pytest.mark.rule(
    "api: a failed pre-drain fails the plan",
    'nodes: the plan fails with "Node NAME: WORK failed N times: CAUSE", and the command of the log',
    "nodes: when a node fails the states of other nodes are unchanged",
    "pipeline: NodeUpgrade fails when a node has failed",
)
async def test_failure_names_node_and_cause(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.fail("n1", "pre-drain")
    assert await stage.run() == Failed(
        cause="Node n1: pre-drain failed 3 times: BackoffLimitExceeded",
        log="kubectl logs -n harvester-system job/up-node-upgrade-pre-drain-n1",
        node="n1",
    )
    assert await stage.states() == {"n1": "PreDrainFailed", "n2": "ImagePreloaded"}
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("workloads: the node's message shows each failed attempt of a node Job that retries")
async def test_failed_attempts_are_reported_at_the_node(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.finish("n1", "pre-drain", {"failed": 2})
    assert "attempt 3 of 3" in await stage.waiting()
    assert (await stage.status())["nodeUpgradeStatuses"]["n1"]["message"] == "2 failed attempts"


@pytest.mark.rule("nodes: only Secrets of type machine-plan in fleet-local carry hooks")
@pytest.mark.parametrize(
    ("namespace", "type_"),
    [
        pytest.param("fleet-local", "Opaque", id="of another type"),
        pytest.param("harvester-system", "rke.cattle.io/machine-plan", id="elsewhere"),
    ],
)
async def test_other_secrets_are_ignored(stage: NodeUpgradeRun, namespace: str, type_: str) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    stray = secret("stray", "m-n1", **{PRE_DRAIN: OPTIONS, POST_DRAIN: OPTIONS})
    stray["metadata"]["namespace"] = namespace
    await stage.cluster.put(SECRETS, {**stray, "type": type_, "data": {}})
    await stage.run()
    assert await stage.jobs() == []
    await stage.move(n1="PostDrained", n2="PostDrained")
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched")
async def test_old_acknowledgements_are_removed_before_the_start(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: OPTIONS, POST: OPTIONS, "other": "x"}}})
    await stage.enter()
    await stage.run()
    assert objects.annotations_of(await stage.secret("n1")) == {"other": "x"}


@pytest.mark.rule("nodes: drain hooks that others remove are added again, without another generation")
async def test_hooks_removed_with_the_annotation_are_added_again(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    members = {"metadata": {"annotations": None}, "spec": {"rkeConfig": {"upgradeStrategy": None}}}
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(members), namespace="fleet-local")
    await stage.run()
    local = await stage.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
    assert holds_nodes(local["spec"]["rkeConfig"]["upgradeStrategy"])
    assert await stage.generation() == 5
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: a pending hook that does not name the manager's hook is not acknowledged")
async def test_hook_of_the_built_in_flow_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.rancher("n1", pre='{"preDrainHooks":[{"annotation":"harvesterhci.io/pre-hook"}]}')
    await stage.run()
    assert await stage.jobs() == []


@pytest.mark.rule(
    "nodes: a recorded node that cannot be observed while its Machine exists holds the phase",
    "nodes: a node that leaves, with its Machine, is reported by the event NodeLeft and blocks nothing",
)
async def test_deleted_node_holds_the_phase_with_its_machine(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    await stage.client.delete(NODES, "n2")
    reason = "its Node does not exist, but Machine fleet-local/m-n2 does. Start the node, or delete the Machine"
    assert await stage.waiting() == f"n2: {reason} (1 of 2 nodes done)"
    assert entry_of(await stage.status(), "n2") == {"state": "PostDrained", "message": reason}
    await stage.client.delete(MACHINES, "m-n2", namespace="fleet-local")
    assert await stage.run() == Completed()
    assert "NodeLeft" in [reason for reason, _ in stage.cluster.recorder.recorded]


@pytest.mark.rule("nodes: a managed label that is missing for a moment changes nothing")
async def test_node_without_its_label_holds_the_phase(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await _label(stage, "n2", managed=False)
    await stage.enter()
    assert await stage.states() == {"n1": "ImagePreloaded", "n2": "ImagePreloaded"}
    await stage.run()
    await stage.move(n1="PostDrained")
    reason = "it lacks the label harvesterhci.io/managed=true. Add it: kubectl label --overwrite node n2 "
    assert (await stage.waiting()).startswith(f"n2: {reason}")
    await _label(stage, "n2", managed=True)
    await stage.move(n2="PostDrained")
    assert await stage.run() == Completed()


async def _label(stage: NodeUpgradeRun, node: str, *, managed: bool) -> None:
    patch = MergePatch({"metadata": {"labels": {MANAGED_LABEL: "true" if managed else None}}})
    await stage.client.patch(NODES, node, patch)


@pytest.mark.rule("nodes: a node that joins is logged, blocks nothing and is upgraded when its hook is pending")
async def test_joined_node_takes_part_with_a_pending_hook(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.cluster.nodes("n3")
    await stage.machine("n3")
    await stage.run()
    assert "n3" not in await stage.states()
    await stage.request("n3", "pre")
    assert (await stage.states())["n3"] == "PreDraining"


@pytest.mark.rule("nodes: a Secret without Machine is logged and not fatal")
async def test_secret_without_machine_does_not_block_the_end(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.rancher("n2", post=OPTIONS)
    await stage.client.delete(MACHINES, "m-n2", namespace="fleet-local")
    await stage.move(n1="PostDrained", n2="PostDrained")
    assert await stage.run() == Completed()


async def test_missing_record_of_nodes_is_an_error(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    patch = MergePatch({"status": {"nodeUpgradeStatuses": None}})
    await stage.client.patch(UPGRADE_PLANS, "up", patch, subresource="status")
    with pytest.raises(BadCluster, match="lists no nodes"):
        await stage.run()


async def test_foreign_job_is_an_error(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    settings = JobSettings(image=ToolkitImage(repository="r", tag="t"), service_account="a")
    old = node_job(Owner(name="up", uid="old"), settings, node="n1", job_type=JobType.PRE_DRAIN)
    await stage.cluster.put(JOBS, old, status=COMPLETE)
    with pytest.raises(ForeignObject):
        await stage.request("n1", "pre")
    assert await stage.acknowledgements("n1") == {}
