"""An empty cluster for each test of kubectl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hack.control_plane.control_plane import ControlPlane
from tests.support import tiers
from tests.support.cluster import kubectl


@pytest.fixture
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[kubectl.Cluster]:
    """Provide a cluster with the embedded or the real API server."""
    if tiers.server_of(request.node) == tiers.EMBEDDED:
        async with kubectl.embedded_cluster(tmp_path) as embedded:
            yield embedded
        return
    plane: ControlPlane = request.getfixturevalue("controlled_plane")
    async with kubectl.real_cluster(tmp_path, plane, tiers.assets()) as real:
        yield real
