from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number beside the one that was promised."""

    name: str
    value: float
    #: Empty for counts and ratios.
    unit: str
    aim: float
    #: False where less is worse, as with a throughput.
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether the promise holds."""
        return self.value <= self.aim if self.at_most else self.value >= self.aim

    def line(self) -> str:
        """Write it for people: name, value, unit, aim and verdict."""
        value = f"{number(self.value)} {self.unit}".rstrip()
        aim = f"{'≤' if self.at_most else '≥'} {number(self.aim)} {self.unit}".rstrip()
        return f"{self.name:<58} {value:>18}   {aim:<18} {'ok' if self.met else 'MISS'}"

    def record(self) -> dict[str, Any]:
        """Write it for programs."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "aim": self.aim,
            "at_most": self.at_most,
            "met": self.met,
        }


def number(value: float) -> str:
    """Write a number with three significant digits, and large ones with separators."""
    if value == 0 or value >= 100:  # noqa: PLR2004  # three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"
