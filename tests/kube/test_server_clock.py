"""A clock that follows the API server's, by the Date headers of responses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from upgrade_manager.kube.clock import DatedTransport, ServerClock
from upgrade_manager.kube.transport import Request, Response, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

row = pytest.param
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
REQUEST = Request(method="GET", path="/version")


@dataclass(slots=True)
class LocalClock:
    """A clock that a test sets."""

    time: datetime = BEGIN

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return 7.0


@dataclass(slots=True)
class Server:
    """Responds after some seconds, with the time of a clock that is ahead."""

    clock: LocalClock
    #: Seconds.
    ahead: float = 0.0
    takes: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self) -> Response:
        self.clock.time += timedelta(seconds=self.takes)
        date = format_datetime(self.clock.time + timedelta(seconds=self.ahead), usegmt=True)
        return Response(status=self.status, headers={"date": date, **self.headers})

    async def send(self, request: Request) -> Response:
        assert request is REQUEST
        return self.answer()

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        assert request is REQUEST
        yield Opened(self.answer())


class Opened:
    """A stream without chunks."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""


async def corrected(server: Server) -> ServerClock:
    """Return the clock after a response."""
    clock = ServerClock(server.clock)
    await DatedTransport(server, clock).send(REQUEST)
    return clock


@pytest.mark.rule("blockers: ages are compared by the API server's clock")
@pytest.mark.parametrize("status", [200, 409])
@pytest.mark.parametrize(
    ("ahead", "takes", "correction"),
    [
        row(0, 0, 0, id="equal"),
        row(0.9, 0, 0, id="within a second"),
        row(-2.5, 0.5, 0, id="within the tolerance"),
        row(90, 0, 90.5, id="ahead"),
        row(-90, 0, -89.5, id="behind"),
        row(90, 10, 90.5, id="slow response"),
        row(-90, 10, -79.5, id="slow response of a server that is behind"),
        row(-20, 30, 0, id="response that is slower than the difference"),
    ],
)
async def test_clock_follows_the_api_server(ahead: float, takes: float, correction: float, status: int) -> None:
    server = Server(LocalClock(), ahead=ahead, takes=takes, status=status)
    clock = await corrected(server)
    assert (clock.now() - server.clock.now()).total_seconds() == pytest.approx(correction, abs=0.001)
    assert (clock.monotonic(), clock.local()) == (7.0, server.clock.time)


async def test_streams_correct_the_clock_too() -> None:
    server = Server(LocalClock(), ahead=300)
    clock = ServerClock(server.clock)
    async with DatedTransport(server, clock).open(REQUEST) as stream:
        assert [chunk async for chunk in stream.chunks()] == [b""]
    assert clock.now() - server.clock.now() == timedelta(seconds=300.5)


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 01 Jan 2026 12:00:00"])
async def test_header_that_is_not_a_time_is_ignored(date: str) -> None:
    server = Server(LocalClock(BEGIN), headers={"date": date})
    assert (await corrected(server)).now() == BEGIN


async def test_time_without_a_zone_is_in_utc() -> None:
    server = Server(LocalClock(BEGIN), headers={"date": "Thu, 01 Jan 2026 13:00:00 -0000"})
    assert (await corrected(server)).now() == BEGIN + timedelta(hours=1, seconds=0.5)


async def test_clock_stays_while_servers_differ_a_little() -> None:
    server = Server(LocalClock(), ahead=90)
    clock = await corrected(server)
    before = clock.now()
    for server.ahead in (88.0, 91.0, 92.0):
        await DatedTransport(server, clock).send(REQUEST)
        assert clock.now() == before


async def test_clock_that_is_set_right_is_followed_and_logged() -> None:
    server = Server(LocalClock(), ahead=90)
    with capture_logs() as logs:
        clock = await corrected(server)
        server.ahead = 0
        server.clock.time += timedelta(seconds=90)
        await DatedTransport(server, clock).send(REQUEST)
        server.ahead = 3.5
        await DatedTransport(server, clock).send(REQUEST)
    assert [one["seconds"] for one in logs] == [90, 0]


async def test_clock_does_not_follow_a_date_of_another_day() -> None:
    clock = await corrected(Server(LocalClock(), ahead=100_000.0))
    assert clock.now() == clock.local()
