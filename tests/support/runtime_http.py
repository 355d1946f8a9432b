"""HTTP servers of the manager, running."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.runtime.http_server import HttpServer


@asynccontextmanager
async def serving(server: HttpServer) -> AsyncIterator[str]:
    """Run the server and yield its host and port."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        yield f"127.0.0.1:{server.port}"
        task.cancel()
