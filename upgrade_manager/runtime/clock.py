"""Two kinds of time: what the calendar says, for records, and what passes, for waiting."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from upgrade_manager.kube.clock import loop_time


class Clock(Protocol):
    """Where everything gets its time from, so that a test can own it.

    The two are never mixed: a calendar may jump (NTP, a resumed machine), so no duration is the difference of two
    `now()`; `monotonic()` means nothing outside this process, so it is never written down.
    """

    def now(self) -> datetime:
        """The calendar's time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...


class SystemClock:
    """The machine's calendar and the running loop's time, which in a test is virtual. Needs a running loop."""

    def now(self) -> datetime:
        """The calendar's time, aware, UTC."""
        return datetime.now(tz=UTC)

    def monotonic(self) -> float:
        """The time that the loop's timers and time-outs go by."""
        return loop_time()
