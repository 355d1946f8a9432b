"""Seeded clusters on both API servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import tiers
from tests.support.cluster import simulate
from webhook.cluster import LiveReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.client import Client


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Create the objects of three-nodes; return an administrator's client."""
    factory = simulate.embedded
    if tiers.server_of(request.node) == tiers.REAL:
        factory = simulate.simulate_on(request.getfixturevalue("control_plane"))
    async with factory(actors=False) as simulation:
        yield simulation.client()


@pytest.fixture
def live(client: Client) -> LiveReader:
    return LiveReader(client)
