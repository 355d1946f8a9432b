"""A cluster for tests of steps that read and write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from tests.support import tiers
from tests.support.cluster import simulate as simulating
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import Simulate
from tests.support.managers.named_waits import record_unnamed
from tests.support.managers.node_upgrade import NodeUpgradeRun
from tests.support.managers.sweep import Sweep
from upgrade_manager.kube.informer import Informer
from upgrade_manager.pipeline.informers import PlanInformers


@pytest.fixture
async def cluster() -> AsyncIterator[Harvester]:
    async with asyncio.TaskGroup() as group:
        harvester = Harvester(group)
        await harvester.install()
        yield harvester


@pytest.fixture
async def informers(cluster: Harvester) -> AsyncIterator[PlanInformers]:
    async with asyncio.TaskGroup() as group:
        informers = PlanInformers(group, lambda spec: Informer(cluster.client, spec, random=Random(1)), uid="the plan")
        yield informers
        await informers.stop()


@pytest.fixture
async def stage(cluster: Harvester) -> NodeUpgradeRun:
    """Return the node upgrade of that cluster."""
    return NodeUpgradeRun(cluster)


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    return Sweep(tier=request.config.getoption("tier"))


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Create clusters on the test's API server."""
    if tiers.server_of(request.node) == tiers.EMBEDDED:
        return simulating.embedded
    return simulating.simulate_on(request.getfixturevalue("control_plane"))


@pytest.fixture(autouse=True)
def unnamed_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test if a phase of a whole upgrade has waited without naming what for."""
    found = record_unnamed(monkeypatch)
    yield
    assert found == []
