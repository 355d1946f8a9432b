from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster_reader import MemoryReader, assert_messages, find, named, node, set_status
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from webhook.checks.nodes import CHECK

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from webhook.cluster import LiveReader

NOT_REPORTED = "Node n1 is not Ready: its kubelet has not reported. Repair it"


@pytest.mark.rule("admission: every node must be Ready and not cordoned")
@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("n1"), node("n2")], [], id="ready"),
        pytest.param([], ["The cluster has no nodes. "], id="none"),
        pytest.param(
            [node("n1", ready="Unknown"), node("n2", ready="False")],
            ["Node n1 is not Ready: kubelet is posting ready status. Repair it", "Node n2 is not Ready: "],
            id="not ready",
        ),
        pytest.param([node("n1", cordoned=True)], ["Node n1 is cordoned. Run kubectl uncordon n1"], id="cordoned"),
        pytest.param(
            [node("n1", ready="False", cordoned=True)],
            ["Repair it, then create the plan. It is cordoned. Run kubectl uncordon n1"],
            id="not ready and cordoned",
        ),
        pytest.param([named("n1")], [NOT_REPORTED], id="no status"),
        pytest.param([named("n1", spec=None, status={"conditions": None})], [NOT_REPORTED], id="null"),
        pytest.param([named("n1", spec=[], status={"conditions": ["Ready"]})], [NOT_REPORTED], id="wrong types"),
        pytest.param([{"metadata": None}], ["Node  is not Ready"], id="no name"),
    ],
)
async def test_nodes(nodes: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({NODES: nodes})), expected)


@pytest.mark.servers
async def test_nodes_on_a_server(client: Client, live: LiveReader) -> None:
    assert await find(CHECK, live) == []
    await client.patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": True}}))
    await set_status(client, NODES, "node-2", conditions=[{"type": "Ready", "status": "Unknown", "message": "Lost."}])
    assert_messages(await find(CHECK, live), ["Node node-1 is cordoned. ", "Node node-2 is not Ready: Lost. "])
