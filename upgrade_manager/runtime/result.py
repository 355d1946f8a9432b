"""What a reconcile says about what comes next (controller-runtime's Result, as one choice instead of three fields)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing left to do until something changes."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Not finished and nobody will tell us: try again after the rate limiter's wait. Not a failure."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Look again in so many seconds, or earlier if something changes; 0 or less is at once."""

    seconds: float


Result: TypeAlias = Done | Requeue | RequeueAfter


class TerminalError(Exception):
    """Trying again cannot help: counted and logged, and the key rests until something about it changes."""


class RetryError(Exception):
    """Something outside is not as it must be, which may change: tried again, and logged as no fault of ours."""
