"""Events of an upgrade's watches come late, get lost until the next list, or come twice: the end is the same.

A golden run counts the events. Then, for each of them, a new cluster with the same seed in which that event has its
mishap.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import pytest

from hack.apiserver.status import expired
from hack.apiserver.streams import ChunkStream
from hack.apiserver.watch import error_line
from hack.faults.forwarding import Forwarding
from hack.faults.watch_faults import Lines, Whole
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import end_state
from tests.support.managers.announcements import steps
from tests.support.managers.sweep import Goldens, Sweep, cases, shares
from tests.support.managers.upgrade import Ledger, UpgradeRun
from upgrade_manager.kube import objects
from upgrade_manager.kube.transport import Request, Stream, Transport

Mishap: TypeAlias = Literal["late", "lost", "twice"]

#: Virtual seconds by which an event and all later ones of its watch are delayed.
LATE = 5.0
#: Virtual seconds after which a watch that lost an event ends with 410, so that the reflector lists again.
UNTIL_RELIST = 20.0
_OK = 200
_EVENTS = {"ADDED", "MODIFIED", "DELETED"}


class Skewed(Forwarding):
    """Counts the events of all watches, from 1, and delays, drops or repeats one of them."""

    def __init__(self, inner: Transport, *, event: int = 0, mishap: Mishap = "late") -> None:
        super().__init__(inner)
        self._event = event
        self._mishap = mishap
        #: Events so far.
        self.events = 0

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Forward it; only watches are changed."""
        async with self._inner.open(request) as stream:
            if stream.status != _OK or not any(key == "watch" for key, _ in request.query):
                yield stream
                return
            lines = _Lines(Whole(stream.chunks()), self)
            yield ChunkStream(lines, status=_OK, headers=stream.headers)

    def meets(self, line: bytes) -> Mishap | None:
        """Count a line; return its mishap, if any."""
        if json.loads(line)["type"] not in _EVENTS:
            return None
        self.events += 1
        return self._mishap if self.events == self._event else None


class _Lines:
    """The lines of one watch."""

    def __init__(self, lines: Lines, skewed: Skewed) -> None:
        self._lines = lines
        self._skewed = skewed
        self._again: deque[bytes] = deque()
        #: Loop time at which the watch has expired.
        self._expires: float | None = None

    async def next(self) -> bytes | None:
        if self._again:
            return self._again.popleft()
        try:
            async with asyncio.timeout_at(self._expires):
                return await self._next()
        except TimeoutError:
            self._expires = None
            return error_line(expired("too old resource version"))

    async def _next(self) -> bytes | None:
        line = await self._lines.next()
        match None if line is None else self._skewed.meets(line):
            case "late":
                await asyncio.sleep(LATE)
            case "lost":
                self._expires = asyncio.get_running_loop().time() + UNTIL_RELIST
                async with asyncio.timeout_at(self._expires):
                    return await self._next()
            case "twice" if line is not None:
                self._again.append(line)
            case _:
                pass
        return line


MISHAPS: tuple[Mishap, ...] = get_args(Mishap)
#: The events are dealt out to so many tests, which may run at the same time.
SHARES = 2
#: The distance between two events: there are far more of them than of writes.
STRIDE = 60


async def upgrade(event: int = 0, *, mishap: Mishap = "late") -> tuple[dict[str, Any], int]:
    """Return how an upgrade ends, and how many events there were."""
    async with Simulation("three-nodes", scale=0.2) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        skewed = Skewed(stage.ledger, event=event, mishap=mishap)
        stage = replace(stage, ledger=Ledger(skewed))
        async with stage.life():
            await stage.create_plan()
            plan = await stage.succeed()
            await asyncio.sleep(2 * UNTIL_RELIST)
        ending = {
            "generation": objects.status(plan)["provisionGeneration"],
            "state": await end_state(simulation),
            "created": Counter(made for made in stage.ledger.created if not made[0].endswith("/events")),
            "announced": steps(await stage.events()),
        }
        return ending, skewed.events


GOLDEN = Goldens(upgrade)


@pytest.mark.rule("pipeline: decisions derive from the plan and observed objects, not from events seen earlier")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SHARES))
@pytest.mark.parametrize("mishap", cases(MISHAPS, default=["lost"]))
@pytest.mark.full
async def test_late_lost_or_duplicate_watch_event_changes_nothing(mishap: Mishap, share: int, sweep: Sweep) -> None:
    golden, events = await GOLDEN.of(0)
    assert events > 100
    first = 1 + MISHAPS.index(mishap)
    for event in sweep.points(first, events, share=share, shares=SHARES, stride=STRIDE):
        ending, _ = await upgrade(event, mishap=mishap)
        assert ending == golden, f"event {event} of {events} is {mishap}"
