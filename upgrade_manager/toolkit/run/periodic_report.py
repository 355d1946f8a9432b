"""Logs the progress of long work at a fixed interval, also while it waits.

iso/downloads.py, images/image_import.py and the command checksums report by it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

#: Seconds between two reports.
INTERVAL = 10.0

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def reporting(event: str, describe: Callable[[], dict[str, str]]) -> AsyncIterator[None]:
    """Log the event with the description's current fields, every INTERVAL, while the block runs."""

    async def report() -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            _log.info(event, **describe())

    task = asyncio.create_task(report())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
