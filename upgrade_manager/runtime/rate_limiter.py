"""How long a key that failed waits for its next try (client-go's workqueue rate limiters)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from random import Random

K = TypeVar("K", bound="Hashable")
K_contra = TypeVar("K_contra", bound="Hashable", contravariant=True)

#: 2 to this power times any base is far above any cap, and still a float.
_MAX_EXPONENT = 64


class RateLimiter(Protocol[K_contra]):
    """Decides the wait before a retry, per key."""

    def when(self, key: K_contra) -> float:
        """Seconds to wait; every call counts as one more failure of the key."""
        ...

    def forget(self, key: K_contra) -> None:
        """The key succeeded or is given up: its next failure counts as the first."""
        ...

    def num_requeues(self, key: K_contra) -> int:
        """Failures counted since the key was last forgotten."""
        ...


def exactly(seconds: float) -> float:
    """No jitter: the wait as computed."""
    return seconds


def spread(random: Random, factor: float) -> Callable[[float], float]:
    """Jitter that makes a wait of d seconds uniform in [d, d·(1+factor)), so that clients do not come in step."""

    def jitter(seconds: float) -> float:
        return seconds * (1 + factor * random.random())

    return jitter


class ItemExponential(Generic[K]):
    """`base`·2ⁿ seconds after the n-th failure of the key (n from 0), at most `cap`; jitter comes on top."""

    def __init__(self, *, base: float = 0.005, cap: float = 1000.0, jitter: Callable[[float], float] = exactly) -> None:
        self._base = base
        self._cap = cap
        self._jitter = jitter
        #: Only keys with at least one failure are in it.
        self._failures: dict[K, int] = {}

    def when(self, key: K) -> float:
        """Seconds to wait; counts the failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return self._jitter(min(self._base * 2.0 ** min(failures, _MAX_EXPONENT), self._cap))

    def forget(self, key: K) -> None:
        """Start again at `base`."""
        self._failures.pop(key, None)

    def num_requeues(self, key: K) -> int:
        """Failures of the key."""
        return self._failures.get(key, 0)


class Bucket(Generic[K]):
    """A token bucket over all keys together: `burst` retries at once, then `rate` a second. Needs a running loop."""

    def __init__(self, *, rate: float = 10.0, burst: int = 100) -> None:
        self._rate = rate
        self._burst = burst
        #: Tokens at `_at`; negative when waits were given out in advance.
        self._tokens = float(burst)
        self._at = float("-inf")

    def when(self, key: K) -> float:  # noqa: ARG002  # one bucket for all keys
        """Seconds until a token is there for this call, which has it from now on."""
        now = loop_time()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        return max(0.0, -self._tokens / self._rate)

    def forget(self, key: K) -> None:
        """Nothing is kept per key."""

    def num_requeues(self, key: K) -> int:  # noqa: ARG002  # nothing is kept per key
        """Nothing is kept per key: 0."""
        return 0


class MaxOf(Generic[K]):
    """The longest wait that any of several limiters asks for; each of them counts every failure."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self._limiters = limiters

    def when(self, key: K) -> float:
        """The longest of the waits."""
        return max(limiter.when(key) for limiter in self._limiters)

    def forget(self, key: K) -> None:
        """Forget it in all of them."""
        for limiter in self._limiters:
            limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """The largest of the counts."""
        return max(limiter.num_requeues(key) for limiter in self._limiters)
