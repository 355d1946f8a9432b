from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, node
from upgrade_manager.facts.missing_nodes import unlabelled
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES
from webhook.checks.pairing import CHECK

LABEL, ANNOTATION = "harvesterhci.io/managed", "cluster.x-k8s.io/machine"
ANNOTATE = f"kubectl annotate --overwrite node n1 {ANNOTATION}"
UNMANAGED: dict[str, Any] = {LABEL: "false"}
NUMBERS = "the numbers of nodes ({}) and Machines ({}) differ. "
#: The upgrade has the same message.
NO_LABEL = f"Node n1 {str(unlabelled('n1')).removeprefix('it ')}"


def machine(name: str, of: object) -> Object:
    return named(name, "fleet-local", status={"nodeRef": of})


ONE, TWO = (machine(f"m-{name}", {"name": name}) for name in ("n1", "n2"))
ITS_MACHINE = {ANNOTATION: "m-n1"}
CORRECT = f"Correct its annotation: {ANNOTATE}=m-n1"
NO_ANNOTATION = f"Node n1 lacks the annotation {ANNOTATION}. {CORRECT}"
UNKNOWN = f"Node n1 names Machine fleet-local/m-x, which does not exist. {CORRECT}"
CHOOSE = (
    "(1) Show the Machines and their nodes: kubectl get machines.cluster.x-k8s.io -n fleet-local "
    f"(2) Set annotation {ANNOTATION} to the name of its Machine: kubectl edit node n1"
)
AMBIGUOUS = f"Node n1 names Machine fleet-local/m-x, which does not exist. {CHOOSE}"
OF_ANOTHER = f"Node n1 names Machine fleet-local/m-n2 of node n2. {CORRECT}"
NO_NODE = "Machine fleet-local/m-n1 has no node. Wait until its node has joined"
NAMES_NONE = "Node n1 names Machine fleet-local/m-n1, whose status.nodeRef is empty. Wait"


@pytest.mark.rule("admission: every node must be managed and have one Machine, which names it")
@pytest.mark.parametrize(
    ("nodes", "machines", "expected"),
    [
        pytest.param([node("n1"), node("n2")], [ONE, TWO], [], id="paired"),
        pytest.param([node("n1")], [], [NUMBERS.format(1, 0), "m-n1, which does not exist. "], id="no machine"),
        pytest.param([node("n1")], [ONE, machine("m2", {"name": "n2"})], [NUMBERS.format(1, 2)], id="no node"),
        pytest.param([node("n1")], [machine("m-n1", None)], [NAMES_NONE, NO_NODE], id="no nodeRef"),
        pytest.param([node("n1")], [machine("m-n1", ["n1"])], [NAMES_NONE, NO_NODE], id="nodeRef of a wrong type"),
        pytest.param([node("n1")], [named("m-n1", "fleet-local")], [NAMES_NONE, NO_NODE], id="no status"),
        pytest.param([node("n1", **UNMANAGED)], [ONE], [NO_LABEL], id="not managed"),
        pytest.param([named("n1", labels={LABEL: True}, annotations=ITS_MACHINE)], [ONE], [NO_LABEL], id="bool"),
        pytest.param([named("n1", labels={LABEL: "true"})], [ONE], [NO_ANNOTATION], id="no annotation"),
        pytest.param([named("n1", labels=None, annotations=None)], [ONE], [NO_LABEL, NO_ANNOTATION], id="null"),
        pytest.param([node("n1", machine="m-x")], [ONE], [UNKNOWN], id="unknown machine"),
        pytest.param(
            [node("n1", machine="m-x")],
            [ONE, machine("m-2", {"name": "n1"})],
            [NUMBERS.format(1, 2), AMBIGUOUS],
            id="two machines",
        ),
        pytest.param([node("n1", machine="m-n2"), node("n2")], [ONE, TWO], [OF_ANOTHER], id="machine of another node"),
    ],
)
async def test_pairing(nodes: list[Object], machines: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({NODES: nodes, MACHINES: machines})), expected)
