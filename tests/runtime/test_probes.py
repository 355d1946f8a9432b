from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest

from upgrade_manager.runtime.bindaddress import BindAddress
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.probes import Probes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.real_loop


async def bad() -> None:
    raise Unhealthy("no")


@asynccontextmanager
async def serving(probes: Probes) -> AsyncIterator[str]:
    server = probes.server(BindAddress("127.0.0.1", 0))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        yield f"http://127.0.0.1:{server.port}"
        task.cancel()


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/healthz", 200, "ok"),
        ("/healthz/", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
        ("/readyz", 500, "[-]caches failed: reason withheld\nhealthz check failed\n"),
        ("/readyz?exclude=caches", 200, "ok"),
        ("/readyz/caches", 500, "internal server error: no\n"),
        ("/readyz/other", 404, "404 page not found\n"),
    ],
)
async def test_paths(path: str, status: int, text: str) -> None:
    probes = Probes()
    probes.readyz.add("caches", bad)
    async with serving(probes) as url, aiohttp.ClientSession() as session, session.get(url + path) as answer:
        assert (answer.status, await answer.text()) == (status, text)
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
