"""A line that is cut, torn and silent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hack.faults.breakable_transport import BreakableTransport
from tests.support.server.apiserver import make_server
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.kube.transport import Request
from upgrade_manager.kube.watch import IDLE_TIMEOUT, StreamWatcher

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> ApiServer:
    return make_server()


@pytest.fixture
async def line(server: ApiServer) -> BreakableTransport:
    return BreakableTransport(server)


@pytest.fixture
def wire(line: BreakableTransport) -> RawClient:
    return RawClient(line)


def request(*, timeout: float = 30.0) -> Request:
    return Request(method="GET", path=MAPS, timeout=timeout)


async def test_cut_refuses_requests_and_breaks_streams(line: BreakableTransport, wire: RawClient) -> None:
    async with wire.watch(MAPS) as events:
        line.cut()
        with pytest.raises(Transient, match="torn"):
            await events.next()
    with pytest.raises(Transient) as refused:
        await wire.get(MAPS)
    assert refused.value.reason == REFUSED
    with pytest.raises(Transient):
        async with wire.watch(MAPS):
            pass
    line.mend()
    assert (await wire.get(MAPS)).names == []


async def test_streams_break_in_opening_order(line: BreakableTransport, wire: RawClient) -> None:
    broken: list[int] = []

    async def read(number: int) -> None:
        async with wire.watch(MAPS) as events:
            with pytest.raises(Transient, match="torn"):
                await events.next()
            broken.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(read(number))
        await asyncio.sleep(1)
        line.tear()
    assert broken == list(range(20))


async def test_blackholed_requests_proceed_when_restored(
    server: ApiServer, line: BreakableTransport, wire: RawClient
) -> None:
    async with wire.watch(MAPS) as events:
        line.hush()
        await RawClient(server).post(MAPS, {"metadata": {"name": "a"}})
        asking = asyncio.create_task(wire.get(MAPS))
        reading = asyncio.create_task(events.take(1))
        await asyncio.sleep(20)
        assert not asking.done()
        assert not reading.done()
        line.mend()
        assert await reading == [("ADDED", "a")]
        assert (await asking).names == ["a"]


async def test_blackholed_request_ends_at_its_timeout(line: BreakableTransport) -> None:
    line.hush()
    loop = asyncio.get_running_loop()
    with pytest.raises(Transient) as silent:
        await line.send(request(timeout=7))
    assert (silent.value.reason, loop.time()) == (TIMED_OUT, 7)
    with pytest.raises(Transient):
        async with line.open(request(timeout=7)):
            pass
    assert loop.time() == 14


async def test_blackholed_watch_ends_at_its_idle_timeout(line: BreakableTransport) -> None:
    async with line.open(request(timeout=7)) as stream:
        line.hush()
        with pytest.raises(Transient):
            await anext(StreamWatcher(stream, timeout=300))
    assert asyncio.get_running_loop().time() == IDLE_TIMEOUT
