"""How long to wait before trying again: longer each time, never twice the same, short again only after health."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Backoff:
    """Waits of a repeated attempt: uniform in [d, 2d), d doubling from 0.8 to 30 s, as a client-go reflector's.

    Departure: client-go starts over two minutes after it last started over, in the middle of an outage too. Here only
    two minutes of working connections since the last failure start over, so an outage of ten minutes costs about 18
    attempts, not 34.
    """

    FIRST = 0.8
    CAP = 30.0
    FACTOR = 2.0
    #: Seconds of health that make the next wait the first one again.
    HEALED = 120.0

    def __init__(self, *, random: Random) -> None:
        self._random = random
        self._next = self.FIRST
        #: Seconds that connections have worked since the last failure.
        self._health = 0.0

    def worked(self, seconds: float) -> None:
        """A connection was good for so long."""
        self._health += seconds
        if self._health >= self.HEALED:
            self._next = self.FIRST

    def failed(self, *, at_least: float = 0.0) -> float:
        """Seconds to wait now; `at_least` is what the server asked for."""
        delay, self._next = self._next, min(self._next * self.FACTOR, self.CAP)
        self._health = 0.0
        return max(self._random.uniform(delay, 2 * delay), at_least)
