"""Acts of a random run that are undone in any case, for the modules of acts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import NotFound, Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@asynccontextmanager
async def undone(undo: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Undo it at the end in any case, also while the API server is unavailable."""
    try:
        yield
    finally:
        while True:
            with suppress(Transient):
                with suppress(NotFound):
                    await undo()
                break
            await asyncio.sleep(1)
