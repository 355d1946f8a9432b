"""Things for a manager to run, which write down what happens to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass
class Recorder:
    """(time, what) in order."""

    lines: list[tuple[float, str]] = field(default_factory=list)

    def note(self, what: str) -> None:
        self.lines.append((asyncio.get_running_loop().time(), what))

    @property
    def notes(self) -> list[str]:
        return [what for _, what in self.lines]

    def at(self, what: str) -> float:
        return next(time for time, noted in self.lines if noted == what)

    def runs(self, name: str, *, stop_takes: float = 0.0) -> Callable[[], Awaitable[None]]:
        """Runs until cancelled, and needs some time for ending."""

        async def run() -> None:
            self.note(f"+{name}")
            try:
                await asyncio.sleep(1e9)
            finally:
                await asyncio.sleep(stop_takes)
                self.note(f"-{name}")

        return run

    def clings(self, name: str, *, until: asyncio.Event) -> Callable[[], Awaitable[None]]:
        """Runs until that event, whatever anybody wants."""

        async def run() -> None:
            while not until.is_set():
                try:
                    await until.wait()
                except asyncio.CancelledError:
                    self.note(f"!{name}")
            self.note(f"-{name}")

        return run

    def fails(self, name: str, error: BaseException, *, after: float = 0.0) -> Callable[[], Awaitable[None]]:
        """Raises."""

        async def run() -> None:
            self.note(f"+{name}")
            await asyncio.sleep(after)
            raise error

        return run

    def ready(self, name: str, *, after: float) -> Callable[[], Awaitable[None]]:
        """Is ready after some time."""

        async def wait() -> None:
            await asyncio.sleep(after)
            self.note(f"={name}")

        return wait
