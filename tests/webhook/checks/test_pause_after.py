from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, node
from upgrade_manager.kube.resources import NODES
from webhook.checks.pause_after import CHECK

REFUSED = "The cluster has 2 nodes, so that the upgrade never pauses after 3. Use at most 2, or remove it"


@pytest.mark.rule("admission: pauseAfter is at most the number of nodes")
@pytest.mark.parametrize(
    ("option", "expected"), [({}, []), ({"pauseAfter": 1}, []), ({"pauseAfter": 2}, []), ({"pauseAfter": 3}, [REFUSED])]
)
async def test_pause_after(option: object, expected: list[str]) -> None:
    reader = MemoryReader({NODES: [node("n1"), node("n2")]})
    assert_messages(await find(CHECK, reader, nodeUpgradeOption=option), expected)
