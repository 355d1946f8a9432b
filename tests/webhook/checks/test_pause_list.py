from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, node
from upgrade_manager.kube.resources import NODES
from webhook.checks.pause_list import CHECK

if TYPE_CHECKING:
    from webhook.cluster import LiveReader

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


@pytest.mark.servers
async def test_pause_list_on_a_server(live: LiveReader) -> None:
    found = await find(CHECK, live, nodeUpgradeOption={"pauseNodes": ["node-0", "node-9"]})
    assert_messages(found, [f"{FIELD}[1]: Node node-9 does not exist"])
