"""Nodes that Rancher does not drain, or whose drain it has forgotten."""

from __future__ import annotations

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import NodeUpgradeRun
from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import LostHookWait, RefusedCordonWait
from upgrade_manager.blockers.wait import DrainWait, Wait
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.outcome import Completed, Waiting

OLD, NEW = "v1.32.4+rke2r1", "v1.33.5+rke2r1"
DRAIN_ERROR, DRAIN_OPTIONS = "rke.cattle.io/drain-error", "rke.cattle.io/drain-options"


async def waits(stage: NodeUpgradeRun) -> list[Wait]:
    result = await stage.run()
    assert isinstance(result, Waiting)
    return list(result.waits)


async def forget(stage: NodeUpgradeRun, node: str) -> None:
    """Let a user answer the hooks by hand: Rancher uncordons the node, and removes all annotations of the drain."""
    await stage.rancher(node, pre=None, post=None)
    await stage.patch_secret(node, {"metadata": {"annotations": {PRE: None, POST: None, DRAIN_OPTIONS: None}}})


@pytest.mark.rule("nodes: a node whose drain Rancher has forgotten is named, and holds no other node back")
@pytest.mark.parametrize("is_complete", [False, True], ids=["PreDraining", "PreDrained"])
async def test_forgotten_drain_is_named(stage: NodeUpgradeRun, *, is_complete: bool) -> None:
    await stage.begin("n1", "n2", "n3")
    await stage.request("n1", "pre")
    if is_complete:
        await stage.complete("n1", "pre-drain")
    await forget(stage, "n1")
    await stage.report("n1", os="Harvester v1.6.1", kubelet=NEW)
    found = [wait for wait in await waits(stage) if isinstance(wait, LostHookWait)]
    assert [wait.detail for wait in found] == ["n1: Rancher has removed its drain hooks before its upgrade ended"]
    assert "provisionGeneration" in remedy_text(found[0].remedies)
    await stage.request("n2", "pre")
    assert "pre-drain-n2" in await stage.jobs()


