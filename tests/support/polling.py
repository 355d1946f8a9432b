"""Waiting for what nobody tells: somebody looks from outside, again and again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def eventually(look: Callable[[], Awaitable[Any]], *, seconds: float = 300.0, pause: float = 0.05) -> Any:
    """What a look gives as soon as it gives anything true. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(pause)
    return found
