"""Readers that share lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from webhook.cluster import Listing, NotInstalled
from webhook.listings import MACHINES, NODES
from webhook.sharing import SharedReader, SnapshotReader

DURATION = 1.0


class SlowCluster:
    """Returns the loop time at which each list began."""

    def __init__(self) -> None:
        self.lists: list[str] = []
        self.error: Exception | None = None

    async def list(self, listing: Listing) -> Sequence[Object]:
        began = asyncio.get_running_loop().time()
        self.lists.append(listing.resource.plural)
        await asyncio.sleep(DURATION)
        if self.error is not None:
            raise self.error
        return [{"at": began}]


@pytest.fixture
def cluster() -> SlowCluster:
    return SlowCluster()


async def test_callers_that_wait_share_the_next_list(cluster: SlowCluster) -> None:
    reader = SharedReader(cluster)
    found = await asyncio.gather(*(reader.list(NODES) for _ in range(50)))
    assert [one[0]["at"] for one in found] == [0.0, *[DURATION] * 49]
    assert cluster.lists == ["nodes"] * 2


@pytest.mark.rule("admission: reviews that wait at the same time share a list that began after each of them")
async def test_caller_gets_a_list_that_began_after_its_call(cluster: SlowCluster) -> None:
    reader = SharedReader(cluster)

    async def call(after: float) -> float:
        await asyncio.sleep(after)
        [found] = await reader.list(NODES)
        began: float = found["at"]
        return began - after

    ages = await asyncio.gather(*(call(after / 10) for after in range(60)))
    assert min(ages) >= 0
    assert max(ages) <= DURATION
    assert len(cluster.lists) <= 8


async def test_other_listings_are_not_waited_for(cluster: SlowCluster) -> None:
    reader = SharedReader(cluster)
    await asyncio.gather(reader.list(NODES), reader.list(MACHINES))
    assert asyncio.get_running_loop().time() == DURATION


@pytest.mark.parametrize("error", [Transient("refused"), NotInstalled("nodes")], ids=["error", "not installed"])
async def test_callers_that_wait_share_an_error(cluster: SlowCluster, error: Exception) -> None:
    reader = SharedReader(cluster)
    cluster.error = error
    found = await asyncio.gather(*(reader.list(NODES) for _ in range(50)), return_exceptions=True)
    assert found == [error] * 50
    assert cluster.lists == ["nodes"] * 2


async def test_caller_does_not_get_an_earlier_error(cluster: SlowCluster) -> None:
    reader = SharedReader(cluster)
    cluster.error = Transient("refused")
    async with asyncio.TaskGroup() as group:
        failing = [group.create_task(_error_of(reader)) for _ in range(2)]
        await asyncio.sleep(1.5 * DURATION)
        cluster.error = None
        later = group.create_task(reader.list(NODES))
    assert [one.result() for one in failing] == ["refused", ""]
    assert later.result() == [{"at": 2 * DURATION}]


async def _error_of(reader: SharedReader) -> str:
    try:
        await reader.list(NODES)
    except Transient as error:
        return str(error)
    return ""


async def test_next_caller_reads_after_a_cancelled_one(cluster: SlowCluster) -> None:
    reader = SharedReader(cluster)
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(reader.list(NODES)) for _ in range(2))
        await asyncio.sleep(DURATION / 2)
        first.cancel()
    assert second.result() == [{"at": DURATION / 2}]


async def test_objects_are_dropped_after_the_last_caller(cluster: SlowCluster) -> None:
    reader = SharedReader(cluster)
    first = await reader.list(NODES)
    assert await reader.list(NODES) is not first
    assert reader._slots == {}


async def test_snapshot_reads_each_listing_once_unless_it_fails(cluster: SlowCluster) -> None:
    reader = SnapshotReader(cluster)
    cluster.error = Transient("refused")
    with pytest.raises(Transient):
        await reader.list(NODES)
    cluster.error = None
    cluster.lists.clear()
    found = await asyncio.gather(*(reader.list(NODES) for _ in range(3)), reader.list(MACHINES))
    assert found[0] is found[1] is found[2]
    assert sorted(cluster.lists) == ["machines", "nodes"]
