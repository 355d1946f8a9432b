"""The changes of a drain stand in the ledger before it begins."""

from __future__ import annotations

from functools import partial
from unittest.mock import Mock

import pytest

from tests.support.cluster.harvester import RECORDED
from tests.support.managers.node_upgrade import NodeUpgradeRun
from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.kube.pager import ListOptions
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, NODES, UPGRADE_PLANS, VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.pipeline.node_upgrade import drain_entries
from upgrade_manager.resources.job_ledger import ledger_map, stopped_vm
from upgrade_manager.resources.owner import Owner

TAINT = "kubevirt.io/drain"


async def vm(stage: NodeUpgradeRun, name: str, node: str) -> None:
    """Let the VM run on the node."""
    labels = {"labels": {"kubevirt.io/nodeName": node}}
    metadata = {"name": name, "namespace": "default", **labels}
    await stage.cluster.put(VIRTUAL_MACHINE_INSTANCES, {"metadata": metadata, "spec": {"domain": {"devices": {}}}})


async def moved(stage: NodeUpgradeRun, name: str, node: str) -> None:
    patch = MergePatch({"metadata": {"labels": {"kubevirt.io/nodeName": node}}})
    await stage.client.patch(VIRTUAL_MACHINE_INSTANCES, name, patch, namespace="default")


async def entries(stage: NodeUpgradeRun) -> list[tuple[str, str]]:
    """Return id and node of the entries of drains."""
    kinds = {LedgerKind.TAINT, LedgerKind.STOPPED_VM}
    return [(one["id"], one["node"]) for one in (await stage.status())["ledger"] if one["kind"] in kinds]


@pytest.mark.rule(
    "nodes: with Harvester's toolkit each VM of a node is recorded before its drain, and settled once it runs"
)
@pytest.mark.parametrize(
    ("page", "asked"),
    [
        pytest.param(500, 20, id="one page of VMs"),
        pytest.param(2, 20, id="more VMs, asked for one by one"),
        pytest.param(2, 0, id="many VMs that may be stopped"),
    ],
)
async def test_vms_of_the_node_are_candidates(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch, page: int, asked: int
) -> None:
    monkeypatch.setattr(drain_entries, "ListOptions", partial(ListOptions, limit=page))
    monkeypatch.setattr(drain_entries, "MAX_ASKED", asked)
    listed = Mock(wraps=stage.client.list)
    monkeypatch.setattr(stage.client, "list", listed)
    await stage.begin("n1", "n2")
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2"), ("starting", "")):
        await vm(stage, name, node)
    await stage.request("n1", "pre")
    assert await entries(stage) == [("Taint.n1", "n1"), ("StoppedVM.default.a", "n1"), ("StoppedVM.default.b", "n1")]
    await moved(stage, "a", "n2")
    await stage.client.delete(VIRTUAL_MACHINE_INSTANCES, "b", namespace="default")
    await stage.complete("n1", "pre-drain")
    await stage.request("n1", "post")
    await stage.complete("n1", "post-drain")
    await stage.reboot("n1")
    await stage.run()
    stopped = ("StoppedVM.default.b", "n1")
    assert await entries(stage) == [("StoppedVM.default.a", "n1"), stopped]
    await stage.rancher("n1", pre=None, post=None)
    await stage.request("n2", "pre")
    ids = [("StoppedVM.default.a", "n2"), ("StoppedVM.default.c", "n2")]
    assert sorted(await entries(stage)) == sorted([stopped, *ids, ("Taint.n2", "n2")])
    calls = [one.kwargs for one in listed.call_args_list if one.args == (VIRTUAL_MACHINE_INSTANCES,)]
    selectors = [{key: value for key, value in one.items() if key != "metadata_only"} for one in calls]
    by_name = [{"namespace": "default", "field_selector": f"metadata.name={name}"} for name in ("a", "b")]
    of_nodes = [{"label_selector": f"kubevirt.io/nodeName in ({node})"} for node in ("n1", "n2")]
    expected = {(500, 20): [], (2, 20): [*of_nodes, *by_name], (2, 0): [of_nodes[0], {}]}
    assert selectors == expected[page, asked]


async def test_taint_that_stays_is_not_settled(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.client.patch(NODES, "n1", MergePatch({"spec": {"taints": [{"key": TAINT, "effect": "NoSchedule"}]}}))
    await stage.complete("n1", "pre-drain")
    await stage.request("n1", "post")
    await stage.complete("n1", "post-drain")
    await stage.reboot("n1")
    await stage.run()
    assert await entries(stage) == [("Taint.n1", "n1")]


@pytest.mark.parametrize("listed", [True, False])
async def test_our_toolkit_records_the_vms_itself(stage: NodeUpgradeRun, *, listed: bool) -> None:
    await stage.set_up("n1", "n2")
    image = {"toolkitImage": {**RECORDED, "kind": "own"}}
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"status": image}), subresource="status")
    await stage.enter()
    await stage.run()
    await vm(stage, "a", "n1")
    await stage.request("n1", "pre")
    assert await entries(stage) == [("Taint.n1", "n1")]
    if listed:
        owner = Owner(name="up", uid=(await stage.plan())["metadata"]["uid"])
        found = [{"metadata": {"namespace": "default", "name": name}} for name in ("a", "b")]
        stopped = [stopped_vm(one, node="n1", since="2026-01-01T00:00:00Z") for one in found]
        await stage.cluster.put(CONFIG_MAPS, ledger_map(owner, stopped))
    await stage.complete("n1", "pre-drain")
    await stage.request("n1", "post")
    await stage.complete("n1", "post-drain")
    await stage.reboot("n1")
    await stage.run()
    ids = [("StoppedVM.default.a", "n1"), ("StoppedVM.default.b", "n1")] if listed else []
    assert await entries(stage) == ids
    await moved(stage, "a", "n3")
    await stage.rancher("n1", pre=None, post=None)
    await stage.request("n2", "pre")
    assert await entries(stage) == [*ids[1:], ("Taint.n2", "n2")]


async def test_single_node_has_no_drain(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    await vm(stage, "a", "n1")
    await stage.enter()
    await stage.run()
    assert await entries(stage) == [("StoppedVM.default.a", "n1")]
