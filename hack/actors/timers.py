"""Timers that start at their first read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


class Timers:
    """Deadlines by owner and name, on the loop's clock.

    An actor reads the remaining time at each reconcile and proceeds at zero.
    """

    def __init__(self) -> None:
        self._ends: dict[str, dict[Hashable, float]] = {}

    def left(self, owner: str, what: Hashable, seconds: float) -> float:
        """Return the seconds left of the owner's timer; the first call starts it with that length."""
        now = asyncio.get_running_loop().time()
        end = self._ends.setdefault(owner, {}).setdefault(what, now + seconds)
        return max(0.0, end - now)

    def stop(self, owner: str, what: Hashable) -> None:
        """Remove one timer; the next read starts it again."""
        self._ends.get(owner, {}).pop(what, None)

    def forget(self, owner: str) -> None:
        """Remove all timers of a deleted owner."""
        self._ends.pop(owner, None)
