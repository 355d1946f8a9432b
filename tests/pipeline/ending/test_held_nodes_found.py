"""Which nodes the strategy of Rancher's cluster holds after the end of a plan, and the messages about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.harvester import RELEASE, Harvester
from tests.support.cluster.nodes import OPTIONS, PRE_DRAIN, secret
from upgrade_manager.api.keys import ANNOTATION_ORIGINAL_STRATEGY
from upgrade_manager.api.names import event_digest
from upgrade_manager.api.next_steps import MAX_NODES
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS, SECRETS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending.held_nodes import (
    EVENT_REASON,
    WITHOUT_MANAGER,
    Frozen,
    find,
    find_frozen,
    keep_original,
    steps,
    warn,
)
from upgrade_manager.pipeline.selections import LOCAL_MACHINES
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.informers import InformerSpec

OLDER, NEWER = "v1.32.4+rke2r1", RELEASE["kubernetes"]
ENTRY = {"object": "Cluster fleet-local/local", "field": "spec.rkeConfig.upgradeStrategy", "original": {"x": 1}}
TIME = "2026-01-01T00:00:00Z"
STARTED: dict[str, Any] = {"phaseTransitionTimestamps": [{"phase": "NodeUpgrading", "phaseTransitionTimestamp": TIME}]}
PROGRESSING = {"type": "Progressing", "status": "True", "reason": "x", "message": "", "lastTransitionTime": TIME}
RUNNING = {"conditions": [PROGRESSING]}
HELD = (
    "Node n1 stays cordoned, because Rancher waits for this manager (Secret fleet-local/s-n1). Do not uncordon it: the "
    "next attempt or UpgradePlan continues there"
)
TAKES_OVER = "Create a new UpgradePlan, which takes over"
RUNBOOK = WITHOUT_MANAGER.text


async def ended(
    harvester: Harvester, kubelets: dict[str, str], *, hooks: bool = True, uid: str = "", **status: Any
) -> ReconcileContext:
    """Return a plan that has ended, and Rancher's cluster, with the drain hooks unless these are given back."""
    rke = {"provisionGeneration": 5, "upgradeStrategy": with_hooks({}) if hooks else None}
    annotations = {ANNOTATION_ORIGINAL_STRATEGY: json.dumps({"uid": uid})} if uid else {}
    metadata = {"name": "local", "namespace": "fleet-local", "annotations": annotations}
    cluster = {"metadata": metadata, "spec": {"kubernetesVersion": NEWER, "rkeConfig": rke}}
    await harvester.put(PROVISIONING_CLUSTERS, cluster)
    for name, version in kubelets.items():
        node = {"metadata": {"name": name, "labels": {"harvesterhci.io/managed": "true"}}}
        await harvester.put(NODES, node, status={"nodeInfo": {"kubeletVersion": version}})
    return harvester.context(await harvester.plan(status={"releaseMetadata": RELEASE, **status}))


async def hold(harvester: Harvester, node: str) -> None:
    """Let Rancher wait for the pre-drain hook of the node."""
    await harvester.machine(node)
    plan = secret(f"s-{node}", f"m-{node}", **{PRE_DRAIN: OPTIONS})
    plan["metadata"]["namespace"] = "fleet-local"
    await harvester.put(SECRETS, {**plan, "type": "rke.cattle.io/machine-plan"})


async def test_older_nodes_of_an_earlier_plan_are_held_in_order(cluster: Harvester) -> None:
    ctx = await ended(cluster, dict.fromkeys(("n6", "n2", "n5", "n1", "n4", "n3"), OLDER) | {"n7": NEWER})
    frozen = await find_frozen(ctx)
    assert frozen is not None
    assert frozen.nodes == ["n1", "n2", "n3", "n4", "n5", "n6"]


