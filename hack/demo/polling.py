"""Waits for what the demo cannot watch."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hack.demo.programs import DemoError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

#: Seconds between two checks.
INTERVAL = 0.1


async def until(check: Callable[[], Awaitable[bool]], *, within: float, otherwise: str) -> None:
    """Check until the result is true. Raises DemoError with the message `otherwise` after `within` seconds."""
    try:
        async with asyncio.timeout(within):
            while not await check():  # noqa: ASYNC110  # the condition is in the API server
                await asyncio.sleep(INTERVAL)
    except TimeoutError:
        raise DemoError(f"{otherwise} within {within:.0f} s") from None
