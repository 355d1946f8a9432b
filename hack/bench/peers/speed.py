"""A controller of 10,000 objects of 5 kB: the same one with this project's library, with others, and by hand.

Each runs in its own process and environment, on a real API server and on the embedded one. In a round each runs once,
in an order that moves on with the rounds: it starts, reconciles all objects once, patches the status of an object for
each of some paced changes, and of a burst of changes. The first run meets a cold API server, so it is not counted.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hack.bench.peers.controller_process import ControllerProcess
from hack.bench.peers.drawing import draw, speed_data
from hack.bench.peers.environments import PEERS, RAW, chosen
from hack.bench.peers.results import Run, figures, table
from hack.bench.peers.servers import embedded, real
from hack.control_plane.assets import AssetsError
from hack.demo.processes import process_group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from hack.bench.catalogue import Figure
    from hack.bench.peers.environments import Peer
    from hack.bench.peers.requests import Received
    from hack.bench.peers.servers import Server
    from hack.demo.processes import ProcessGroup

    Serve: TypeAlias = Callable[[], AbstractAsyncContextManager[Server]]
    Writes: TypeAlias = Callable[[], Awaitable[None]]

#: Environment variables for shorter runs.
ROUNDS, OBJECTS = "BENCH_ROUNDS", "BENCH_OBJECTS"
PACED, BURST = 200, 600
#: Seconds between two paced changes.
PACE = 0.025
#: Changes of the burst that are written at a time.
CONCURRENCY = 32
#: Seconds for all objects to be reconciled, for all statuses to be written, and after which a controller is at rest.
SYNC_TIMEOUT, WRITE_TIMEOUT, SETTLE = 300.0, 120.0, 1.0
INTERVAL = 0.1
_SERVERS: dict[str, Serve] = {"real": real, "embedded": embedded}


def measure() -> list[Figure]:
    """Run all rounds on both servers, print a table for each, and draw the first; the real one may be missing."""
    peers = chosen()
    runs: dict[str, list[Run]] = {}
    for name, server in _SERVERS.items():
        try:
            runs[name] = asyncio.run(_rounds(server, peers))
        except AssetsError as error:
            print(f"peers on the real API server: skipped: {error}", file=sys.stderr)
            continue
        print(f"\n{name} API server\n\n{table(runs[name])}\n", flush=True)
        if len(runs) == 1:
            draw("speed", speed_data(runs[name]))
    return [figure for name, found in runs.items() for figure in figures(found, server=name)]


async def _rounds(serve: Serve, peers: list[Peer]) -> list[Run]:
    rounds, objects = int(os.environ.get(ROUNDS, "5")), int(os.environ.get(OBJECTS, "10000"))
    values = iter(range(1, sys.maxsize))
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        async with serve() as server, process_group(Path(folder)) as children:
            await server.fill(objects)
            measured = _Measured(server=server, children=children, objects=objects, values=values)
            await measured.run(PEERS[RAW])
            order = [peers[number % len(peers) :] + peers[: number % len(peers)] for number in range(rounds)]
            return [await measured.run(peer) for peers in order for peer in peers]


class _Measured:
    """Runs controllers one after the other."""

    def __init__(self, *, server: Server, children: ProcessGroup, objects: int, values: Iterator[int]) -> None:
        self._server = server
        self._children = children
        self._objects = objects
        #: Each change writes another one.
        self._values = values

    async def run(self, peer: Peer) -> Run:
        """Start a controller, measure it and kill it. Raises BenchError, TimeoutError."""
        requests = self._server.requests
        requests.clear()
        process = await ControllerProcess.start(peer, self._children, self._server, objects=self._objects)
        started = await process.record("started", within=SYNC_TIMEOUT)
        synced = await process.record("synced", within=SYNC_TIMEOUT)
        await asyncio.sleep(SETTLE)
        memory = process.resident()
        paced = await self._processor(process, self._paced, total=PACED)
        reactions = list(delays(requests.received()))
        before = len(requests.received())
        burst = await self._processor(process, self._burst, total=PACED + BURST)
        received = list(requests.received())
        run = Run(
            peer=peer.name,
            synced=synced["at"] - process.began,
            processor=synced["processor"],
            events=self._objects / (synced["processor"] - started["processor"]),
            memory=memory,
            memory_after=process.resident(),
            reactions=tuple(reactions),
            paced=paced / PACED,
            burst=burst / BURST,
            whole_burst=whole(received[before:]),
            lag=lag(received),
            requests=sum(one.by_controller for one in received),
        )
        await process.kill()
        print(f"{peer.name}: {run.summary()}", file=sys.stderr, flush=True)
        return run

    async def _processor(self, process: ControllerProcess, write: Writes, *, total: int) -> float:
        """Return the processor time of the controller from before some changes until their statuses are written."""
        before = process.processor()
        await write()
        async with asyncio.timeout(WRITE_TIMEOUT):
            while sum(one.reports for one in self._server.requests.received()) < total:  # noqa: ASYNC110  # a process
                await asyncio.sleep(INTERVAL)
        await asyncio.sleep(SETTLE)
        return process.processor() - before

    async def _paced(self) -> None:
        for number in range(PACED):
            await self._server.change(number, next(self._values))
            await asyncio.sleep(PACE)

    async def _burst(self) -> None:
        slots = asyncio.Semaphore(CONCURRENCY)

        async def change(number: int) -> None:
            async with slots:
                await self._server.change(number, next(self._values))

        async with asyncio.TaskGroup() as group:
            for number in range(PACED, PACED + BURST):
                group.create_task(change(number))


def delays(received: list[Received]) -> Iterator[float]:
    """Yield the seconds from the response to each change until the request that patches the object's status."""
    changed = {one.name: one.ended for one in received if one.changes}
    for one in received:
        if one.reports and one.name in changed:
            yield max(0.0, one.began - changed.pop(one.name))


def whole(received: list[Received]) -> float:
    """Return the seconds from the request of the first change until the response to the last status."""
    return max(one.ended for one in received if one.reports) - min(one.began for one in received if one.changes)


def lag(received: list[Received]) -> float:
    """Return the seconds from the response to the last change until that to the last status."""
    return max(one.ended for one in received if one.reports) - max(one.ended for one in received if one.changes)
