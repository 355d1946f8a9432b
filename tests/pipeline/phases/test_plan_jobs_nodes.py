"""Nodes on which a Plan of the system-upgrade-controller would not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.phases.plan_jobs import names_collide, prepare_nodes

if TYPE_CHECKING:
    from tests.support.harvester import Harvester


@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
async def test_label_of_an_earlier_plan_is_removed(cluster: Harvester) -> None:
    await cluster.nodes("n1", **{"plan.upgrade.cattle.io/up-image-preload": "hash"})
    await cluster.nodes("n2", **{"plan.upgrade.cattle.io/other": "hash"})
    ctx = cluster.context(await cluster.plan())
    nodes = (await cluster.client.list(NODES)).items
    await prepare_nodes(ctx, nodes, "up-image-preload")
    found = {objects.name(node): objects.labels(node) for node in (await cluster.client.list(NODES)).items}
    assert "plan.upgrade.cattle.io/up-image-preload" not in found["n1"]
    assert "plan.upgrade.cattle.io/other" in found["n2"]
    assert len(ctx.writes) == 1


async def test_no_nodes_is_an_error(cluster: Harvester) -> None:
    with pytest.raises(BadCluster, match="no Node carries the label"):
        await prepare_nodes(cluster.context(await cluster.plan()), [], "up-image-preload")


@pytest.mark.rule("workloads: a hostname label other than the node's name is reported before a Plan is created")
@pytest.mark.parametrize("hostname", ["n1.example.org", None])
async def test_hostname_other_than_the_name_is_an_error(cluster: Harvester, hostname: str | None) -> None:
    labels = {"kubernetes.io/hostname": hostname} if hostname else {}
    node = {"metadata": {"name": "n1", "labels": labels}}
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(BadCluster, match="Node n1: its label"):
        await prepare_nodes(ctx, [node], "up-image-preload")


@pytest.mark.parametrize("value", ["99e7de4ce98589bc847e", "disabled", ""], ids=["a hash", "disabled", "empty"])
async def test_label_is_removed_whatever_its_value(cluster: Harvester, value: str) -> None:
    await cluster.nodes("n1", "n2", **{"plan.upgrade.cattle.io/up-image-preload": value})
    ctx = cluster.context(await cluster.plan())
    nodes = (await cluster.client.list(NODES)).items
    for _ in range(2):
        await prepare_nodes(ctx, nodes, "up-image-preload")
        nodes = (await cluster.client.list(NODES)).items
    assert [key for node in nodes for key in objects.labels(node) if key.startswith("plan.upgrade")] == []
    assert len(ctx.writes) == 2


async def test_deleted_node_needs_no_label_removed(cluster: Harvester) -> None:
    labels = {"kubernetes.io/hostname": "deleted", "plan.upgrade.cattle.io/up-image-preload": "hash"}
    ctx = cluster.context(await cluster.plan())
    await prepare_nodes(ctx, [{"metadata": {"name": "deleted", "labels": labels}}], "up-image-preload")
    assert ctx.writes == []


@pytest.mark.parametrize("length", [64, 200, 253])
async def test_name_too_long_for_a_label_is_an_error(cluster: Harvester, length: int) -> None:
    node = {"metadata": {"name": "n" * length, "labels": {}}}
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(BadCluster, match=r"Node n+: the system-upgrade-controller .*concurrency to -1"):
        await prepare_nodes(ctx, [node], "up-image-preload")


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        pytest.param(["n1", "n2"], False, id="plain names"),
        pytest.param(["n1.example.org", "n2.example.org"], False, id="their own first labels"),
        pytest.param(["node.rack-1", "node.rack-2"], True, id="one first label"),
        pytest.param(["node", "node.rack-2"], True, id="with and without a dot"),
        pytest.param([], False, id="no node"),
    ],
)
def test_names_collide_up_to_the_first_dot(names: list[str], shared: bool) -> None:  # noqa: FBT001
    assert names_collide({"metadata": {"name": name}} for name in names) is shared
