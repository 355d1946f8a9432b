"""Helm, and a real API server with the manager's policies for the tests of what they refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hack.cluster.impersonation import ActingAs
from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ADMIN, ControlPlane
from tests.support import tiers
from tests.support.cluster import guarded_cluster
from tests.support.cluster.guarded_cluster import GuardedCluster
from tests.support.managers.upgrade import ACCOUNT
from tests.support.programs.helm import Helm
from tests.support.server.raw_client import RawClient


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Run Helm in a folder of the test."""
    return Helm(tmp_path)


@pytest.fixture(scope="package")
def guarded_plane() -> Iterator[ControlPlane]:
    """Start a server separate from the others: its objects stay for all tests, and no request changes one."""
    with ControlPlane(tiers.assets()) as own:
        yield own


@pytest.fixture(scope="package")
def prepared() -> dict[str, GuardedCluster]:
    """Keep the cluster: each test has another event loop."""
    return {}


@pytest.fixture
async def cluster(guarded_plane: ControlPlane, prepared: dict[str, GuardedCluster]) -> GuardedCluster:
    """Fill the server once."""
    if not prepared:
        prepared["cluster"] = await guarded_cluster.prepare(guarded_plane)
    return prepared["cluster"]


@pytest.fixture
async def admin(guarded_plane: ControlPlane) -> AsyncIterator[RawClient]:
    async with direct(guarded_plane, token=ADMIN.token) as transport:
        yield RawClient(transport)


@pytest.fixture
async def manager(guarded_plane: ControlPlane) -> AsyncIterator[RawClient]:
    """Provide a client with the manager's account."""
    async with direct(guarded_plane, token=ADMIN.token) as transport:
        yield RawClient(ActingAs(transport, user=ACCOUNT))
