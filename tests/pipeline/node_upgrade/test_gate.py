"""The gate before a node's first Job and before its drain: each closed row holds the node back, and is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from upgrade_manager.api.keys import RKE_ETCD_ROLE, RKE_INIT_NODE, RKE_WORKER_ROLE, WITNESS_LABEL
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import TargetNodeWait
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.blockers.wait import Wait

NOW, RELEASE_KUBERNETES = "2026-01-01T00:00:00Z", "v1.33.5+rke2r1"


async def set_cluster(stage: NodeUpgradeRun, spec: dict[str, Any]) -> None:
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch({"spec": spec}), namespace="fleet-local")


async def patch_machine(stage: NodeUpgradeRun, name: str, body: dict[str, Any], *, subresource: str = "") -> None:
    await stage.client.patch(MACHINES, name, MergePatch(body), namespace="fleet-local", subresource=subresource)


async def not_ready(stage: NodeUpgradeRun) -> None:
    await stage.report("n2", os="Harvester v1.6.1", ready="Unknown")


async def ready(stage: NodeUpgradeRun) -> None:
    await stage.report("n2", os="Harvester v1.6.1")


async def lost(stage: NodeUpgradeRun) -> None:
    await stage.move(n2="PostDrained")
    await stage.report("n2", ready="False")


async def back(stage: NodeUpgradeRun) -> None:
    await stage.report("n2")


async def joining(stage: NodeUpgradeRun) -> None:
    await stage.machine("n4")


async def joined(stage: NodeUpgradeRun) -> None:
    await stage.cluster.nodes("n4")
    await stage.report("n4")


async def refuse_plan(stage: NodeUpgradeRun) -> None:
    applied = {"type": "PlanApplied", "status": "False", "message": "error applying plan", "lastTransitionTime": NOW}
    await patch_machine(stage, "m-n3", {"status": {"conditions": [applied]}}, subresource="status")


async def apply_plan(stage: NodeUpgradeRun) -> None:
    await patch_machine(stage, "m-n3", {"status": {"conditions": []}}, subresource="status")


async def uncordon(stage: NodeUpgradeRun) -> None:
    await stage.cordon("n1", cordoned=False)


async def cordon(stage: NodeUpgradeRun) -> None:
    await stage.cordon("n1", cordoned=True)


async def delete_machine(stage: NodeUpgradeRun) -> None:
    await patch_machine(stage, "m-n1", {"metadata": {"finalizers": ["example.com/held"]}})
    await stage.client.delete(MACHINES, "m-n1", namespace="fleet-local")


async def replace_machine(stage: NodeUpgradeRun) -> None:
    """Let another Machine take the node over, with the hook on its own Secret."""
    await stage.machine("n1", machine="m-new")
    await stage.client.patch(
        NODES, "n1", MergePatch({"metadata": {"annotations": {"cluster.x-k8s.io/machine": "m-new"}}})
    )
    await stage.rancher("n1", machine="m-new", pre=OPTIONS)
    # Until then the leaving Machine holds the cluster.
    await patch_machine(stage, "m-n1", {"metadata": {"finalizers": None}})


async def set_back(stage: NodeUpgradeRun) -> None:
    await set_cluster(stage, {"kubernetesVersion": "v1.32.4+rke2r1"})


async def set_again(stage: NodeUpgradeRun) -> None:
    await set_cluster(stage, {"kubernetesVersion": RELEASE_KUBERNETES})


async def lower(stage: NodeUpgradeRun) -> None:
    await set_cluster(stage, {"rkeConfig": {"provisionGeneration": 4}})


async def raise_again(stage: NodeUpgradeRun) -> None:
    await set_cluster(stage, {"rkeConfig": {"provisionGeneration": 5}})


Change = "Callable[[NodeUpgradeRun], Awaitable[None]]"
ROWS = [
    pytest.param(not_ready, ready, "UNAVAILABLE_NODE", "n2", "kubectl describe node n2", id="not begun, NotReady"),
    pytest.param(lost, back, "UNAVAILABLE_NODE", "n2", "kubectl describe node n2", id="done, NotReady"),
    pytest.param(joining, joined, "UNAVAILABLE_NODE", "n4", "Start the node, or delete", id="joining, no Node"),
    pytest.param(refuse_plan, apply_plan, "UNAVAILABLE_NODE", "n3", "rancher-system-agent", id="plan not applied"),
    pytest.param(uncordon, cordon, "UNCORDONED_NODE", "n1", "kubectl cordon n1", id="uncordoned"),
    pytest.param(
        delete_machine, replace_machine, "AMBIGUOUS_MACHINE", "m-n1", "-n fleet-local m-n1", id="Machine goes"
    ),
    pytest.param(set_back, set_again, "CHANGED_CLUSTER", "local", RELEASE_KUBERNETES, id="older Kubernetes"),
    pytest.param(lower, raise_again, "CHANGED_CLUSTER", "local", '"provisionGeneration":5', id="older generation"),
]


async def closed(stage: NodeUpgradeRun) -> list[Wait]:
    result = await stage.run()
    assert isinstance(result, Waiting)
    kinds = {WaitKind.UNAVAILABLE_NODE, WaitKind.UNCORDONED_NODE, WaitKind.AMBIGUOUS_MACHINE, WaitKind.CHANGED_CLUSTER}
    return [wait for wait in result.waits if wait.kind in kinds]


@pytest.mark.rule("nodes: a closed row of the gate holds back a node's first Job, and is a blocker with the object")
@pytest.mark.parametrize(("close", "open_", "kind", "name", "remedy"), ROWS)
async def test_closed_row_holds_the_start_back(  # a table
    stage: NodeUpgradeRun, close: Any, open_: Any, kind: str, name: str, remedy: str
) -> None:
    await stage.begin("n1", "n2", "n3")
    await close(stage)
    await stage.rancher("n1", pre=OPTIONS)
    if close is uncordon:
        await close(stage)
    (wait,) = await closed(stage)
    assert (wait.kind, wait.name) == (WaitKind[kind], name)
    assert remedy in remedy_text(wait.remedies)  # type: ignore[attr-defined]  # of known waits
    assert (await stage.jobs(), (await stage.states())["n1"]) == ([], "ImagePreloaded")
    await open_(stage)
    assert await closed(stage) == []
    assert await stage.jobs() == ["pre-drain-n1"]


@pytest.mark.rule(
    "nodes: a closed row of the gate holds back the acknowledgement of a pre-drain hook",
    "nodes: a pre-drain Job runs again if its node was uncordoned after it",
)
@pytest.mark.parametrize(("close", "open_", "kind", "name", "remedy"), ROWS)
async def test_closed_row_holds_the_acknowledgement_back(  # a table
    stage: NodeUpgradeRun, close: Any, open_: Any, kind: str, name: str, remedy: str
) -> None:
    await stage.begin("n1", "n2", "n3")
    await stage.request("n1", "pre")
    await close(stage)
    await stage.finish("n1", "pre-drain")
    (wait,) = await closed(stage)
    assert (wait.kind, wait.name) == (WaitKind[kind], name)
    assert remedy in remedy_text(wait.remedies)  # type: ignore[attr-defined]  # of known waits
    assert (await stage.acknowledgements("n1"), (await stage.states())["n1"]) == ({}, "PreDraining")
    await open_(stage)
    assert await closed(stage) == []
    if close is delete_machine:
        # The Secret of the new Machine is another request.
        assert await stage.jobs() == []
    elif close is uncordon:
        # VMs may be back on the node.
        assert await stage.acknowledgements("n1") == {}
        await stage.complete("n1", "pre-drain")
        assert await stage.acknowledgements("n1") == {PRE: OPTIONS}
    else:
        assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: while the Cluster requests an older Kubernetes, no hook is acknowledged")
async def test_post_drain_hook_waits_for_the_cluster_alone(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2", "n3")
    await stage.move(n1="WaitingReboot")
    await stage.rancher("n1", post=OPTIONS)
    await stage.reboot("n1")
    await set_back(stage)
    assert [wait.kind for wait in await closed(stage)] == [WaitKind.CHANGED_CLUSTER]
    assert await stage.acknowledgements("n1") == {}
    await set_again(stage)
    await not_ready(stage)
    assert [wait.kind for wait in await closed(stage)] == [WaitKind.UNAVAILABLE_NODE]
    assert await stage.acknowledgements("n1") == {POST: OPTIONS}


@pytest.mark.rule("nodes: the phase does not end while the Cluster requests an older Kubernetes")
async def test_set_back_cluster_holds_the_end(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    await set_back(stage)
    (wait,) = await closed(stage)
    assert wait.detail == f"its kubernetesVersion is v1.32.4+rke2r1 instead of {RELEASE_KUBERNETES}"


@pytest.mark.rule("nodes: a node is done once its OS and its Kubernetes are the release's and it is Ready")
async def test_node_with_an_old_kubelet_is_not_done(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="WaitingReboot")
    await stage.rancher("n1", post=OPTIONS)
    await stage.report("n1", kubelet="v1.32.4+rke2r1")
    assert "it runs Kubernetes v1.32.4+rke2r1 instead of v1.33.5+rke2r1" in await stage.waiting()
    assert (await stage.acknowledgements("n1"), (await stage.states())["n1"]) == ({}, "WaitingReboot")
    await stage.report("n1", kubelet=RELEASE_KUBERNETES)
    await stage.run()
    assert await stage.acknowledgements("n1") == {POST: OPTIONS}


async def leave_held(stage: NodeUpgradeRun, *, kubelet: str) -> None:
    """Enter the phase with n2 drained by an earlier plan, a witness, and n1 about to be drained in an earlier tier."""
    await stage.set_up("n1", "n2", "n3")
    await stage.client.patch(NODES, "n3", MergePatch({"metadata": {"labels": {WITNESS_LABEL: "true"}}}))
    for node, labels in (("n1", {RKE_ETCD_ROLE: "true", RKE_INIT_NODE: "true"}), ("n2", {RKE_WORKER_ROLE: "true"})):
        await stage.patch_secret(node, {"metadata": {"labels": labels}})
        await stage.report(node, os="Harvester v1.6.1", kubelet=kubelet)
    await stage.rancher("n2", post=OPTIONS)
    await stage.cordon("n2", cordoned=True)
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)


@pytest.mark.rule("nodes: no node is drained whose VMs have no other node because of an earlier drain of the upgrade")
async def test_held_node_is_finished_before_a_node_without_targets(stage: NodeUpgradeRun) -> None:
    await leave_held(stage, kubelet=RELEASE_KUBERNETES)
    result = await stage.run()
    assert isinstance(result, Waiting)
    assert await stage.jobs() == ["pre-drain-n2"]
    # The upgrade itself opens the row.
    assert WaitKind.TARGET_NODE not in {wait.kind for wait in result.waits}
    await stage.complete("n2", "pre-drain")
    await stage.complete("n2", "post-drain")
    await stage.reboot("n2")
    await stage.run()
    assert await stage.acknowledgements("n2") == {POST: OPTIONS}
    assert "pre-drain-n1" not in await stage.jobs()
    await stage.rancher("n2", post=None)
    await stage.run()
    assert "pre-drain-n1" in await stage.jobs()


@pytest.mark.rule("nodes: no node is drained whose VMs have no other node because of an earlier drain of the upgrade")
async def test_held_node_that_cannot_be_finished_is_named(stage: NodeUpgradeRun) -> None:
    await leave_held(stage, kubelet="v1.32.4+rke2r1")
    result = await stage.run()
    assert isinstance(result, Waiting)
    (wait,) = [wait for wait in result.waits if isinstance(wait, TargetNodeWait)]
    assert (wait.name, wait.node, str(wait.remedies[0])) == ("n2", "n1", "Let it take VMs: kubectl uncordon n2")
    assert await stage.jobs() == []
    await stage.cordon("n2", cordoned=False)
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]
