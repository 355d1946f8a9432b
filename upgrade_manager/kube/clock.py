"""Calendar time for records, and the event loop's time for durations."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol


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
