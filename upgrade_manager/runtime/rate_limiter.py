"""How long a failed key waits for its next try (client-go's workqueue rate limiters)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

#: 2 to this power times any base delay is above any maximum, and still a float.
_MAX_EXPONENT = 64


def jitter(random: Random, factor: float) -> Callable[[float], float]:
    """Return a function that makes a delay of d seconds uniform in [d, d·(1+factor)), so that retries spread out."""

    def spread(seconds: float) -> float:
        return seconds * (1 + factor * random.random())

    return spread


class ItemExponentialFailureRateLimiter:
    """Delays a key by `base_delay`·2ⁿ seconds after n earlier failures, at most by `max_delay`, plus jitter."""

    def __init__(self, *, base_delay: float, max_delay: float, jitter: Callable[[float], float]) -> None:
        self._base_delay = base_delay
        self._max_delay = max_delay
        self._jitter = jitter
        #: Keys with at least one failure.
        self._failures: dict[str, int] = {}

    def when(self, key: str) -> float:
        """Count a failure of the key and return the seconds to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return self._jitter(min(self._base_delay * 2.0 ** min(failures, _MAX_EXPONENT), self._max_delay))

    def forget(self, key: str) -> None:
        """Reset the failures of the key."""
        self._failures.pop(key, None)

    def num_requeues(self, key: str) -> int:
        """Failures of the key since `forget`."""
        return self._failures.get(key, 0)
