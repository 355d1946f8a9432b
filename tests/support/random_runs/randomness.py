"""Sources of randomness at the bounds of a jitter."""

from __future__ import annotations

from random import Random


class Lowest(Random):
    """Returns the lower bound."""

    def random(self) -> float:
        return 0.0


class Highest(Random):
    """Returns the upper bound."""

    def random(self) -> float:
        return 1.0
