from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, node
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES
from webhook.checks.pause_list import CHECK

UNMANAGED = named("n3", labels={"harvesterhci.io/managed": "false"})
FIELD = "spec.nodeUpgradeOption.pauseNodes"


@pytest.mark.rule("admission: names in the pause list must be nodes")
@pytest.mark.parametrize(
    ("option", "expected"),
    [
        pytest.param({"pauseNodes": ["n1", "n2"]}, [], id="all exist"),
        pytest.param({"pauseNodes": []}, [], id="empty"),
        pytest.param({"pauseNodes": None}, [], id="null"),
        pytest.param(None, [], id="no option"),
        pytest.param({"pauseNodes": ["n1", "x"]}, [f"{FIELD}[1]: Node x does not exist. "], id="one unknown"),
        pytest.param(
            {"pauseNodes": ["y", "n2", "x"]}, [f"{FIELD}[0]: Node y", f"{FIELD}[2]: Node x"], id="two unknown"
        ),
    ],
)
async def test_pause_list(option: object, expected: list[str]) -> None:
    reader = MemoryReader({NODES: [node("n1"), node("n2")], MACHINES: []})
    assert_messages(await find(CHECK, reader, nodeUpgradeOption=option), expected)


@pytest.mark.parametrize(
    ("node_", "machines", "expected"),
    [
        pytest.param(UNMANAGED, [], [], id="without the managed label"),
        pytest.param(UNMANAGED, ["n3"], [], id="with a Machine"),
        pytest.param(None, ["n3"], [], id="without a Node, with a Machine"),
        pytest.param(None, ["n1"], [f"{FIELD}[0]: Node n3 does not exist. "], id="with neither"),
        pytest.param(None, None, [f"{FIELD}[0]: Node n3 does not exist. "], id="without Cluster API"),
    ],
)
async def test_node_of_a_machine_may_be_paused(
    node_: Object | None, machines: list[str] | None, expected: list[str]
) -> None:
    found = [named(f"m-{name}", "fleet-local", status={"nodeRef": {"name": name}}) for name in machines or ()]
    reader = MemoryReader(
        {NODES: [node("n1"), *filter(None, [node_])]} | ({} if machines is None else {MACHINES: found})
    )
    assert_messages(await find(CHECK, reader, nodeUpgradeOption={"pauseNodes": ["n3"]}), expected)


async def test_empty_pause_list_reads_nothing() -> None:
    reader = MemoryReader({})
    assert await find(CHECK, reader) == []
    assert reader.listings == []
