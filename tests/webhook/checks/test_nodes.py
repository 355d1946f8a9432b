from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, node
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS
from webhook.checks.nodes import CHECK

UNKNOWN = node("n1", ready="Unknown")
NOT_READY = "Node n1 is not Ready: kubelet is posting ready status. Repair it"
BOTH = "Repair it, then create the plan: kubectl describe node n1. It is cordoned. Run kubectl uncordon n1"
NOT_REPORTED = "Node n1 is not Ready: its kubelet has not reported. Repair it"


@pytest.mark.rule("admission: every node must be Ready and not cordoned")
@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("n1"), node("n2")], [], id="ready"),
        pytest.param([], ["The cluster has no nodes. "], id="none"),
        pytest.param([UNKNOWN, node("n2", ready="False")], [NOT_READY, "Node n2 is not Ready: "], id="not ready"),
        pytest.param([node("n1", cordoned=True)], ["Node n1 is cordoned. Run kubectl uncordon n1"], id="cordoned"),
        pytest.param([node("n1", ready="False", cordoned=True)], [BOTH], id="not ready and cordoned"),
        pytest.param([named("n1")], [NOT_REPORTED], id="no status"),
        pytest.param([named("n1", spec=None, status={"conditions": None})], [NOT_REPORTED], id="null"),
        pytest.param([named("n1", spec=[], status={"conditions": ["Ready"]})], [NOT_REPORTED], id="wrong types"),
        pytest.param([{"metadata": None}], ["Node  is not Ready"], id="no name"),
    ],
)
async def test_nodes(nodes: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({NODES: nodes})), expected)


def held(strategy: Any) -> list[Object]:
    return [named("local", "fleet-local", spec={"rkeConfig": {"upgradeStrategy": strategy}})]


HOOKS = {"preDrainHooks": [{"annotation": "management.harvesterhci.io/pre-hook"}]}
CORDONED = ["Node n1 is cordoned. "]


@pytest.mark.rule("admission: a node that an earlier upgrade holds cordoned is accepted, as the new plan takes over")
@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        pytest.param(held({"workerDrainOptions": HOOKS}), [], id="hooks"),
        pytest.param(held({"controlPlaneConcurrency": "1", "controlPlaneDrainOptions": HOOKS}), [], id="other values"),
        pytest.param(held({"workerDrainOptions": {"enabled": True}}), CORDONED, id="no hooks"),
        pytest.param(
            held({"workerDrainOptions": {"preDrainHooks": [{"annotation": "other"}]}}), CORDONED, id="hooks of others"
        ),
        pytest.param(held({"workerDrainOptions": {"preDrainHooks": [None, "x"]}}), CORDONED, id="wrong types"),
        pytest.param(held([]), CORDONED, id="no strategy"),
        pytest.param([], CORDONED, id="no cluster"),
    ],
)
async def test_node_that_an_earlier_upgrade_cordoned(clusters: list[Object], expected: list[str]) -> None:
    reader = MemoryReader({NODES: [node("n1", cordoned=True), node("n2")], PROVISIONING_CLUSTERS: clusters})
    assert_messages(await find(CHECK, reader), expected)


async def test_cordoned_node_is_reported_without_kind_of_the_cluster() -> None:
    reader = MemoryReader({NODES: [node("n1", cordoned=True)]}, missing=[PROVISIONING_CLUSTERS])
    assert_messages(await find(CHECK, reader), CORDONED)


async def test_node_that_an_earlier_upgrade_holds_must_be_ready() -> None:
    nodes = [node("n1", ready="False", cordoned=True)]
    reader = MemoryReader({NODES: nodes, PROVISIONING_CLUSTERS: held({"workerDrainOptions": HOOKS})})
    [message] = await find(CHECK, reader)
    assert message.endswith("Repair it, then create the plan: kubectl describe node n1")
