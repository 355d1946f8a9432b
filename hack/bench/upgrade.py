"""An upgrade in process: wall time, requests, and the API server's share, measured by replaying the requests.

Another server assigns other uids, names and versions. `Translation` learns them from the responses.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack import scenario as scenarios
from hack import virtual_time
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER, upgraded
from hack.bench.recorder import CONFLICT
from hack.cluster.embedded_backend import virtual_backend
from hack.simulation import Simulation
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hack.bench.in_process import Upgrade
    from hack.bench.recorder import Exchange
    from hack.cluster.backend import Backend
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Transport

#: Runs of each kind; the fastest counts, because other programs only make it slower.
RUNS = 3
#: Sizes of clusters; the difference within a pair is the cost of a node.
SMALL, LARGE = (3, 6), (50, 100)
#: Virtual minutes until the upgrade has settled, and of the measurement.
SETTLE, IDLE = 10, 60


def measure() -> list[Figure]:
    """Run at the scenario's pace, with instant actors, and as replayed requests."""
    wall = min(virtual_time.run(_upgrade(scale=1.0)).wall for _ in range(RUNS))
    ratio = min(_ratio() for _ in range(RUNS))
    return [
        Figure(name="three-node upgrade in process, virtual time", value=wall, unit="s", target=1),
        Figure(name="the same with instant actors, over its requests replayed", value=ratio, unit="", target=2),
    ]


def _ratio() -> float:
    run = virtual_time.run(_upgrade(scale=0.0))
    return run.wall / virtual_time.run(replayed(run))


async def _upgrade(*, scale: float) -> Upgrade:
    async with upgraded(scenarios.load("three-nodes"), scale=scale) as upgrade:
        return upgrade


async def replayed(run: Upgrade, *, backend: Callable[[int], Backend] = virtual_backend) -> float:
    """Return the seconds that a three-node upgrade's requests take on a fresh server without other clients."""
    async with Simulation("three-nodes", actors=False, backend=backend) as simulation:
        translation = Translation()
        translation.learn_objects(run.initial_objects, await simulation.backend.objects())
        began = time.perf_counter()
        await replay(simulation.backend.transport, run.recorder.exchanges, translation)
        return time.perf_counter() - began


def measure_requests() -> list[Figure]:
    """Upgrade clusters that differ in size only."""
    runs = {count: virtual_time.run(_requests(count)) for count in (*SMALL, *LARGE)}
    three = runs[SMALL[0]]
    small, large = (_each_node(runs, *sizes) for sizes in (SMALL, LARGE))
    return [
        Figure(name="requests of a three-node upgrade", value=len(three), unit="", target=100),
        Figure(name="writes of status in it", value=sum(e.writes_status for e in three), unit="", target=50),
        Figure(name="responses 409 in it", value=sum(e.status == CONFLICT for e in three), unit="", target=0),
        Figure(name="requests for each node, three-node upgrade", value=small, unit="", target=40),
        Figure(name="requests for each node, 100-node upgrade", value=large, unit="", target=40),
        Figure(name="ratio of the two", value=max(small, large) / min(small, large), unit="", target=1.1),
    ]


def measure_idle() -> list[Figure]:
    """Finish a plan, and count the requests of the hour after it."""
    exchanges = virtual_time.run(_idle())
    writes = sum(exchange.writes_status for exchange in exchanges)
    return [
        Figure(name="idle with a finished plan: writes of status", value=writes, unit="", target=0),
        Figure(name="idle with a finished plan: requests", value=len(exchanges) / IDLE, unit="/min", target=10),
    ]


def _each_node(runs: dict[int, list[Exchange]], fewer: int, more: int) -> float:
    return (len(runs[more]) - len(runs[fewer])) / (more - fewer)


async def _requests(count: int) -> list[Exchange]:
    scenario = scenarios.load("three-nodes").changed(nodes={"count": count, "management": 3})
    async with upgraded(scenario) as upgrade:
        return upgrade.recorder.of(MANAGER)


