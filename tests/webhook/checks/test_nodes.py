from __future__ import annotations

import json

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, node
from upgrade_manager.api.keys import (
    ANNOTATION_POST_HOOK,
    ANNOTATION_PRE_HOOK,
    MACHINE_PLAN_SECRET_TYPE,
    RKE_MACHINE_NAME,
)
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES, SECRETS, Resource
from webhook.checks.nodes import CHECK

UNKNOWN = node("n1", ready="Unknown")
NOT_READY = "Node n1 is not Ready: kubelet is posting ready status. (1) Check"
DOWN = "(1) Check the console of node n1, and start it (2) Show its conditions: kubectl describe node n1"
CORDONED_N1 = "Node n1 is cordoned. Uncordon it: kubectl uncordon n1"
NOT_REPORTED = "Node n1 is not Ready: its kubelet has not reported. (1) Check"


@pytest.mark.rule("admission: every node must be Ready and not cordoned")
@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("n1"), node("n2")], [], id="ready"),
        pytest.param([], ["The cluster has no nodes. "], id="none"),
        pytest.param([UNKNOWN, node("n2", ready="False")], [NOT_READY, "Node n2 is not Ready: "], id="not ready"),
        pytest.param([node("n1", cordoned=True)], [CORDONED_N1], id="cordoned"),
        pytest.param([node("n1", ready="False", cordoned=True)], [DOWN, CORDONED_N1], id="not ready and cordoned"),
        pytest.param([named("n1")], [NOT_REPORTED], id="no status"),
        pytest.param([named("n1", spec=None, status={"conditions": None})], [NOT_REPORTED], id="null"),
        pytest.param([named("n1", spec=[], status={"conditions": ["Ready"]})], [NOT_REPORTED], id="wrong types"),
        pytest.param([{"metadata": None}], ["Node  is not Ready"], id="no name"),
    ],
)
async def test_nodes(nodes: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({NODES: nodes})), expected)


PRE, POST, OPTIONS = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain", "rke.cattle.io/drain-options"
BEFORE = json.dumps({"preDrainHooks": [{"annotation": ANNOTATION_PRE_HOOK}]})
AFTER = json.dumps({"postDrainHooks": [{"annotation": ANNOTATION_POST_HOOK}]})
OTHERS = json.dumps({"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}]})
CORDONED = ["Node n1 is cordoned. "]
MACHINE = named("m-n1", "fleet-local", status={"nodeRef": {"name": "n1"}})


def secret(machine: str = "m-n1", **annotations: str) -> Object:
    labels = {RKE_MACHINE_NAME: machine}
    return named("s", "fleet-local", labels=labels, annotations=annotations, type=MACHINE_PLAN_SECRET_TYPE)


@pytest.mark.rule("admission: a node that an earlier upgrade holds cordoned is accepted, as the new plan takes over")
@pytest.mark.parametrize(
    ("secrets", "expected"),
    [
        pytest.param([secret(**{OPTIONS: BEFORE, PRE: BEFORE})], [], id="pre-drain"),
        pytest.param([secret(**{POST: AFTER})], [], id="post-drain, strategy given back"),
        pytest.param([secret(**{OPTIONS: BEFORE})], [], id="drain begun"),
        pytest.param([secret(**{PRE: BEFORE, ANNOTATION_PRE_HOOK: BEFORE})], [], id="acknowledged"),
        pytest.param([secret(**{OPTIONS: OTHERS, PRE: OTHERS})], CORDONED, id="hooks of others"),
        pytest.param([secret(**{PRE: "x"})], CORDONED, id="invalid options"),
        pytest.param([secret("m-n2", **{PRE: BEFORE})], CORDONED, id="another node"),
        pytest.param([secret()], CORDONED, id="no drain"),
        pytest.param([], CORDONED, id="no Secret"),
    ],
)
async def test_node_that_an_earlier_upgrade_cordoned(secrets: list[Object], expected: list[str]) -> None:
    nodes = [node("n1", cordoned=True), node("n2")]
    assert_messages(await find(CHECK, MemoryReader({NODES: nodes, SECRETS: secrets, MACHINES: [MACHINE]})), expected)


@pytest.mark.rule("admission: a user's cordon is refused beside one of an earlier upgrade")
async def test_cordon_of_a_user_is_reported_beside_a_held_node() -> None:
    nodes = [node("n1", cordoned=True), node("n2", cordoned=True)]
    reader = MemoryReader({NODES: nodes, SECRETS: [secret(**{PRE: BEFORE})], MACHINES: [MACHINE]})
    assert_messages(await find(CHECK, reader), ["Node n2 is cordoned. "])


@pytest.mark.parametrize("missing", [SECRETS, MACHINES])
async def test_cordoned_node_is_reported_without_the_kind(missing: Resource) -> None:
    reader = MemoryReader({NODES: [node("n1", cordoned=True)]}, missing=[missing])
    assert_messages(await find(CHECK, reader), CORDONED)


async def test_node_that_an_earlier_upgrade_holds_must_be_ready() -> None:
    nodes = [node("n1", ready="False", cordoned=True)]
    reader = MemoryReader({NODES: nodes, SECRETS: [secret(**{PRE: BEFORE})], MACHINES: [MACHINE]})
    [message] = await find(CHECK, reader)
    assert message.endswith(DOWN)
