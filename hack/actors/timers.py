"""How long things still take: a wait that begins when it is first asked about."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


class Timers:
    """Deadlines by owner and name, on the loop's clock.

    An actor that looks at the same thing again and again asks how much of a wait is left, and gets on with it when
    nothing is.
    """

    def __init__(self) -> None:
        self._ends: dict[str, dict[Hashable, float]] = {}

    def left(self, owner: str, what: Hashable, seconds: float) -> float:
        """Seconds left of the owner's wait; the first call starts it with that length, later lengths do not count."""
        now = asyncio.get_running_loop().time()
        end = self._ends.setdefault(owner, {}).setdefault(what, now + seconds)
        return max(0.0, end - now)

    def stop(self, owner: str, what: Hashable) -> None:
        """Forget one wait: the next question starts it anew."""
        self._ends.get(owner, {}).pop(what, None)

    def forget(self, owner: str) -> None:
        """Drop all waits of an owner that is gone."""
        self._ends.pop(owner, None)
