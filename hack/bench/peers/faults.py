"""The behaviour of the controllers under faults of an API server, in real time.

Each has an embedded API server for itself. An object changes during the fault. A controller has recovered when it has
written the object's status, and then that of another change. A controller that ends is not started again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hack.apiserver.identity import ADMIN
from hack.apiserver.status import StatusError
from hack.bench.catalogue import Figure
from hack.bench.peers.controller_process import ControllerProcess
from hack.bench.peers.drawing import draw, fault_data
from hack.bench.peers.environments import OWN, chosen
from hack.bench.peers.faulty_server import Break, FaultyServer, faulty_server
from hack.bench.peers.results import Outcome, behaviour_table
from hack.bench.peers.servers import TOKEN, name
from hack.demo.processes import process_group
from upgrade_manager.kube.objects import resource_version

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hack.bench.peers.environments import Peer
    from hack.demo.processes import ProcessGroup

OBJECTS = 100
#: The objects that change during the fault and after it, and their value.
DURING, AFTER, VALUE = 0, 1, 7
#: Seconds for a controller to reconcile all objects, to rest before the fault, to react to a change without a fault.
SYNC_TIMEOUT, SETTLE, REACTION = 120.0, 3.0, 10.0
INTERVAL = 0.01
#: Environment variable with the longest time in seconds for a controller to recover, for shorter runs.
LIMIT = "BENCH_LIMIT"
_RETRY_AFTER = 5
_NEW_TOKEN = "rotated-token"  # noqa: S105  # of a server on loopback

Inject: TypeAlias = "Callable[[FaultyServer], Awaitable[None]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault; when `inject` returns, it is over, or will be when the controller has reacted."""

    name: str
    inject: Inject
    #: Seconds that a controller gets to recover.
    limit: float = 60.0


async def _compact(faulty: FaultyServer, *, as_event: bool) -> None:
    """Lose an event and the history before it, as when a client was away for some minutes."""
    faulty.faults.break_watches(Break.SILENCE)
    changed = await faulty.server.change(DURING, VALUE)
    faulty.faults.compacted = int(resource_version(changed))
    faulty.faults.expired_as_event = as_event
    faulty.faults.break_watches(Break.EXPIRED if as_event else Break.END)


async def _silence(faulty: FaultyServer) -> None:
    faulty.faults.break_watches(Break.SILENCE)
    await faulty.server.change(DURING, VALUE)


async def _refuse(faulty: FaultyServer, error: StatusError, *, seconds: float) -> None:
    faulty.faults.refusal = error
    faulty.faults.break_watches(Break.END)
    await faulty.server.change(DURING, VALUE)
    await asyncio.sleep(seconds)
    faulty.faults.refusal = None


async def _rotate(faulty: FaultyServer, *, overlap: float) -> None:
    """Replace the token in the account's folder; the old one is valid for some seconds more."""
    authenticator = faulty.faults.server.authenticator
    authenticator.register(_NEW_TOKEN, ADMIN)
    (faulty.server.account / "token").write_text(_NEW_TOKEN)
    await asyncio.sleep(overlap)
    authenticator.forget(TOKEN)
    await faulty.server.change(DURING, VALUE)


async def _restart(faulty: FaultyServer, *, seconds: float) -> None:
    await faulty.stop()
    await faulty.server.change(DURING, VALUE)
    await asyncio.sleep(seconds)
    await faulty.start()


_UNAVAILABLE = StatusError(code=503, reason="ServiceUnavailable", message="the server is starting")
_BUSY = StatusError(
    code=429, reason="TooManyRequests", message="too many requests", details={"retryAfterSeconds": _RETRY_AFTER}
)
#: It takes minutes until the last controllers notice, so the others run meanwhile.
SILENCE = Fault(name="a watch brings nothing any more", inject=_silence, limit=660.0)
FAULTS = (
    Fault(name="410 as an event of the watch", inject=partial(_compact, as_event=True), limit=30.0),
    Fault(name="410 as the status of a watch", inject=partial(_compact, as_event=False), limit=30.0),
    Fault(name="503 for a minute", inject=partial(_refuse, error=_UNAVAILABLE, seconds=60.0), limit=120.0),
    Fault(name="429 for 20 s with Retry-After 5", inject=partial(_refuse, error=_BUSY, seconds=20.0)),
    Fault(name="token rotated, the old one is rejected", inject=partial(_rotate, overlap=0.0)),
    Fault(name="token rotated, the old one is valid for 70 s", inject=partial(_rotate, overlap=70.0)),
    Fault(name="API server restarted, unreachable for 5 s", inject=partial(_restart, seconds=5.0)),
)


def measure() -> list[Figure]:
    """Run every controller under every fault, print the table, and draw it."""
    # A controller that ends may do so in the middle of a response.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    outcomes = asyncio.run(_all(chosen()))
    print(f"\n{behaviour_table(outcomes)}\n", flush=True)
    draw("faults", fault_data(outcomes))
    own = [outcome for outcome in outcomes if outcome.peer == OWN]
    recovered = sum(outcome.recovered is not None for outcome in own)
    name = f"faults that the controller with {OWN} recovers from"
    return [Figure(name=name, value=recovered, unit="", target=len(own), at_most=False)]


async def _all(peers: list[Peer]) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        async with process_group(Path(folder)) as children, asyncio.TaskGroup() as group:
            silence = group.create_task(_under(SILENCE, peers, children))
            others = [outcome for fault in FAULTS for outcome in await _under(fault, peers, children)]
            return [*others, *await silence]


async def _under(fault: Fault, peers: list[Peer], children: ProcessGroup) -> list[Outcome]:
    outcomes = await asyncio.gather(*(_outcome(fault, peer, children) for peer in peers))
    for outcome in outcomes:
        print(f"{fault.name}: {outcome.peer}: {outcome.text}", file=sys.stderr, flush=True)
    return outcomes


async def _outcome(fault: Fault, peer: Peer, children: ProcessGroup) -> Outcome:
    limit = min(fault.limit, float(os.environ.get(LIMIT, "inf")))
    async with faulty_server() as faulty:
        await faulty.server.fill(OBJECTS)
        process = await ControllerProcess.start(peer, children, faulty.server, objects=OBJECTS)
        await process.record("synced", within=SYNC_TIMEOUT)
        await asyncio.sleep(SETTLE)
        faulty.server.requests.clear()
        began = time.monotonic()
        ended = asyncio.create_task(_ended(process))
        await fault.inject(faulty)
        over = time.monotonic()
        at = await _written(faulty, process, DURING, until=over + limit)
        requests = sum(one.by_controller for one in faulty.server.requests.received())
        if at is not None:
            await faulty.server.change(AFTER, VALUE)
            if await _written(faulty, process, AFTER, until=time.monotonic() + REACTION) is None:
                at = None
        outcome = Outcome(
            peer=peer.name,
            fault=fault.name,
            recovered=None if at is None else max(0.0, at - over),
            ended=ended.result() - began if ended.done() else None,
            requests=requests,
            limit=limit,
        )
        await process.kill()
        await ended
        return outcome


async def _ended(process: ControllerProcess) -> float:
    """Return the time at which the controller has ended."""
    await process.child.process.wait()
    return time.monotonic()


async def _written(faulty: FaultyServer, process: ControllerProcess, number: int, *, until: float) -> float | None:
    """Return the time at which the controller had written an object's status; None at the end of both."""
    while time.monotonic() < until:
        for one in faulty.server.requests.received():
            if one.reports and one.name == name(number):
                return one.ended
        if not process.is_running:
            return None
        await asyncio.sleep(INTERVAL)
    return None
