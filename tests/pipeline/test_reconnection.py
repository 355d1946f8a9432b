"""Upgrades whose API server goes away, forgets, falls silent or refuses: on the embedded one and on the real one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from hack.apiserver.call import call_of
from hack.cluster.backend import Backend
from hack.cluster.embedded_backend import EmbeddedBackend, virtual_backend
from hack.cluster.impersonation import ActingAs
from hack.control_plane.control_plane import ADMIN, API_SERVER, CONTROLLERS, ControlPlane
from hack.faults.breakable_transport import BreakableTransport
from hack.faults.forwarding import Forwarding
from hack.simulation import Simulation
from tests.support import tiers
from tests.support.cluster.simulate import PACE, SharedBackend
from tests.support.managers.exactly_once import CreateCounter, assert_succeeds_once
from tests.support.managers.manager_process import ManagerProcess
from tests.support.managers.manager_restarts import kept_running
from tests.support.managers.upgrade import ACCOUNT, BY_VERSION, Ledger, UpgradeRun
from tests.support.server.pod_connection import gated, tokens_of
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.kube.retry import Backoff
from upgrade_manager.kube.transport import Request, Transport
from upgrade_manager.runtime.leader_election import LeaseLost


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request or retry."""

    #: The loop's time at which it was sent.
    at: float
    verb: str
    #: With the subresource.
    resource: str


class RequestLog(Forwarding):
    """A `Transport` that records every request before it is sent."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.requests: list[LoggedRequest] = []

    def between(self, began: float, ended: float) -> Counter[str]:
        """Count the requests of each kind in that time: `watch jobs.batch`."""
        return Counter(f"{one.verb} {one.resource}" for one in self.requests if began <= one.at < ended)

    def total(self) -> int:
        """Count all requests but the lease's."""
        return sum("leases" not in one.resource for one in self.requests)

    def outgoing(self, request: Request) -> Request:
        call = call_of(request)
        resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        self.requests.append(LoggedRequest(at=asyncio.get_running_loop().time(), verb=call.verb, resource=resource))
        return request


class UnreliableEmbedded:
    """The embedded server, whose transport is cut."""

    def __init__(self) -> None:
        self._backend: EmbeddedBackend

    def simulate(self) -> Simulation:
        """Return a cluster of three nodes, in virtual time."""
        return Simulation("three-nodes", backend=self._make)

    def simulate_in_real_time(self) -> Simulation:
        """Return the same cluster in real time, for tests with sockets."""
        return Simulation("three-nodes", scale=PACE, backend=self._make)

    async def outage(self, seconds: float) -> None:
        """Cut the transport for so long."""
        await _outage(self._backend, seconds)

    async def forget(self) -> None:
        """Compact; open watches continue."""
        self._backend.server.compact()

    def _make(self, seed: int) -> EmbeddedBackend:
        self._backend = virtual_backend(seed)
        return self._backend


