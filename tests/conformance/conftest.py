"""API behaviours checked against the embedded and the real API server; the real one is the reference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hack.control_plane.control_plane import ControlPlane
from tests.support import tiers
from tests.support.server import bareapi


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:  # noqa: ARG001  # all of them
    """Exclude these tests from the default tier without importing them."""
    return config.getoption("tier") == tiers.DEFAULT or None


@pytest.fixture
async def api(request: pytest.FixtureRequest) -> AsyncIterator[bareapi.BareApi]:
    """Provide the API server that the test is parametrised with."""
    if tiers.server_of(request.node) == tiers.EMBEDDED:
        async with asyncio.TaskGroup() as group, bareapi.embedded_api(group) as embedded:
            yield embedded
        return
    plane: ControlPlane = request.getfixturevalue("controlled_plane")
    async with bareapi.real_api(plane) as real:
        yield real
