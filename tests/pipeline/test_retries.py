"""Errors that do not end an upgrade: reported on the plan, retried, and cleared."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from hack.faults.counts import NO_ANSWER
from hack.faults.rules import Cut, LoseRequest, Match, Rule
from hack.simulation import Simulation
from tests.support.cluster.machine_versions import NewMachines
from tests.support.managers.exactly_once import CreateCounter, assert_readable, assert_succeeds_once
from tests.support.managers.upgrade import Ledger, UpgradeRun, condition, started
from tests.support.server import api_faults
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline.controller import RETRY_CAP
from upgrade_manager.release.repository_client import RepositoryClient

pytestmark = pytest.mark.sampled

RELEASE_FILE = "harvester-release.yaml"
#: Virtual seconds for which something is broken.
BROKEN = 120.0
#: Largest number of attempts in that time: at once, doubling from 0.2 s, then every ten seconds.
TRIES = 25
#: And in the first second.
HASTE = 5
#: Duration of a reconcile itself.
INSTANT = 0.05
OUTAGE = 60.0
#: Requests for one kind in that time: an informer that cannot connect tries about once a second.
PATIENT = 80
#: Requests of a whole upgrade, however often they are disturbed; a quiet one has 163. While watches are reset, each
#: step of a node compares five caches with the API server, and each Plan that changes hosts is looked at again.
BOUND = 900
URL = f"http://upgrade-repo.harvester-system/harvester-iso/{RELEASE_FILE}"


@dataclass
class Spoilt:
    """A repository whose release file cannot be fetched until it is repaired."""

    inner: RepositoryClient
    is_spoilt: bool = True
    #: Loop times at which the file was requested.
    requested: list[float] = field(default_factory=list)

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # the protocol's
        """Raise the error, or return the response."""
        if url.endswith(RELEASE_FILE):
            self.requested.append(asyncio.get_running_loop().time())
            if self.is_spoilt:
                raise Transient(f"get {URL}: connection refused")
        return await self.inner.fetch(url, limit=limit, timeout=timeout)


def assert_patient(times: list[float]) -> None:
    """Check that retries continue with growing intervals."""
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) <= TRIES
    assert max(waits) <= RETRY_CAP + INSTANT
    assert len([time for time in times if time < times[0] + 1]) <= HASTE


@pytest.mark.rule(
    "api: MetadataPopulate retries and reports Degraded",
    "api: retried error: Degraded=True (ReconcileError) with the error as message",
    "api: retried error: Available and Progressing are unchanged",
    "api: Degraded becomes False when the error is resolved",
    "pipeline: RepoCreate and MetadataPopulate never fail",
    "pipeline: an unreachable repository is Degraded with the cause",
    "pipeline: retries back off up to 10 s",
)
async def test_unreachable_repository_is_retried_until_repaired() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        spoilt = stage.repository = Spoilt(simulation.repository)
        async with stage.life() as life:
            await stage.create_plan()
            await stage.until("MetadataPopulating")
            await asyncio.sleep(BROKEN)
            plan, writes = await stage.plan(), len(life.wire.writes)
            await asyncio.sleep(BROKEN)
            # A repeated error only increases the count of one event.
            assert all("/events/" in write for write in life.wire.writes[writes:])
            requested, spoilt.is_spoilt = list(spoilt.requested), False
            await stage.until("ImagePreloading")
            repaired = await stage.plan()
            await stage.succeed()
        warnings = await stage.warnings()
    status, reason, message = condition(plan, "Degraded")
    assert (status, reason) == ("True", "ReconcileError")
    assert [text for text in (URL, "connection refused", "kubectl describe pods") if text not in message] == []
    assert_readable(message)
    assert condition(plan, "Available") == ("True", "Executable", "Upgrading from v1.7.1 to v1.8.0")
    assert condition(plan, "Progressing")[:2] == ("True", "MetadataPopulating")
    assert_patient([time for time in requested if time < requested[0] + BROKEN])
    assert sorted(reason for reason, _ in warnings) == ["ReconcileError", "RepositoryUnavailable"]
    assert ("ReconcileError", message) in warnings
    # The error lasts, and the finders explain it.
    assert condition(plan, "Stalled")[:2] == ("True", "RepositoryUnavailable")
    assert condition(repaired, "Stalled")[0] != "True"
    assert condition(repaired, "Degraded") == ("False", "ReconcileSuccess", "")


@pytest.mark.rule("pipeline: each phase event exists exactly once, after any crash")
@pytest.mark.parametrize("fault", api_faults.FAULTS)
@pytest.mark.thin
async def test_faulty_api_server_only_delays_the_upgrade(fault: str) -> None:
    async with Simulation("three-nodes") as simulation:
        middleware = simulation.middleware
        creations = middleware.hook = CreateCounter()
        middleware.add(api_faults.FAULTS[fault])
        async with started(simulation) as stage:
            await assert_succeeds_once(stage, creations)
            assert middleware.counts.total() <= BOUND


@pytest.mark.rule("pipeline: decisions derive from the plan and observed objects, not from events seen earlier")
@pytest.mark.parametrize("phase", ["ISODownloading", "ClusterUpgrading", "NodeUpgrading"])
@pytest.mark.thin
async def test_api_server_outage_only_delays_the_upgrade(phase: str) -> None:
    async with Simulation("three-nodes") as simulation:
        middleware, outage = simulation.middleware, Rule(match=Match(), action=LoseRequest())
        creations = middleware.hook = CreateCounter()
        # Without that, watches that are open would outlast the outage.
        middleware.add(api_faults.often(Cut(seconds=5, clean=False), "watch", share=1))
        async with started(simulation) as stage:
            await stage.reach(phase)
            middleware.counts.clear()
            middleware.add(outage)
            await asyncio.sleep(OUTAGE)
            middleware.remove(outage)
            lost = Counter[str]()
            for count, number in middleware.counts:
                lost[f"{count.verb} {count.resource}{count.subresource}"] += number * (count.code == NO_ANSWER)
            await assert_succeeds_once(stage, creations)
    assert 0 < max(lost.values()) <= PATIENT


@pytest.mark.rule("nodes: Machines are read in the version that the API server serves")
async def test_upgrade_succeeds_with_machines_v1beta2() -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.ledger = Ledger(NewMachines(stage.ledger))
        async with stage.life():
            await stage.create_plan()
            await stage.succeed()
        assert await stage.warnings() == []
