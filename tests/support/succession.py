"""Managers that follow each other: as one dies, the next one starts, while a test tells its story."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.support.manager import Life
    from tests.support.upgrade import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of one manager; numbers as for `Wire`, 0 for never."""

    die_at: int = 0
    after: bool = False
    lose_at: int = 0
    #: Virtual seconds after its death in which there is no manager.
    gap: float = 0.0


#: Of one to whom nothing happens.
QUIET = Fate()


@dataclass(kw_only=True)
class Succession:
    """The lives so far."""

    lives: list[Life] = field(default_factory=list)


@asynccontextmanager
async def succession(stage: Stage, fates: Sequence[Fate]) -> AsyncIterator[Succession]:
    """A manager for each fate, one after the other; after the last death one to whom nothing happens."""
    followed = Succession()
    task = asyncio.create_task(_follow(stage, fates, followed), name="succession")
    try:
        yield followed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(stage: Stage, fates: Sequence[Fate], followed: Succession) -> None:
    for number, fate in enumerate((*fates, QUIET)):
        life = stage.life(die_at=fate.die_at, after=fate.after, lose_at=fate.lose_at, seed=f"life {number}")
        async with life:
            followed.lives.append(life)
            await life.wire.died.wait()
        await asyncio.sleep(fate.gap)
