"""The ledger before a success: what runs is settled, what starts is waited for, what is off is named."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.crds import CRDS
from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.blockers.known_wait import UnsettledVMWait
from upgrade_manager.facts.vm_obstacles import NODE_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending import settlement

SINCE = "2026-01-01T00:00:00Z"
OFF = "VMs that were stopped for the upgrade are off; start them"


def stopped(name: str, node: str = "n1") -> dict[str, Any]:
    target = f"VirtualMachine default/{name}"
    return new_entry(LedgerKind.STOPPED_VM, "default", name, object_=target, node=node, since=SINCE)


async def owing(cluster: Harvester, *entries: dict[str, Any], restores: bool = True, **status: Any) -> ReconcileContext:
    spec = {"version": "v1.7.0", "restoreVM": restores}
    return cluster.context(await cluster.plan(spec=spec, status={"ledger": list(entries), **status}))


async def vm(cluster: Harvester, name: str, *, strategy: str, phase: str = "", node: str = "") -> None:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    domain: dict[str, Any] = {"domain": {"devices": {}}}
    spec = {"runStrategy": strategy, "template": {"spec": domain}}
    await cluster.put(VIRTUAL_MACHINES, {"metadata": metadata, "spec": spec})
    if phase:
        metadata["labels"] = {NODE_LABEL: node}
        instance = {"metadata": metadata, "spec": domain, "status": {"phase": phase}}
        await cluster.put(VIRTUAL_MACHINE_INSTANCES, instance)


@pytest.mark.rule(
    "nodes: Succeeded requires the ledger to be settled; VMs that are off are named in the final condition"
)
async def test_vms_are_settled_awaited_or_named(cluster: Harvester) -> None:
    names = ("runs", "starts", "off", "deleted")
    await vm(cluster, "runs", strategy="Always", phase="Running")
    await vm(cluster, "starts", strategy="Always", phase="Scheduling")
    await vm(cluster, "off", strategy="Halted")
    ctx = await owing(cluster, *map(stopped, names))
    waiting = await settlement.settle(ctx)
    assert waiting is not None
    assert waiting.message == "Waiting for VMs that were stopped for the upgrade to run: default/starts"
    assert waiting.after == settlement.VM_RETRY
    (wait,) = waiting.waits
    assert isinstance(wait, UnsettledVMWait)
    assert (wait.namespace, wait.name, wait.node) == ("default", "starts", "n1")
    assert [entry["id"] for entry in ledger.entries(ctx)] == ["StoppedVM.default.starts", "StoppedVM.default.off"]
    patch = MergePatch({"status": {"phase": "Running"}})
    await cluster.client.patch(VIRTUAL_MACHINE_INSTANCES, "starts", patch, namespace="default")
    assert await settlement.settle(ctx) is None
    assert await settlement.name_settled(ctx) == f"{OFF}: default/off"
    assert ctx.status["ledger"] == []
    assert cluster.recorder.recorded == [("VMsOff", f"{OFF}: default/off")]


async def test_message_names_few_vms_that_start(cluster: Harvester) -> None:
    for number in range(5):
        await vm(cluster, f"vm-{number}", strategy="Always")
    ctx = await owing(cluster, *(stopped(f"vm-{number}") for number in range(5)))
    waiting = await settlement.settle(ctx)
    assert waiting is not None
    assert waiting.message.endswith(": default/vm-0, default/vm-1, default/vm-2 and 2 more")
    assert len(waiting.waits) == 5


async def test_events_name_every_vm_that_no_other_event_names(cluster: Harvester) -> None:
    nodes = {"n2": {"state": "PostDrained", "reason": "RestoreVMFailed", "message": "x"}}
    entries = [stopped(f"vm-{number:02}") for number in range(12)]
    ctx = await owing(cluster, *entries, stopped("zz", "n2"), nodeUpgradeStatuses=nodes)
    message = await settlement.name_settled(ctx)
    assert message.endswith("default/vm-11, default/zz")
    texts = [text for _, text in cluster.recorder.recorded]
    assert [text.count("default/") for text in texts] == [10, 2]


@pytest.mark.parametrize(("restores", "events"), [(True, 1), (False, 0)])
async def test_event_says_only_that_vms_should_run(cluster: Harvester, *, restores: bool, events: int) -> None:
    ctx = await owing(cluster, stopped("off"), restores=restores)
    assert await settlement.name_settled(ctx) == f"{OFF}: default/off"
    assert len(cluster.recorder.recorded) == events


async def test_nodes_that_left_are_named(cluster: Harvester) -> None:
    left = new_entry(LedgerKind.NODE_LEFT, "n3", object_="Node n3", node="n3", since=SINCE)
    ctx = await owing(cluster, left, stopped("off", "n3"))
    message = await settlement.name_settled(ctx)
    assert message == f"Node n3 left during the upgrade. {OFF}: default/off"
    assert ctx.status["ledger"] == []


@pytest.mark.rule("nodes: a taint that a drain has left is removed before the success")
async def test_taints_are_removed(cluster: Harvester) -> None:
    await cluster.nodes("n1", "n2")
    other, drain = {"key": "other", "effect": "NoSchedule"}, {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
    await cluster.client.patch(NODES, "n1", MergePatch({"spec": {"taints": [other, drain]}}))
    entries = [
        new_entry(LedgerKind.TAINT, name, object_=f"Node {name}", node=name, since=SINCE) for name in ("n1", "n2", "n3")
    ]
    ctx = await owing(cluster, *entries)
    assert await settlement.settle(ctx) is None
    assert objects.spec(await cluster.find(NODES, "n1"))["taints"] == [other]
    assert ctx.status["ledger"] == []


async def test_cluster_without_kubevirt_owes_no_vm(cluster: Harvester) -> None:
    for resource in (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES):
        await cluster.client.delete(CRDS, f"{resource.plural}.kubevirt.io")
    ctx = await owing(cluster, stopped("off"))
    assert await settlement.settle(ctx) is None
    assert ctx.status["ledger"] == []
