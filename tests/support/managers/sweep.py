"""The density of a sweep: every point of a run in the tier `sweep`, else every few, the same ones each time.

The default tier visits half of these, at most.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.support import tiers

#: The distance between two points of the full tier.
STRIDE = 72
#: The distance between two points of the default tier, in strides.
THIN = 2
#: The distance between the first points of two rows: it has no divisor in common with the stride.
_ROW = 7
_Point = TypeVar("_Point")
_Key = TypeVar("_Key", bound=Hashable)
_Run = TypeVar("_Run")


class Goldens(Generic[_Key, _Run]):
    """Undisturbed runs, each driven once in a process for all cases that are compared with it."""

    def __init__(self, drive: Callable[[_Key], Awaitable[_Run]]) -> None:
        self._drive = drive
        self._runs: dict[_Key, _Run] = {}

    async def of(self, key: _Key) -> _Run:
        """Return the run of that key."""
        if key not in self._runs:
            self._runs[key] = await self._drive(key)
        return self._runs[key]


def shares(number: int) -> list[ParameterSet]:
    """Divide a sweep into so many tests, of which the default tier runs the first."""
    return [pytest.param(share, marks=[pytest.mark.full] if share else []) for share in range(number)]


def every_second(number: int) -> pytest.MarkDecorator:
    """Return the mark of a row: the full tier has the rows with even numbers, the tier `sweep` all."""
    return pytest.mark.exhaustive if number % 2 else pytest.mark.full


def cases(names: Iterable[str], *, default: Collection[str]) -> list[ParameterSet]:
    """Return test parameters: some for the default tier, and every second one of the others for the full tier."""
    others = [name for name in names if name not in default]
    marks = {name: every_second(number) for number, name in enumerate(others)}
    return [pytest.param(name, marks=[marks[name]] if name in marks else []) for name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep in the tier that runs."""

    tier: str

    @property
    def every(self) -> bool:
        """Return True if to visit every point."""
        return self.tier == tiers.SWEEP

    def points(
        self,
        first: int,
        last: int,
        *,
        share: int = 0,
        shares: int = 1,
        row: int = 0,
        stride: int = STRIDE,
    ) -> range:
        """Return one share of the numbers from first to last, or of every few of them: rows of a table visit others."""
        step = 1 if self.every else stride
        distance = shares * step
        if self.tier == tiers.DEFAULT:
            distance = max(distance, THIN * stride)
        offset = row * _ROW % min(step, last - first + 1)
        return range(first + offset + share * step, last + 1, distance)

    def some(self, of: Sequence[_Point], *, beginning: int, stride: int = STRIDE) -> Sequence[_Point]:
        """Return all of them, or every few from that one on: sweeps that begin apart visit others."""
        if self.tier == tiers.DEFAULT:
            stride = THIN * stride
        return of if self.every else of[beginning % stride :: stride]
