"""The clock of a manager whose machine has the wrong time; managers/upgrade.py gives it to its managers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hack.bench.in_process import LoopClock


@dataclass(frozen=True, slots=True)
class SkewedClock(LoopClock):
    """The clock of a simulation, which is ahead by some seconds."""

    seconds: float

    def now(self) -> datetime:
        """Return the time that the machine believes."""
        return LoopClock.now(self) + timedelta(seconds=self.seconds)