@pytest.mark.rule("nodes: after a failure the hooks stay until every node runs the release's Kubernetes")
@pytest.mark.parametrize(
    ("state", "kubelet", "held"),
    [
        pytest.param("ImagePreloaded", OLDER, True, id="not drained"),
        pytest.param("PreDrained", NEWER, True, id="not drained, its Kubernetes is the release's"),
        pytest.param("PostDraining", OLDER, True, id="drained, its Kubernetes is older"),
        pytest.param("PostDraining", NEWER, False, id="its Kubernetes is upgraded"),
        pytest.param("PostDrained", OLDER, False, id="done"),
    ],
)
async def test_node_is_held_until_its_kubernetes_is_upgraded(
    cluster: Harvester, state: str, kubelet: str, *, held: bool
) -> None:
    ctx = await ended(cluster, {"n1": kubelet}, originals=[ENTRY], nodeUpgradeStatuses={"n1": {"state": state}})
    frozen = await find_frozen(ctx)
    assert (frozen.nodes if frozen else []) == (["n1"] if held else [])


@pytest.mark.rule("nodes: the next plan takes over, and gives the first plan's original strategy back")
@pytest.mark.parametrize(
    ("uid", "state", "kept"),
    [
        pytest.param("", "ImagePreloaded", True, id="a node is left"),
        pytest.param("", "PostDrained", False, id="only a hook is left"),
        pytest.param("next", "ImagePreloaded", False, id="another plan has taken over"),
    ],
)
async def test_original_is_kept_on_the_cluster_for_the_next_plan(
    cluster: Harvester, uid: str, state: str, *, kept: bool
) -> None:
    ctx = await ended(cluster, {"n1": OLDER}, uid=uid, originals=[ENTRY], nodeUpgradeStatuses={"n1": {"state": state}})
    await hold(cluster, "n1")
    frozen = await find_frozen(ctx)
    assert frozen is not None
    await keep_original(ctx, frozen)
    after = await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
    record = {"plan": "up", "uid": ctx.owner.uid, "upgradeStrategy": ENTRY["original"]}
    found = json.loads(objects.annotations_of(after).get(ANNOTATION_ORIGINAL_STRATEGY, "null"))
    assert found == (record if kept else {"uid": uid} if uid else None)


UP, EARLIER = "UpgradePlan up ended", "UpgradePlan up ended before it continued the node upgrade of an earlier plan"


@pytest.mark.rule("nodes: a next plan that ends before its node upgrade names the nodes that an earlier plan holds")
@pytest.mark.parametrize(
    ("state", "nodes", "end"),
    [
        pytest.param({"originals": [ENTRY], **STARTED}, ["n2"], f"{UP} during the node upgrade", id="during"),
        pytest.param({"hooks": False, **STARTED}, [], f"{UP} after the node upgrade", id="given back"),
        pytest.param({"hooks": False, "singleNode": "n1", **STARTED}, None, "", id="a single node"),
        pytest.param(
            {"hooks": False, "currentPhase": "Succeeded", **STARTED}, [], f"{UP} after the node upgrade", id="succeeded"
        ),
        pytest.param({"hooks": True}, ["n1", "n2"], EARLIER, id="of an earlier plan"),
        pytest.param({"hooks": True, **RUNNING}, ["n1", "n2"], EARLIER, id="of an earlier plan, still progressing"),
        pytest.param({"hooks": False}, [], EARLIER, id="of an earlier plan, given back"),
        pytest.param({"uid": "next", "originals": [ENTRY], **STARTED}, ["n1", "n2"], EARLIER, id="taken over"),
    ],
)
async def test_held_nodes_are_reported_with_the_end(
    cluster: Harvester, state: dict[str, Any], nodes: list[str] | None, end: str
) -> None:
    states = {"n1": {"state": "PostDrained"}, "n2": {"state": "ImagePreloaded"}}
    ctx = await ended(cluster, {"n1": NEWER, "n2": OLDER}, nodeUpgradeStatuses=states, **state)
    await hold(cluster, "n1")
    frozen = await find_frozen(ctx)
    found = (frozen.nodes, frozen.held, frozen.end) if frozen else None
    assert found == (None if nodes is None else (nodes, [("n1", "s-n1")], end))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"originals": [ENTRY], **STARTED}, id="during"),
        pytest.param({"hooks": False, **STARTED}, id="given back"),
        pytest.param({}, id="before"),
    ],
)
async def test_end_without_held_nodes_has_no_remedy(cluster: Harvester, state: dict[str, Any]) -> None:
    ctx = await ended(cluster, {"n1": NEWER}, nodeUpgradeStatuses={"n1": {"state": "PostDrained"}}, **state)
    assert await find_frozen(ctx) is None
    assert await find(ctx) is None


