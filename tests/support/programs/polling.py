"""Polling for conditions that no event reports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def eventually(poll: Callable[[], Awaitable[Any]], *, seconds: float = 300.0, pause: float = 0.05) -> Any:
    """Poll until the result is true, and return it. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not (found := await poll()):  # noqa: ASYNC110  # no event to wait for
            await asyncio.sleep(pause)
    return found
