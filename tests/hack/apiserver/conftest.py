"""A separate server for each test, with a custom kind and a client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.server.apiserver import DEFINITIONS, WIDGET, make_server
from tests.support.server.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.apiserver.server import ApiServer


@pytest.fixture
async def server() -> ApiServer:
    return make_server()


@pytest.fixture
async def wire(server: ApiServer) -> RawClient:
    wire = RawClient(server)
    created = await wire.post(DEFINITIONS, WIDGET)
    assert created.status == 201, created.body
    return wire


@pytest.fixture
async def controllers(server: ApiServer) -> AsyncIterator[None]:
    """Run the server's controllers during the test."""
    running = asyncio.create_task(server.run())
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