async def test_nodes_of_a_running_plan_are_not_held(cluster: Harvester) -> None:
    ctx = await ended(cluster, {"n1": OLDER})
    await cluster.plan("next", status=RUNNING)
    assert await find_frozen(ctx) is None


async def test_nothing_is_held_without_ranchers_cluster(cluster: Harvester) -> None:
    ctx = await ended(cluster, {"n1": OLDER}, originals=[ENTRY])
    await cluster.client.delete(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    assert await find_frozen(ctx) is None


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "kind not installed"])
async def test_node_that_has_left_is_not_held(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, *, listed: bool
) -> None:
    states = {name: {"state": "ImagePreloaded"} for name in ("n3", "n2", "n1")}
    ctx = await ended(cluster, {"n2": OLDER}, originals=[ENTRY], nodeUpgradeStatuses=states)
    await cluster.machine("n1")
    watch = cluster.observed.watch

    async def watch_others(spec: InformerSpec) -> Store:
        if spec is LOCAL_MACHINES:
            raise Transient("the kind does not exist")
        return await watch(spec)

    if not listed:
        monkeypatch.setattr(cluster.observed, "watch", watch_others)
    frozen = await find_frozen(ctx)
    assert frozen is not None
    assert frozen.nodes == (["n1", "n2"] if listed else ["n1", "n2", "n3"])
    assert frozen.held == []


@pytest.mark.rule("nodes: no message has a command that upgrades nodes under running VMs; a page has it")
@pytest.mark.parametrize("names", [["n2"], ["n2", "n3"]], ids=["one", "several"])
async def test_held_nodes_are_named_with_what_not_to_do(cluster: Harvester, names: list[str]) -> None:
    states = {name: {"state": "ImagePreloaded"} for name in names} | {"n1": {"state": "PostDrained"}}
    ctx = await ended(cluster, dict.fromkeys(states, OLDER), originals=[ENTRY], nodeUpgradeStatuses=states)
    await hold(cluster, "n1")
    wait, them = ("Nodes n2, n3 wait", "them") if names[1:] else ("Node n2 waits", "it")
    hooks = (
        f"{wait}: drain hooks in Cluster fleet-local/local keep Rancher from upgrading {them} with VMs running there. "
        "Do not remove the hooks"
    )
    texts = [HELD, hooks]
    frozen = await find(ctx)
    assert frozen is not None
    assert steps(frozen) == [Remedy(text) for text in texts]
    warn(ctx, frozen)
    end = "UpgradePlan up ended during the node upgrade"
    assert cluster.recorder.recorded == [(EVENT_REASON, ". ".join((end, *texts, TAKES_OVER, RUNBOOK)))]
    assert cluster.recorder.names[0].endswith(
        event_digest(objects.uid(frozen.cluster), f"{EVENT_REASON}/{ctx.owner.uid}")
    )


async def test_steps_after_the_strategy_is_given_back(cluster: Harvester) -> None:
    ctx = await ended(cluster, {"n1": OLDER}, hooks=False, **STARTED)
    await hold(cluster, "n1")
    frozen = await find(ctx)
    assert frozen is not None
    assert steps(frozen) == [Remedy(HELD)]


def test_many_held_nodes_are_named_in_one_step() -> None:
    held = [(f"n{number:02}", "s") for number in range(MAX_NODES + 2)]
    found = steps(Frozen(cluster={}, original=None, nodes=[], held=held, end=""))
    assert len(found) == MAX_NODES + 1
    assert found[-1].text == "And 2 more nodes stay cordoned for the same reason: n08, n09"
