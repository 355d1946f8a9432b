"""Calendar time for records and ages, and the event loop's time for durations.

The API server writes most times with which the manager compares its own. `ServerClock` therefore follows the API
server's clock; cli/application.py gives it to the manager. The leader election compares no calendar times.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Protocol

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

#: The difference of two clocks that is ignored, because the API servers' clocks differ from each other, too.
TOLERANCE = timedelta(seconds=2)
#: The change of the difference from which on it is logged.
_LOGGED = timedelta(seconds=5)
#: The resolution of the Date header.
_SECOND = timedelta(seconds=1)
#: The largest correction: with a larger one certificates and tokens would not be valid, so that the header is wrong.
LARGEST = timedelta(days=1)
_log = structlog.get_logger(__name__)


def loop_time() -> float:
    """Return the running loop's time in seconds. It is monotonic, and virtual in tests."""
    return asyncio.get_running_loop().time()


class Clock(Protocol):
    """A source of time that tests can replace.

    Calendar time may jump (NTP, a resumed machine): never compute durations from `now()`.
    """

    def now(self) -> datetime:
        """Return the calendar time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment; only differences within this process are meaningful."""
        ...


class SystemClock:
    """The machine's calendar and the running loop's time."""

    def now(self) -> datetime:
        """Return the calendar time in UTC."""
        return datetime.now(tz=UTC)

    def monotonic(self) -> float:
        """Return the loop's time; requires a running loop."""
        return loop_time()


class ServerClock:
    """The clock of the process, corrected by the Date headers of the API server's responses."""

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._correction = timedelta(0)

    def now(self) -> datetime:
        """Return the calendar time of the API server in UTC."""
        return self._local.now() + self._correction

    def monotonic(self) -> float:
        """Return the time of the local clock, which is never corrected."""
        return self._local.monotonic()

    def local(self) -> datetime:
        """Return the calendar time of the local clock, for `observe`."""
        return self._local.now()

    def observe(self, headers: Mapping[str, str], *, sent: datetime) -> None:
        """Correct the clock by a response to a request that was sent at that time of the local clock.

        A slow response leaves more corrections possible. A possible correction stays, and another one changes as little
        as possible, so that the clock does not waver.
        """
        served = _read_date(headers.get("date", ""))
        if served is None:
            return
        least, most = served - self._local.now(), served + _SECOND - sent
        if abs(least) > LARGEST:
            return
        if least - TOLERANCE <= self._correction <= most + TOLERANCE:
            return
        before = self._correction
        self._correction = least + _SECOND / 2 if before < least else most - _SECOND / 2
        if abs(self._correction - before) >= _LOGGED:
            seconds = round(self._correction.total_seconds())
            _log.warning("the clock of this machine differs from the API server's, which counts", seconds=seconds)


class DatedTransport:
    """A transport that shows the headers of all responses to the clock."""

    def __init__(self, inner: Transport, clock: ServerClock) -> None:
        self._inner = inner
        self._clock = clock

    async def send(self, request: Request) -> Response:
        """See Transport."""
        sent = self._clock.local()
        response = await self._inner.send(request)
        self._clock.observe(response.headers, sent=sent)
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """See Transport."""
        sent = self._clock.local()
        async with self._inner.open(request) as stream:
            self._clock.observe(stream.headers, sent=sent)
            yield stream


def _read_date(text: str) -> datetime | None:
    """Return the time of a Date header; None without a valid one."""
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