async def _idle() -> list[Exchange]:
    async with upgraded(scenarios.load("three-nodes")) as upgrade:
        await asyncio.sleep(SETTLE * 60)
        upgrade.recorder.exchanges.clear()
        await asyncio.sleep(IDLE * 60)
        return upgrade.recorder.of(MANAGER)


#: The share of responses that must have the recorded status.
MIN_FIDELITY = 0.95
_VERSION = re.compile(rb'"resourceVersion": ?"(\d+)"')
#: Candidates for uids and names.
_WORD = re.compile(rb"[a-z0-9][a-z0-9.-]*")
#: A version that every server has.
_ANY = "0"


class UnfaithfulReplay(Exception):
    """The server's responses differ from the recorded ones, so the time is meaningless."""


async def replay(server: Transport, exchanges: Sequence[Exchange], translation: Translation) -> None:
    """Send all requests one after another; watches stay open and are read to the end. Raises UnfaithfulReplay."""
    same = 0
    async with asyncio.TaskGroup() as group:
        readers = []
        for exchange in exchanges:
            request = translation.translate(exchange.request)
            if exchange.watches:
                opened = asyncio.Event()
                readers.append(group.create_task(_read(server, request, opened)))
                await opened.wait()
                same += 1
            else:
                response = await server.send(request)
                same += response.status == exchange.status
                if exchange.writes:
                    translation.learn(exchange.body, response.body)
            # Watches are read and the server's controllers run between two requests, as they did in the run.
            await asyncio.sleep(0)
        for reader in readers:
            reader.cancel()
    if same < MIN_FIDELITY * len(exchanges):
        raise UnfaithfulReplay(f"only {same} of {len(exchanges)} responses have the recorded status")


async def _read(server: Transport, request: Request, opened: asyncio.Event) -> None:
    async with server.open(request) as stream:
        opened.set()
        async for _ in stream.chunks():
            pass


class Translation:
    """Learns from pairs of responses to the same request, and rewrites requests."""

    def __init__(self) -> None:
        self._versions: dict[bytes, bytes] = {}
        self._words: dict[bytes, bytes] = {}

    def learn_objects(self, recorded: Iterable[Object], current: Iterable[Object]) -> None:
        """Learn from two lists; objects of the same kind and name correspond."""
        known = {_identity(obj): obj for obj in current}
        for obj in recorded:
            if _identity(obj) in known:
                self._pair(obj, known[_identity(obj)])

    def learn(self, recorded: bytes, current: bytes) -> None:
        """Learn from two response bodies."""
        before, after = _parsed(recorded), _parsed(current)
        self._pair(before, after)
        if isinstance(before.get("items"), list) and isinstance(after.get("items"), list):
            self.learn_objects(before["items"], after["items"])

    def translate(self, request: Request) -> Request:
        """Return the request with this server's uids, names and versions."""
        query = tuple((key, self._at(value) if key == "resourceVersion" else value) for key, value in request.query)
        path = self._worded(request.path.encode()).decode()
        body = _VERSION.sub(self._pinned, self._worded(request.body)) if request.body else request.body
        return replace(request, path=path, query=query, body=body)

    def _pair(self, recorded: Object, current: Object) -> None:
        for known, read in (
            (self._versions, objects.resource_version),
            (self._words, objects.uid),
            (self._words, objects.name),
        ):
            before, after = read(recorded), read(current)
            if before and after and before != after:
                known[before.encode()] = after.encode()

    def _worded(self, text: bytes) -> bytes:
        return _WORD.sub(lambda found: self._words.get(found[0], found[0]), text)

    def _at(self, value: str) -> str:
        if value in {"", _ANY}:
            return value
        return self._versions.get(value.encode(), _ANY.encode()).decode()

    def _pinned(self, found: re.Match[bytes]) -> bytes:
        return b'"resourceVersion":"' + self._versions.get(found[1], found[1]) + b'"'


def _identity(obj: Object) -> tuple[str, str, str, str]:
    return str(obj.get("apiVersion", "")), str(obj.get("kind", "")), objects.namespace(obj), objects.name(obj)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
