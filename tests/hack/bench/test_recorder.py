from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from hack.bench.recorder import Audit, Recorder
from hack.bench.upgrade import Translation, UnfaithfulReplay, replay
from upgrade_manager.kube.transport import Request, Response, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

GET = Request(method="GET", path="/api/v1/nodes", headers={"user-agent": "manager/1"})
WATCH = Request(method="GET", path="/api/v1/nodes", query=(("watch", "true"),), headers={"user-agent": "other"})
STATUS = Request(method="PATCH", path="/apis/management.harvesterhci.io/v1beta1/upgradeplans/demo/status")
#: An entry of an audit log.
EVENT = {
    "kind": "Event",
    "verb": "patch",
    "requestURI": "/apis/batch/v1/namespaces/a/jobs/one?fieldValidation=Strict",
    "userAgent": "manager/1",
    "requestObject": {"spec": {"suspend": True}},
    "responseStatus": {"code": 200},
    "responseObject": {"kind": "Job"},
    "requestReceivedTimestamp": "2026-01-01T00:00:00.250000Z",
    "stageTimestamp": "2026-01-01T00:00:01.500000Z",
}


class EmptyStream:
    """A stream that ends at once."""

    status = 200
    headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in (b"",):
            yield chunk


class Server:
    """Responds to every request with one status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(status=self.status, body=b"{}")

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        self.requests.append(request)
        yield EmptyStream()


async def recorded() -> Recorder:
    recorder = Recorder(Server(200))
    await recorder.send(GET)
    async with recorder.open(WATCH) as stream:
        assert [chunk async for chunk in stream.chunks()] == [b""]
    await recorder.send(STATUS)
    return recorder


async def test_exchanges_are_classified() -> None:
    recorder = await recorded()
    assert [exchange.request for exchange in recorder.of("manager")] == [GET]
    assert [exchange.watches for exchange in recorder.exchanges] == [False, True, False]
    assert [exchange.writes for exchange in recorder.exchanges] == [False, False, True]
    assert [exchange.writes_status for exchange in recorder.exchanges] == [False, False, True]


async def test_replay_sends_the_same_requests_in_order() -> None:
    server = Server(200)
    await replay(server, (await recorded()).exchanges, Translation())
    assert server.requests == [GET, WATCH, STATUS]


async def test_replay_with_other_responses_is_an_error() -> None:
    with pytest.raises(UnfaithfulReplay, match="only 1 of 3 responses"):
        await replay(Server(404), (await recorded()).exchanges, Translation())


def test_audit_log_entry_is_read_as_an_exchange(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    (tmp_path / "audit.log").write_text(json.dumps(EVENT) + "\n")
    (exchange,) = audit.exchanges()
    assert (exchange.request.method, exchange.request.path) == ("PATCH", "/apis/batch/v1/namespaces/a/jobs/one")
    assert json.loads(exchange.request.body) == {"spec": {"suspend": True}}
    assert (exchange.user_agent, exchange.status, exchange.writes) == ("manager/1", 200, True)
    assert exchange.ended - exchange.began == 1.25
    assert json.loads(exchange.body) == {"kind": "Job"}
