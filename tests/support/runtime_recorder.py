"""Runnables that record what happens to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass
class Recorder:
    """Records (time, event) in order."""

    lines: list[tuple[float, str]] = field(default_factory=list)

    def record(self, event: str) -> None:
        self.lines.append((asyncio.get_running_loop().time(), event))

    @property
    def events(self) -> list[str]:
        return [event for _, event in self.lines]

    def at(self, event: str) -> float:
        return next(time for time, recorded in self.lines if recorded == event)

    def runs(self, name: str, *, stop_takes: float = 0.0) -> Callable[[], Awaitable[None]]:
        """Return a runnable that takes some time to stop."""

        async def run() -> None:
            self.record(f"+{name}")
            try:
                await asyncio.sleep(1e9)
            finally:
                await asyncio.sleep(stop_takes)
                self.record(f"-{name}")

        return run

    def ignores_cancellation(self, name: str, *, until: asyncio.Event) -> Callable[[], Awaitable[None]]:
        """Return a runnable that ignores cancellation until the event is set."""

        async def run() -> None:
            while not until.is_set():
                try:
                    await until.wait()
                except asyncio.CancelledError:
                    self.record(f"!{name}")
            self.record(f"-{name}")

        return run

    def fails(self, name: str, error: BaseException, *, after: float = 0.0) -> Callable[[], Awaitable[None]]:
        """Return a runnable that raises."""

        async def run() -> None:
            self.record(f"+{name}")
            await asyncio.sleep(after)
            raise error

        return run

    def ready(self, name: str, *, after: float) -> Callable[[], Awaitable[None]]:
        """Return a readiness check that takes some time."""

        async def wait() -> None:
            await asyncio.sleep(after)
            self.record(f"={name}")

        return wait