class UnreliableReal:
    """The worker's kube-apiserver, which is killed; the fixture restarts it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._backend: SharedBackend

    def simulate(self) -> Simulation:
        """Return a cluster of three nodes."""
        return Simulation("three-nodes", scale=PACE, backend=self._make)

    def simulate_in_real_time(self) -> Simulation:
        return self.simulate()

    async def outage(self, seconds: float) -> None:
        """Kill it for so long; a restart takes some seconds more."""
        await _outage(self._backend, seconds)

    async def forget(self) -> None:
        """Compact etcd and restart the server, whose watch cache serves old versions."""
        await self._backend.stop_api_server()
        await asyncio.to_thread(self._plane.compact)
        await self._backend.start_api_server()

    def _make(self, _: int) -> SharedBackend:
        self._backend = SharedBackend(self._plane)
        return self._backend


UnreliableServer: TypeAlias = UnreliableEmbedded | UnreliableReal


async def _outage(backend: Backend, seconds: float) -> None:
    await backend.stop_api_server()
    await asyncio.sleep(seconds)
    await backend.start_api_server()


pytestmark = pytest.mark.sampled

#: Requests of an upgrade before and after an outage: a quiet one has a hundred and forty, then a dozen watches begin
#: again, and an API server that starts on a busy machine lets clients try again.
BOUND = 400
#: Requests a second that one informer makes at most of a server that fails at once.
RATE = 1.3
#: Informers that may watch the same kind; Jobs are in two namespaces.
INFORMERS = Counter({"jobs.batch": 2})
SILENCE = 120.0
#: Seconds of silence that cost a leader its lease.
LOSS = 30.0
#: Responses 401 that are waited for, seconds until they are there, and how many there may be in all: of a dozen watches
#: with backoff, for as long as a busy machine takes to write the new token.
REFUSALS, REFUSED_WITHIN, REFUSED = 3, 60.0, 150
#: All that Rancher could take.
HELD = {"nodeUpgradeOption": {"pauseNodes": ["node-0", "node-1", "node-2"]}}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[UnreliableServer]:
    """Provide the test's API server, and restore it afterwards for other tests."""
    if tiers.server_of(request.node) == tiers.EMBEDDED:
        yield UnreliableEmbedded()
        return
    plane = request.getfixturevalue("control_plane")
    try:
        yield UnreliableReal(plane)
    finally:
        for name in (API_SERVER, *CONTROLLERS):
            plane.start(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An upgrade with its transcript."""

    stage: UpgradeRun
    creations: CreateCounter
    #: The manager's own.
    line: BreakableTransport
    log: RequestLog


async def watched(simulation: Simulation, line: BreakableTransport, transport: Transport) -> Watched:
    """Prepare an upgrade by a manager with that transport, over the line."""
    stage, log = await UpgradeRun.set_up(simulation), RequestLog(transport)
    creations = simulation.middleware.hook = CreateCounter()
    stage.ledger = Ledger(log)
    return Watched(stage=stage, creations=creations, line=line, log=log)


async def connected(simulation: Simulation) -> Watched:
    """Prepare an upgrade without a gateway."""
    line = BreakableTransport(ActingAs(simulation.transport(), user=ACCOUNT))
    return await watched(simulation, line, line)


@asynccontextmanager
async def upgrading(on: Watched, phase: str) -> AsyncIterator[ManagerProcess]:
    """Enter with the upgrade in the phase, and check at the end that it succeeds."""
    async with on.stage.life() as life:
        await on.stage.create_plan()
        await on.stage.until(phase)
        yield life
        await assert_succeeds_once(on.stage, on.creations)


def attempts(seconds: float) -> int:
    """Return how often an informer may watch in that time: at once, then after the shortest delays of its backoff.

    And once before, when the phase that is waited for has just opened it.
    """
    count, wait, at = 2, Backoff.FIRST, 0.0
    while at + wait <= seconds:
        count, at, wait = count + 1, at + wait, min(wait * Backoff.FACTOR, Backoff.CAP)
    return count


def assert_patient(log: RequestLog, began: float, ended: float) -> None:
    """Check that no kind was watched or listed more often than the backoff allows, and the requests outside."""
    requests = log.between(began, ended)
    assert log.total() - requests.total() <= BOUND
    seconds = ended - began
    for key, count in requests.items():
        verb, resource = key.split(" ")
        informers = INFORMERS.get(resource, 1)
        most = attempts(seconds) if verb == "watch" else 4 + RATE * seconds
        assert count <= most * informers, f"{key}: {count} times in {seconds:.1f} s"


def relists(life: ManagerProcess, reason: str) -> float:
    """Return how many caches were filled again for that reason."""
    metrics = life.metrics.registry.collect()
    samples = [sample for metric in metrics if metric.name == "informer_relists" for sample in metric.samples]
    return sum(
        sample.value for sample in samples if sample.name.endswith("_total") and sample.labels["reason"] == reason
    )


@pytest.mark.servers
@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        pytest.param("ImagePreloading", 0.0, id="ImagePreloading"),
        pytest.param("NodeUpgrading", 0.0, id="NodeUpgrading"),
        pytest.param("NodeUpgrading", 15.0, id="for long"),
    ],
)
@pytest.mark.thin
async def test_upgrade_survives_an_api_server_restart(server: UnreliableServer, phase: str, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    async with server.simulate() as simulation:
        on = await connected(simulation)
        async with upgrading(on, phase):
            began = loop.time()
            await server.outage(seconds)
            ended = loop.time()
    assert_patient(on.log, began, ended)


@pytest.mark.servers
@pytest.mark.parametrize("phase", ["ImagePreloading", "NodeUpgrading"])
@pytest.mark.thin
async def test_upgrade_survives_expired_watches(server: UnreliableServer, phase: str) -> None:
    async with server.simulate() as simulation:
        on = await connected(simulation)
        async with upgrading(on, phase) as life:
            # The manager comes back when all is ready again, and to a newer state than it knows.
            on.line.cut()
            await server.forget()
            await simulation.client().create(CONFIG_MAPS, {"metadata": {"name": phase.lower(), "namespace": "default"}})
            on.line.mend()
        # Plans, nodes, Jobs, but for the one that was the last to change.
        assert relists(life, "expired") >= 3
    assert on.log.total() <= BOUND


@pytest.mark.rule("blockers: nothing is reported on a state that may be out of date")
@pytest.mark.parametrize(("phase", "seconds"), [("ClusterUpgrading", 70), ("NodeUpgrading", 130)])
async def test_lost_connection_reports_no_blocker(phase: str, seconds: float) -> None:
    """The cluster goes on meanwhile, so that the manager's caches are out of date when it comes back."""
    async with UnreliableEmbedded().simulate() as simulation:
        on = await connected(simulation)
        async with upgrading(on, phase):
            on.line.cut()
            await asyncio.sleep(seconds)
            on.line.mend()
            assert await on.stage.until_ended() == "Succeeded"
            assert [event["message"] for event in await on.stage.events("BlockerCleared")] == []
    assert on.log.total() <= BOUND


async def silenceable(simulation: Simulation, stack: AsyncExitStack, folder: Path) -> Watched:
    """In virtual time without sockets; on the real server behind a gateway, as a Pod's manager is."""
    if not simulation.backend.has_controllers:
        return await connected(simulation)
    gate = await stack.enter_async_context(gated(simulation.transport(), folder, token=ADMIN.token))
    return await watched(simulation, gate.line, ActingAs(gate.transport, user=ACCOUNT))


@pytest.mark.servers
@pytest.mark.long
@pytest.mark.timeout(400)
async def test_upgrade_survives_two_minutes_of_silence(server: UnreliableServer, tmp_path: Path) -> None:
    """In real time on the real server, where the limits of sockets are part of the matter."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        simulation = await stack.enter_async_context(server.simulate())
        on = await silenceable(simulation, stack, tmp_path)
        async with upgrading(on, "ImagePreloading"):
            began = loop.time()
            on.line.hush()
            await asyncio.sleep(SILENCE)
            ended = loop.time()
            on.line.mend()
    assert_patient(on.log, began, ended)


@pytest.mark.servers
@pytest.mark.long
async def test_leader_without_responses_exits_and_resumes(server: UnreliableServer, tmp_path: Path) -> None:
    """With less silence: a lease is lost after ten seconds, and what is silent longer is above."""
    async with AsyncExitStack() as stack:
        simulation = await stack.enter_async_context(server.simulate())
        on = await silenceable(simulation, stack, tmp_path)
        pod = await stack.enter_async_context(kept_running(on.stage, RunOptions(leader_elect=True)))
        await on.stage.create_plan()
        await on.stage.until("ImagePreloading")
        on.line.hush()
        await asyncio.sleep(LOSS)
        on.line.mend()
        await assert_succeeds_once(on.stage, on.creations)
        assert [type(end) for end in pod.ends] == [LeaseLost]
    assert on.log.total() <= BOUND


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.real_loop
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_upgrade_survives_an_expired_token(
    server: UnreliableServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with AsyncExitStack() as stack:
        simulation = await stack.enter_async_context(server.simulate_in_real_time())
        tokens = tokens_of(simulation)
        old = await tokens.issue()
        gate = await stack.enter_async_context(gated(simulation.transport(), tmp_path, token=old))
        on = await watched(simulation, gate.line, gate.transport)
        async with on.stage.life():
            # Held back, however long it takes until a token is good for nothing.
            await on.stage.create_plan(BY_VERSION | HELD)
            await on.stage.until("NodeUpgrading")
            await tokens.revoke(old)
            # Open watches outlast the token; new requests test it.
            on.line.tear()
            async with asyncio.timeout(REFUSED_WITHIN):
                while gate.answers.codes["401"] < REFUSALS:  # noqa: ASYNC110  # counted by the transport
                    await asyncio.sleep(0.1)
            new = await tokens.issue()
            gate.write_token(new)
            await on.stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})
            await assert_succeeds_once(on.stage, on.creations)
    assert REFUSALS <= gate.answers.codes["401"] <= REFUSED
    assert on.log.total() <= BOUND
    output = capsys.readouterr()
    assert [token for token in (old, new) if token in output.out + output.err] == []
