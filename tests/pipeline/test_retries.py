"""Errors that do not end an upgrade: reported on the plan, retried, and cleared."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from hack.faults.counts import NO_ANSWER
from hack.faults.rules import Cut, LoseRequest, Match, Rule
from hack.simulation import Simulation
from tests.support.managers.exactly_once import CreateCounter, assert_readable, assert_succeeds_once
from tests.support.managers.upgrade import UpgradeRun, condition, phases_of, started
from tests.support.server import api_faults
from upgrade_manager.api.phases import PHASES
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Terminal, Transient
from upgrade_manager.kube.resources import SETTINGS, VERSIONS
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline.controller import RETRY_CAP

if TYPE_CHECKING:
    from hack.apiserver.call import Call
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.release.repository_client import RepositoryClient

pytestmark = pytest.mark.sampled

RELEASE_FILE = "harvester-release.yaml"
#: Virtual seconds for which something is broken.
BROKEN = 120.0
#: How often at most something is tried in that time: at once, doubling from 0.2 s, then every ten seconds.
TRIES = 25
#: And in the first second.
HASTE = 5
#: What a look itself takes.
INSTANT = 0.05
OUTAGE = 60.0
#: Requests for one kind in that time: an informer that cannot connect tries about once a second.
PATIENT = 80
#: Requests of a whole upgrade, however often they are disturbed; a quiet one has about a hundred.
BOUND = 500
URL = f"http://upgrade-repo.harvester-system/harvester-iso/{RELEASE_FILE}"
CORRUPT = "the ISO is corrupt or not a Harvester release"


@dataclass
class Spoilt:
    """A repository whose release file is invalid until it is repaired."""

    inner: RepositoryClient
    answer: bytes | int | Exception | None
    #: Loop times at which the file was requested.
    requested: list[float] = field(default_factory=list)

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # the protocol's
        """Return the invalid response, or the valid one."""
        if not url.endswith(RELEASE_FILE):
            return await self.inner.fetch(url, limit=limit, timeout=timeout)
        self.requested.append(asyncio.get_running_loop().time())
        match self.answer:
            case None:
                return await self.inner.fetch(url, limit=limit, timeout=timeout)
            case Exception() as error:
                raise error
            case int() as status:
                return Response(status=status, body=b"nothing of interest")
            case bytes() as body if len(body) > limit:
                raise Terminal(f"get {url}: the response exceeds {limit} bytes")
            case bytes() as body:
                return Response(status=200, body=body)


def release(**values: str) -> bytes:
    good = {"harvester": "v1.8.0", "os": "Harvester v1.8.0", "kubernetes": "v1.35.2+rke2r1", "rancher": "v2.14.0"}
    return json.dumps(good | values).encode()


BAD_ANSWERS = [
    pytest.param(
        Transient(f"get {URL}: connection refused"), "connection refused", "kubectl get pods", id="unreachable"
    ),
    pytest.param(500, "HTTP 500", "kubectl get pods", id="HTTP 500"),
    pytest.param(404, "does not exist", CORRUPT, id="absent"),
    pytest.param(b"", "is empty", CORRUPT, id="empty"),
    pytest.param(b"harvester: [v1.8.0", "is not YAML", CORRUPT, id="broken"),
    pytest.param(b"\x00\xff\x89PNG", "is not YAML", CORRUPT, id="no YAML"),
    pytest.param(b"- a\n- b\n", "a list, not a mapping", CORRUPT, id="of the wrong type"),
    pytest.param(release(harvester="v" * 1_000_000), "exceeds", "not from a Harvester ISO", id="a value of 1 MB"),
    pytest.param(release(harvester="v" * 9000), "harvester is 'vvv", CORRUPT, id="a long value"),
    pytest.param(release(kubernetes="../../etc"), "kubernetes is '../../etc'", CORRUPT, id="a path"),
    pytest.param(release(harvester="{{ .Values }}"), "harvester is '{{ .Values }}'", CORRUPT, id="a template"),
    pytest.param(release(os="\x1b[31m\x07\u202e\n\n"), "os is ", CORRUPT, id="control characters"),
    pytest.param(release(rancher=""), "rancher is missing", CORRUPT, id="a value that is missing"),
]


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
    "pipeline: an HTTP error is Degraded with the cause",
    "pipeline: invalid YAML is Degraded with the cause",
    "pipeline: incomplete YAML is Degraded with the cause",
    "pipeline: retries back off up to 10 s",
)
@pytest.mark.parametrize(("answer", "fault", "remedy"), BAD_ANSWERS)
@pytest.mark.thin
@pytest.mark.full
async def test_invalid_release_file_is_retried_until_repaired(
    answer: bytes | int | Exception, fault: str, remedy: str
) -> None:
    async with Simulation("three-nodes") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        spoilt = stage.repository = Spoilt(simulation.repository, answer)
        async with stage.life() as life:
            await stage.create_plan()
            await stage.until("MetadataPopulating")
            await asyncio.sleep(BROKEN)
            plan, writes = await stage.plan(), len(life.wire.writes)
            await asyncio.sleep(BROKEN)
            # A repeated error only increases the count of one event.
            assert all("/events/" in write for write in life.wire.writes[writes:])
            requested, spoilt.answer = list(spoilt.requested), None
            await stage.until("ImagePreloading")
            repaired = await stage.plan()
            await stage.succeed()
        warnings = await stage.warnings()
    status, reason, message = condition(plan, "Degraded")
    assert (status, reason) == ("True", "ReconcileError")
    assert URL in message
    assert fault in message
    assert remedy in message
    assert_readable(message)
    assert condition(plan, "Available") == ("True", "Executable", "Upgrading from v1.7.1 to v1.8.0")
    assert condition(plan, "Progressing")[:2] == ("True", "MetadataPopulating")
    assert_patient([time for time in requested if time < requested[0] + BROKEN])
    assert warnings == [("ReconcileError", message)]
    assert condition(repaired, "Degraded") == ("False", "ReconcileSuccess", "")


@pytest.mark.rule(
    "api: retried error: Degraded=True (ReconcileError) with the error as message",
    "pipeline: Initialize completes when preflight has passed",
)
@pytest.mark.parametrize(
    ("resource", "name", "message"),
    [
        pytest.param(
            VERSIONS,
            "v1.8.0",
            "Version harvester-system/v1.8.0 does not exist. Create it, or create a plan for another version",
            id="Version",
        ),
        pytest.param(
            SETTINGS,
            "server-version",
            "Setting server-version lacks a value, which Harvester sets. "
            "Run kubectl logs -n harvester-system deployment/harvester",
            id="Setting",
        ),
    ],
)
@pytest.mark.thin
async def test_missing_object_is_retried_until_created(resource: Resource, name: str, message: str) -> None:
    namespace = "harvester-system" if resource.namespaced else ""
    async with Simulation("three-nodes") as simulation:
        client = simulation.client()
        missing = await client.get(resource, name, namespace=namespace)
        await client.delete(resource, name, namespace=namespace)
        simulation.middleware.counts.clear()
        async with started(simulation) as stage:
            await asyncio.sleep(BROKEN)
            plan = await stage.plan()
            reads = simulation.middleware.counts.total(verb="get", resource=f"{resource.plural}.{resource.group}")
            await client.create(resource, _fresh(missing))
            repaired = await stage.succeed()
        assert condition(repaired, "Degraded") == ("False", "ReconcileSuccess", "")
    assert condition(plan, "Degraded") == ("True", "ReconcileError", message)
    assert objects.status(plan)["currentPhase"] == "Initializing"
    assert 5 < reads <= TRIES


def _fresh(obj: Object) -> Object:
    kept = {key: value for key, value in objects.metadata(obj).items() if key in {"name", "namespace", "labels"}}
    return {**obj, "metadata": kept}


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


class Outage(CreateCounter):
    """Makes the API server unavailable for a minute, as soon as a phase is recorded."""

    def __init__(self, simulation: Simulation, phase: str) -> None:
        super().__init__()
        self._middleware = simulation.middleware
        self._phase = phase
        self._rule = Rule(match=Match(), action=LoseRequest())
        #: Requests that got no answer, by kind.
        self.lost: Counter[str] = Counter()

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Start the outage when the phase is recorded."""
        await super().after(number, call, response)
        if self._phase and call.subresource == "status" and self._phase in phases_of(json.loads(response.body)):
            self._phase = ""
            self._middleware.counts.clear()
            self._middleware.add(self._rule)
            asyncio.get_running_loop().call_later(OUTAGE, self._over)

    def _over(self) -> None:
        self._middleware.remove(self._rule)
        for count, number in self._middleware.counts:
            self.lost[f"{count.verb} {count.resource}{count.subresource}"] += number if count.code == NO_ANSWER else 0


@pytest.mark.rule("pipeline: decisions derive from the plan and observed objects, not from events seen earlier")
@pytest.mark.parametrize("phase", [phase.active for phase in PHASES])
@pytest.mark.thin
async def test_api_server_outage_only_delays_the_upgrade(phase: str) -> None:
    async with Simulation("three-nodes") as simulation:
        outage = simulation.middleware.hook = Outage(simulation, phase)
        # Without that, watches that are open would outlast the outage.
        simulation.middleware.add(api_faults.often(Cut(seconds=5, clean=False), "watch", share=1))
        async with started(simulation) as stage:
            await assert_succeeds_once(stage, outage)
    assert outage.lost
    assert max(outage.lost.values()) <= PATIENT
