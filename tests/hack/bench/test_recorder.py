from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from hack.bench.recorder import Recorder
from hack.bench.replay import UnfaithfulReplay, replay
from hack.bench.translation import Translation
from upgrade_manager.kube.transport import Request, Response, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

GET = Request(method="GET", path="/api/v1/nodes", headers={"user-agent": "manager/1"})
WATCH = Request(method="GET", path="/api/v1/nodes", query=(("watch", "true"),), headers={"user-agent": "other"})
STATUS = Request(method="PATCH", path="/apis/management.harvesterhci.io/v1beta1/upgradeplans/demo/status")


class Silence:
    """A stream that ends at once."""

    status = 200
    headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in (b"",):
            yield chunk


class Server:
    """Answers every request with one status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(status=self.status, body=b"{}")

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        self.requests.append(request)
        yield Silence()


async def recorded() -> Recorder:
    recorder = Recorder(Server(200))
    await recorder.send(GET)
    async with recorder.open(WATCH) as stream:
        assert [chunk async for chunk in stream.chunks()] == [b""]
    await recorder.send(STATUS)
    return recorder


async def test_it_knows_who_asked_what() -> None:
    recorder = await recorded()
    assert [exchange.request for exchange in recorder.of("manager")] == [GET]
    assert [exchange.watches for exchange in recorder.exchanges] == [False, True, False]
    assert [exchange.writes for exchange in recorder.exchanges] == [False, False, True]
    assert [exchange.writes_status for exchange in recorder.exchanges] == [False, False, True]


async def test_a_replay_sends_the_same_requests_in_order() -> None:
    server = Server(200)
    await replay(server, (await recorded()).exchanges, Translation())
    assert server.requests == [GET, WATCH, STATUS]


async def test_a_replay_that_is_answered_otherwise_is_refused() -> None:
    with pytest.raises(UnfaithfulReplay, match="only 1 of 3"):
        await replay(Server(404), (await recorded()).exchanges, Translation())