@pytest.mark.rule("nodes: a node whose drain Rancher has forgotten is named, and holds no other node back")
async def test_remedy_of_a_forgotten_drain_mends_it(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await forget(stage, "n1")
    await stage.run()
    await stage.request("n1", "pre")
    await stage.run()
    await stage.complete("n1", "pre-drain")
    await stage.request("n1", "post")
    await stage.complete("n1", "post-drain")
    await stage.reboot("n1")
    await stage.run()
    assert (await stage.states())["n1"] == "PostDrained"


@pytest.mark.rule("nodes: a reinstalled node that runs the release is done")
async def test_reinstalled_node_that_runs_the_release_is_done(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.client.delete(NODES, "n1")
    await stage.client.delete(MACHINES, "m-n1", namespace="fleet-local")
    await forget(stage, "n1")
    await stage.machine("n1", machine="m-new")
    await stage.cluster.nodes("n1")
    await stage.report("n1", kubelet=NEW)
    await stage.run()
    assert (await stage.states())["n1"] == "PostDrained"


@pytest.mark.rule("nodes: a node that Rancher cannot cordon is named at once, with the node to uncordon")
async def test_refused_cordon_is_named(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.cordon("n2", cordoned=True)
    error = "cordon error: admission webhook denied the request"
    await stage.patch_secret("n1", {"metadata": {"annotations": {DRAIN_OPTIONS: OPTIONS, DRAIN_ERROR: error}}})
    assert f"n1: Rancher cannot cordon it ({error})" in await stage.waiting()
    (wait,) = [wait for wait in await waits(stage) if isinstance(wait, RefusedCordonWait)]
    assert (wait.name, str(wait.remedies[0])) == ("n1", "Uncordon another node: kubectl uncordon n2")
    await stage.patch_secret("n1", {"metadata": {"annotations": {DRAIN_ERROR: None}}})
    assert not any(isinstance(wait, RefusedCordonWait) for wait in await waits(stage))


@pytest.mark.rule("blockers: no remedy uncordons a node whose drain has begun")
async def test_refused_cordon_leaves_held_nodes_cordoned(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2", "n3")
    for node in ("n2", "n3"):
        await stage.cordon(node, cordoned=True)
    await stage.rancher("n2", pre=OPTIONS)
    error = "cordon error: admission webhook denied the request"
    await stage.patch_secret("n1", {"metadata": {"annotations": {DRAIN_OPTIONS: OPTIONS, DRAIN_ERROR: error}}})
    (wait,) = [wait for wait in await waits(stage) if isinstance(wait, RefusedCordonWait)]
    assert [str(one) for one in wait.remedies] == ["Uncordon another node: kubectl uncordon n3"]
    await stage.cordon("n3", cordoned=False)
    (wait,) = [wait for wait in await waits(stage) if isinstance(wait, RefusedCordonWait)]
    assert [str(one) for one in wait.remedies] == ["Uncordon another node: kubectl uncordon n2"]
    # From here on no VM runs there, and Rancher may upgrade it.
    await stage.rancher("n2", pre=OPTIONS, post=OPTIONS)
    await stage.patch_secret("n2", {"metadata": {"annotations": {ANNOTATION_PRE_HOOK: OPTIONS}}})
    (wait,) = [wait for wait in await waits(stage) if isinstance(wait, RefusedCordonWait)]
    assert [(one.text, one.command) for one in wait.remedies] == [("Uncordon another node", "")]


@pytest.mark.rule("blockers: a drain that hangs is named, also on a node that is done")
async def test_drain_of_a_done_node_that_hangs_is_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    assert await stage.run() == Completed()
    await stage.request("n1", "pre")
    await stage.run()
    await stage.complete("n1", "pre-drain")
    assert [wait.node for wait in await waits(stage) if isinstance(wait, DrainWait)] == ["n1"]


@pytest.mark.rule("blockers: nodes that Rancher does not drain are one blocker, at once if Rancher has passed them")
@pytest.mark.parametrize(
    ("before", "after", "names", "is_certain"),
    [
        pytest.param((OLD, OLD, OLD), (NEW, NEW, OLD), "n1, n2", True, id="another node is older"),
        pytest.param((OLD, OLD, OLD), (NEW, NEW, NEW), "n1, n2, n3", True, id="no node is older"),
        pytest.param((NEW, NEW, OLD), (NEW, NEW, NEW), "n3", True, id="two ran it before"),
        pytest.param((NEW, NEW, OLD), (NEW, NEW, OLD), "n1, n2", False, id="Rancher drains them for the generation"),
        pytest.param((NEW, NEW, NEW), (NEW, NEW, NEW), "n1, n2, n3", False, id="same Kubernetes"),
    ],
)
async def test_undrained_nodes_are_one_wait(
    stage: NodeUpgradeRun, before: tuple[str, ...], after: tuple[str, ...], names: str, *, is_certain: bool
) -> None:
    await begin_with(stage, before)
    await report_all(stage, after)
    (wait,) = await waits(stage)
    assert isinstance(wait, LostHookWait)
    assert (wait.name, wait.is_certain, wait.detail.partition(":")[0]) == ("local", is_certain, names)
    generation = MergePatch({"spec": {"rkeConfig": {"provisionGeneration": 9}}})
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", generation, namespace="fleet-local")
    (wait,) = await waits(stage)
    assert isinstance(wait, LostHookWait)
    # As the remedy asks: Rancher drains all nodes again.
    assert not wait.is_certain


async def begin_with(stage: NodeUpgradeRun, kubelets: tuple[str, ...]) -> None:
    """Begin the phase with these versions of Kubernetes."""
    await stage.set_up("n1", "n2", "n3")
    await report_all(stage, kubelets)
    await stage.enter()
    await stage.run()


async def report_all(stage: NodeUpgradeRun, kubelets: tuple[str, ...]) -> None:
    for node, kubelet in zip(("n1", "n2", "n3"), kubelets, strict=True):
        await stage.report(node, os="Harvester v1.6.1", kubelet=kubelet)


@pytest.mark.parametrize(("third", "is_certain"), [(OLD, True), (NEW, False)], ids=["another is older", "none is"])
async def test_plan_without_a_record_is_certain_by_an_older_node(
    stage: NodeUpgradeRun, third: str, *, is_certain: bool
) -> None:
    """An earlier version of the manager has begun the plan."""
    await begin_with(stage, (OLD, OLD, OLD))
    ctx = await stage.context()
    ctx.status["sameKubernetes"] = None
    await ctx.persist()
    await report_all(stage, (NEW, NEW, third))
    (wait,) = await waits(stage)
    assert isinstance(wait, LostHookWait)
    assert wait.is_certain is is_certain


@pytest.mark.rule("nodes: a node whose drain Rancher has forgotten is named, and holds no other node back")
@pytest.mark.parametrize(("kubelet", "is_certain"), [(NEW, True), (OLD, False)])
async def test_forgotten_drain_is_certain_with_the_new_kubernetes(
    stage: NodeUpgradeRun, kubelet: str, *, is_certain: bool
) -> None:
    await begin_with(stage, (OLD, OLD, OLD))
    await stage.request("n1", "pre")
    await forget(stage, "n1")
    await stage.report("n1", os="Harvester v1.6.1", kubelet=kubelet)
    (wait,) = [wait for wait in await waits(stage) if isinstance(wait, LostHookWait)]
    assert wait.is_certain is is_certain


@pytest.mark.rule("nodes: a pending hook of a node that Rancher has upgraded undrained is acknowledged and named")
@pytest.mark.parametrize(
    ("before", "is_named"), [(OLD, True), (NEW, False)], ids=["upgraded meanwhile", "same Kubernetes"]
)
async def test_pending_hook_of_an_upgraded_node_is_named(stage: NodeUpgradeRun, before: str, *, is_named: bool) -> None:
    await begin_with(stage, (before, OLD, OLD))
    await stage.request("n1", "pre")
    await stage.report("n1", os="Harvester v1.6.1", kubelet=NEW)
    await stage.run()
    entry = (await stage.status())["nodeUpgradeStatuses"]["n1"]
    assert (entry["state"], entry.get("reason") == "UpgradedUndrained") == ("PreDraining", is_named)
    await stage.complete("n1", "pre-drain")
    assert PRE in await stage.acknowledgements("n1")
