"""One table of API behaviours, run against both servers; where they differ the real one is right."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support import bareapi, servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.control_plane.control_plane import ControlPlane


@pytest.fixture
async def api(request: pytest.FixtureRequest) -> AsyncIterator[bareapi.BareApi]:
    """The API server whose turn it is."""
    if servers.server_of(request.node) == servers.EMBEDDED:
        async with asyncio.TaskGroup() as group, bareapi.embedded_api(group) as embedded:
            yield embedded
        return
    plane: ControlPlane = request.getfixturevalue("controlled_plane")
    async with bareapi.real_api(plane) as real:
        yield real
