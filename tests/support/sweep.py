"""How dense a sweep is: every point of a run when asked for, else every few, so that the whole suite stays short.

`make sweep` asks for all of them. What is left out otherwise is the same each time, so that a run can be repeated.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Whether every point is swept.
FULL = os.environ.get("SWEEP") == "full"
#: The distance between two points otherwise.
STRIDE = 5
_Point = TypeVar("_Point")


def points(first: int, last: int, *, share: int = 0, shares: int = 1, stride: int = STRIDE) -> range:
    """One share of the numbers from first to last, or of every few of them, dealt out evenly."""
    step = 1 if FULL else stride
    return range(first + share * step, last + 1, shares * step)


def some(of: Sequence[_Point], *, beginning: int, stride: int = STRIDE) -> Sequence[_Point]:
    """All of them when all are asked for, else every few from that one on: sweeps that begin apart meet others."""
    return of if FULL else of[beginning % stride :: stride]
