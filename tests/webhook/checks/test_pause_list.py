from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, node
from upgrade_manager.kube.resources import NODES
from webhook.checks.pause_list import CHECK

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
    reader = MemoryReader({NODES: [node("n1"), node("n2")]})
    assert_messages(await find(CHECK, reader, nodeUpgradeOption=option), expected)


async def test_empty_pause_list_reads_nothing() -> None:
    reader = MemoryReader({})
    assert await find(CHECK, reader) == []
    assert reader.listings == []
