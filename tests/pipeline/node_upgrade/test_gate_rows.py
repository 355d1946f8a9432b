"""The objects that the rows of the gate read: nodes that take no part, held nodes, and the Machine that counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.node_upgrade.test_gate import NOW, RELEASE_KUBERNETES, patch_machine
from tests.support.cluster.cluster_reader import MemoryReader, find, named
from tests.support.cluster.instances import affinity, instance, zone
from tests.support.cluster.nodes import OPTIONS, PRE
from tests.support.managers.node_upgrade import PLACE
from upgrade_manager.api.keys import MANAGED_LABEL, RKE_ETCD_ROLE, RKE_INIT_NODE, RKE_WORKER_ROLE, WITNESS_LABEL
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import (
    MissingNodeWait,
    UnavailableNodeWait,
)
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.facts.missing_nodes import unlabelled, without_node
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, MACHINES, NODES, SECRETS, UPGRADE_PLANS, VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.pipeline.outcome import Waiting
from webhook.checks.vms import CHECK

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.facts.missing_nodes import MissingNode

OLD_OS, OLD_KUBERNETES = "Harvester v1.6.1", "v1.32.4+rke2r1"
TARGETS = pytest.mark.rule(
    "nodes: no node is drained whose VMs have no other node because of an earlier drain of the upgrade"
)


async def set_up(stage: NodeUpgradeRun, *nodes: str, kubelet: str = RELEASE_KUBERNETES) -> None:
    await stage.set_up(*nodes)
    for node in nodes:
        await stage.report(node, os=OLD_OS, kubelet=kubelet)


async def roles(stage: NodeUpgradeRun, node: str, *names: str) -> None:
    await stage.patch_secret(node, {"metadata": {"labels": dict.fromkeys(names, "true")}})


async def in_two_tiers(stage: NodeUpgradeRun, **hooks: str) -> None:
    """Enter the phase with n2, a worker, held with these hooks, and n1 in an earlier tier."""
    await set_up(stage, "n1", "n2", "n3")
    await roles(stage, "n1", RKE_ETCD_ROLE, RKE_INIT_NODE)
    await roles(stage, "n2", RKE_WORKER_ROLE)
    await stage.rancher("n2", **hooks)
    await stage.cordon("n2", cordoned=True)


async def join(stage: NodeUpgradeRun, node: str, *, kubelet: str = OLD_KUBERNETES) -> None:
    await stage.cluster.nodes(node)
    await stage.machine(node)
    await stage.report(node, os=OLD_OS, kubelet=kubelet)


async def target_waits(stage: NodeUpgradeRun) -> list[str]:
    result = await stage.run()
    assert isinstance(result, Waiting)
    return [wait.name for wait in result.waits if wait.kind is WaitKind.TARGET_NODE]


@TARGETS
async def test_node_held_at_its_pre_drain_hook_is_not_a_target(stage: NodeUpgradeRun) -> None:
    """Rancher drains it after the earlier tier, so that a user uncordons it."""
    await in_two_tiers(stage, pre=OPTIONS)
    await stage.client.patch(NODES, "n3", MergePatch({"metadata": {"labels": {WITNESS_LABEL: "true"}}}))
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    assert await target_waits(stage) == ["n2"]
    assert await stage.jobs() == []
    await stage.cordon("n2", cordoned=False)
    assert await target_waits(stage) == []
    assert await stage.jobs() == ["pre-drain-n1"]


async def bound_vm(stage: NodeUpgradeRun, *zones: str, on: str = "n1") -> None:
    """Create default/db on that node; with zones, it runs on nodes of these zones only."""
    for node in ("n1", "n2", "n3"):
        await stage.client.patch(NODES, node, MergePatch({"metadata": {"labels": {"zone": f"z-{node}"}}}))
    bound = instance(affinity(*map(zone, zones)) if zones else None, on=on)
    await stage.cluster.put(VIRTUAL_MACHINE_INSTANCES, bound)


@TARGETS
@pytest.mark.rule("nodes: webhook and gate let the same VMs wait for a node that an earlier upgrade holds")
@pytest.mark.parametrize(
    ("zones", "on", "targets"),
    [
        pytest.param(["z-n1", "z-n2"], "n1", ["n2"], id="the held node alone"),
        pytest.param(["z-n1", "z-n3"], "n1", [], id="another node"),
        pytest.param([], "n1", [], id="any node"),
        pytest.param(["z-n1"], "n1", [], id="no other node, which is not the upgrade's work"),
        pytest.param(["z-n3", "z-n2"], "n3", [], id="on another node"),
    ],
)
async def test_vm_that_only_a_held_node_takes_holds_its_node_back(
    stage: NodeUpgradeRun, zones: list[str], on: str, targets: list[str]
) -> None:
    await in_two_tiers(stage, pre=OPTIONS)
    await bound_vm(stage, *zones, on=on)
    found = await asyncio.gather(*map(stage.client.list, (SECRETS, MACHINES, NODES, VIRTUAL_MACHINE_INSTANCES)))
    secrets, machines, nodes, instances = (one.items for one in found)
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    assert await target_waits(stage) == targets
    assert await stage.jobs() == (["pre-drain-n1"] if not targets else [])
    reader = MemoryReader({SECRETS: secrets, MACHINES: machines, NODES: nodes, VIRTUAL_MACHINE_INSTANCES: instances})
    warned = any("VMs default/db have no other node" in one for one in await find(CHECK, reader))
    assert (warned and on == "n1") is bool(targets)


@TARGETS
async def test_held_node_that_rancher_drains_is_not_a_blocker(stage: NodeUpgradeRun) -> None:
    """A user has acknowledged its hook: Rancher uncordons it at the end of its drain."""
    await set_up(stage, "n1", "n2", "n3")
    await stage.rancher("n2", pre=OPTIONS)
    await stage.cordon("n2", cordoned=True)
    await stage.client.patch(NODES, "n3", MergePatch({"metadata": {"labels": {WITNESS_LABEL: "true"}}}))
    await stage.enter()
    await stage.run()
    acknowledged = {PRE: OPTIONS, "rke.cattle.io/drain-options": OPTIONS}
    await stage.patch_secret("n2", {"metadata": {"annotations": acknowledged}})
    await stage.rancher("n1", pre=OPTIONS)
    assert await target_waits(stage) == []
    assert "pre-drain-n1" not in await stage.jobs()


@TARGETS
async def test_held_node_goes_first_if_a_vm_needs_it(stage: NodeUpgradeRun) -> None:
    """Rancher has drained it, and finishes it at once; the VM moves there afterwards."""
    await in_two_tiers(stage, post=OPTIONS)
    await bound_vm(stage, "z-n1", "z-n2")
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n2"]


@TARGETS
async def test_node_paused_at_its_hook_is_not_a_target(stage: NodeUpgradeRun) -> None:
    """Rancher drains n1 again, for instance after a change of the registries setting."""
    await set_up(stage, "n1", "n2", "n3")
    await roles(stage, "n1", RKE_ETCD_ROLE, RKE_INIT_NODE)
    await roles(stage, "n2", RKE_WORKER_ROLE)
    await stage.client.patch(NODES, "n3", MergePatch({"metadata": {"labels": {WITNESS_LABEL: "true"}}}))
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": ["n2"]}}}))
    await stage.enter()
    await stage.run()
    await stage.move(n1="PostDrained")
    await stage.request("n2", "pre")
    await stage.rancher("n1", pre=OPTIONS)
    assert await target_waits(stage) == ["n2"]
    assert await stage.jobs() == ["pre-drain-n2"]
    await stage.cordon("n2", cordoned=False)
    assert await target_waits(stage) == []
    assert await stage.jobs() == ["pre-drain-n1", "pre-drain-n2"]


@TARGETS
async def test_drained_vms_need_no_target(stage: NodeUpgradeRun) -> None:
    """A user cordons the last target after the VMs have left: the drain goes on."""
    await in_two_tiers(stage, pre=OPTIONS, post=OPTIONS)
    await stage.enter()
    await stage.run()
    await stage.request("n1", "pre")
    assert await stage.jobs() == ["pre-drain-n1"]
    await stage.cordon("n3", cordoned=True)
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: a node that takes no part, such as one that joined, holds others back like any other")
async def test_joined_node_is_a_target(stage: NodeUpgradeRun) -> None:
    await set_up(stage, "n1", "n2", kubelet=OLD_KUBERNETES)
    await stage.rancher("n2", post=OPTIONS)
    await stage.cordon("n2", cordoned=True)
    await stage.enter()
    await stage.run()
    await join(stage, "n4")
    await stage.request("n1", "pre")
    assert await stage.jobs() == ["pre-drain-n1"]


@pytest.mark.rule("nodes: a node that takes no part, such as one that joined, holds others back like any other")
async def test_refused_plan_of_a_joined_node_closes_the_gate(stage: NodeUpgradeRun) -> None:
    await set_up(stage, "n1", "n2")
    await stage.enter()
    await stage.run()
    await join(stage, "n4")
    applied: Any = {"type": "PlanApplied", "status": "False", "message": "error", "lastTransitionTime": NOW}
    await patch_machine(stage, "m-n4", {"status": {"conditions": [applied]}}, subresource="status")
    result = await stage.request("n1", "pre")
    assert isinstance(result, Waiting)
    assert ("n4", WaitKind.UNAVAILABLE_NODE) in {(wait.name, wait.kind) for wait in result.waits}
    assert await stage.jobs() == []


@TARGETS
async def test_joining_node_that_is_not_ready_is_not_a_target(stage: NodeUpgradeRun) -> None:
    """Its Machine does not name it yet."""
    await set_up(stage, "n1", "n2", kubelet=OLD_KUBERNETES)
    await stage.rancher("n2", post=OPTIONS)
    await stage.cordon("n2", cordoned=True)
    await stage.enter()
    await stage.run()
    await stage.cluster.nodes("n4")
    await stage.report("n4", os=OLD_OS, ready="False")
    await stage.rancher("n1", pre=OPTIONS)
    assert await target_waits(stage) == ["n2"]
    assert await stage.jobs() == []


@pytest.mark.rule("nodes: a closed row of the gate holds back the acknowledgement of a pre-drain hook")
async def test_refused_plan_of_a_node_in_progress_closes_the_gate(stage: NodeUpgradeRun) -> None:
    """A user has resumed the Job of n1 while n2 is drained."""
    await set_up(stage, "n1", "n2", "n3")
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": ["n1"]}}}))
    await stage.enter()
    await stage.run()
    for node in ("n1", "n2"):
        await stage.request(node, "pre")
    resumed = MergePatch({"spec": {"suspend": False}})
    await stage.client.patch(JOBS, "up-node-upgrade-pre-drain-n1", resumed, namespace=PLACE)
    await stage.run()
    applied: Any = {"type": "PlanApplied", "status": "False", "message": "error", "lastTransitionTime": NOW}
    await patch_machine(stage, "m-n2", {"status": {"conditions": [applied]}}, subresource="status")
    result = await stage.complete("n1", "pre-drain")
    assert isinstance(result, Waiting)
    assert ("n2", WaitKind.UNAVAILABLE_NODE) in {(wait.name, wait.kind) for wait in result.waits}
    assert await stage.acknowledgements("n1") == {}


async def leave_with_node(stage: NodeUpgradeRun) -> None:
    await stage.report("n4", os=OLD_OS, ready="Unknown")


async def leave_without_node(stage: NodeUpgradeRun) -> None:
    await stage.client.delete(NODES, "n4")


@pytest.mark.rule("nodes: a node that takes no part, such as one that joined, holds others back like any other")
@pytest.mark.parametrize("leave", [leave_with_node, leave_without_node])
async def test_joined_node_that_leaves_again_closes_the_gate(stage: NodeUpgradeRun, leave: Any) -> None:
    """It is a member of etcd until its Machine is deleted."""
    await set_up(stage, "n1", "n2", "n3")
    await stage.enter()
    await stage.run()
    await join(stage, "n4")
    await leave(stage)
    await patch_machine(stage, "m-n4", {"metadata": {"finalizers": ["example.com/held"]}})
    await stage.client.delete(MACHINES, "m-n4", namespace="fleet-local")
    result = await stage.request("n1", "pre")
    assert isinstance(result, Waiting)
    assert ("n4", WaitKind.UNAVAILABLE_NODE) in {(wait.name, wait.kind) for wait in result.waits}
    assert await stage.jobs() == []
    await patch_machine(stage, "m-n4", {"metadata": {"finalizers": None}})
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]


@pytest.mark.rule("nodes: a node that takes no part, such as one that joined, holds others back like any other")
@pytest.mark.parametrize("hooks", [OPTIONS, "{}"], ids=["acknowledged by a user", "without our hooks"])
async def test_joined_node_that_rancher_drains_holds_others_back(stage: NodeUpgradeRun, hooks: str) -> None:
    await set_up(stage, "n1", "n2")
    await stage.enter()
    await stage.run()
    await join(stage, "n4")
    drain = {"rke.cattle.io/drain-options": hooks, "rke.cattle.io/pre-drain": hooks, PRE: hooks}
    await stage.patch_secret("n4", {"metadata": {"annotations": drain}})
    await stage.cordon("n4", cordoned=True)
    await stage.request("n1", "pre")
    assert await stage.jobs() == []
    await stage.patch_secret("n4", {"metadata": {"annotations": dict.fromkeys(drain)}})
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]


@pytest.mark.rule("nodes: a hook counts on the Secret of the Machine that the Node names, and on no other")
async def test_hook_of_another_machine_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    await set_up(stage, "n1", "n2")
    await stage.enter()
    await stage.run()
    await stage.cluster.machine("n1", name="m-new")
    named = {"metadata": {"annotations": {"cluster.x-k8s.io/machine": "m-new"}}}
    await stage.client.patch(NODES, "n1", MergePatch(named))
    result = await stage.request("n1", "pre")
    assert isinstance(result, Waiting)
    assert WaitKind.AMBIGUOUS_MACHINE in {wait.kind for wait in result.waits}
    assert await stage.jobs() == []


@pytest.mark.rule("nodes: a single node has no hook and no tier")
async def test_hook_on_a_single_node_holds_nothing_back(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await stage.report("n1", os=OLD_OS)
    await stage.rancher("n1", pre=OPTIONS)
    await stage.cordon("n1", cordoned=False)
    await stage.enter()
    await stage.run()
    assert await stage.jobs() == ["single-node-upgrade-n1"]


@pytest.mark.rule("nodes: a node whose drain Rancher has forgotten is named, and holds no other node back")
async def test_forgotten_node_does_not_hold_a_later_tier(stage: NodeUpgradeRun) -> None:
    await in_two_tiers(stage, pre=OPTIONS)
    await stage.enter()
    await stage.run()
    await stage.request("n1", "pre")
    hooks: dict[str, Any] = {PRE: None, "rke.cattle.io/pre-drain": None}
    await stage.patch_secret("n1", {"metadata": {"annotations": hooks}})
    await stage.cordon("n1", cordoned=False)
    for _ in range(2):
        await stage.run()
    assert "pre-drain-n2" in await stage.jobs()


async def unavailable(stage: NodeUpgradeRun) -> list[tuple[WaitKind, str, str]]:
    """Return the waits for nodes that are missing or not available, with reason and remedy."""
    result = await stage.request("n1", "pre")
    assert isinstance(result, Waiting)
    found = [wait for wait in result.waits if isinstance(wait, MissingNodeWait | UnavailableNodeWait)]
    return [(wait.kind, wait.detail, remedy_text(wait.remedies)) for wait in found]


async def unlabel(stage: NodeUpgradeRun, node: str) -> None:
    await stage.client.patch(NODES, node, MergePatch({"metadata": {"labels": {MANAGED_LABEL: None}}}))


@pytest.mark.rule("blockers: the gate and the wait of a node that cannot be observed have one reason")
@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "joined"])
@pytest.mark.parametrize("has_node", [True, False], ids=["without label", "without Node"])
async def test_unobserved_node_has_one_wait_with_its_reason(
    stage: NodeUpgradeRun, *, is_recorded: bool, has_node: bool
) -> None:
    await set_up(stage, "n1", "n2", *["n4"] * is_recorded)
    await stage.enter()
    await stage.run()
    if not is_recorded:
        await join(stage, "n4")
    if has_node:
        await unlabel(stage, "n4")
        expected: MissingNode = unlabelled("n4")
    else:
        await stage.client.delete(NODES, "n4")
        expected = without_node(named("m-n4", "fleet-local"))
    kind = WaitKind.MISSING_NODE if is_recorded else WaitKind.UNAVAILABLE_NODE
    assert await unavailable(stage) == [(kind, expected.why, remedy_text(expected.ways_out))]
    assert f"n1: waiting for Node n4: {expected.why}" in await stage.waiting()
    assert await stage.jobs() == []
