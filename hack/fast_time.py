"""Calendar and event loop that run faster than real time, equal in all processes with the same arguments.

`python -m hack.fast_time RATE EQUAL_AT run …` runs the upgrade manager in it: minutes of waiting take seconds.
"""

from __future__ import annotations

import asyncio
import runpy
import selectors
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class FastTime:
    """So many seconds pass in one real second; at `equal_at` it is the real time, and before that it is earlier.

    While it is earlier, kubectl, whose clock is the real one, can show ages.
    """

    rate: float
    equal_at: datetime

    def now(self) -> datetime:
        """Return the calendar time."""
        passed = (datetime.now(UTC) - self.equal_at).total_seconds()
        return self.equal_at + timedelta(seconds=passed * self.rate)

    def arguments(self) -> list[str]:
        """Return the command-line arguments from which `parse` makes it."""
        return [str(self.rate), self.equal_at.isoformat()]

    @classmethod
    def parse(cls, rate: str, equal_at: str) -> FastTime:
        """Read it from a command line."""
        return cls(rate=float(rate), equal_at=datetime.fromisoformat(equal_at))


def real_time() -> FastTime:
    """Return the real time."""
    return FastTime(rate=1.0, equal_at=datetime.now(UTC))


class FastEventLoop(asyncio.SelectorEventLoop):
    """A loop whose timers are due earlier."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        super().__init__(_FastSelector(rate))

    def time(self) -> float:
        """Return the loop's time."""
        return super().time() * self._rate


class _FastSelector(selectors.DefaultSelector):
    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate

    def select(self, timeout: float | None = None) -> Any:
        return super().select(None if timeout is None else timeout / self._rate)


@contextmanager
def patched_manager(time: FastTime) -> Iterator[None]:
    """Let a manager that this process starts run in that time."""

    def run(main: Any) -> Any:
        with asyncio.Runner(loop_factory=lambda: FastEventLoop(time.rate)) as runner:
            return runner.run(main)

    def now(_: object) -> datetime:
        return time.now()

    with mock.patch("upgrade_manager.kube.clock.SystemClock.now", now), mock.patch("asyncio.run", run):
        yield


def main(arguments: list[str]) -> None:
    """Run the manager's program, which exits."""
    rate, equal_at, *rest = arguments
    program = str(Path(sys.executable).with_name("upgrade-manager"))
    with patched_manager(FastTime.parse(rate, equal_at)), mock.patch.object(sys, "argv", [program, *rest]):
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
