"""The manager as a process: how fast it is there, how fast it is back, and how much memory it takes."""

from __future__ import annotations

import asyncio
import logging
import re
import statistics
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hack.bench.desk import MANAGER, desk
from hack.bench.figure import Figure
from hack.bench.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.bench.desk import Desk
    from upgrade_manager.kube.transport import Request, Stream, Transport

#: Starts that are measured; the median counts.
STARTS = 5
#: Seconds after which a manager with a finished plan counts as idle.
SETTLED = 3.0
_KIB_PER_MB = 1000 * 1000 / 1024


def measure() -> list[Figure]:
    """Run two upgrades of three nodes, and kill the manager in the second."""
    # That a client is cut off in the middle of an answer is the point here, and no news for the gateway's log.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    return [*asyncio.run(_ordinary()), asyncio.run(_killed())]


async def _ordinary() -> list[Figure]:
    async with desk(scenario="three-nodes", time_scale=0.3) as found:
        started = statistics.median([await _start_and_stop(found) for _ in range(STARTS)])
        found.recorder.exchanges.clear()
        manager = await found.start_manager()
        await found.apply()
        await found.succeeded()
        watches = {(e.request.path, _selection(e.request)) for e in found.recorder.of(MANAGER) if e.watches}
        peak = memory(manager.process.pid, "VmHWM")
        await asyncio.sleep(SETTLED)
        idle = memory(manager.process.pid, "VmRSS")
    return [
        Figure(name="start to synced caches", value=started, unit="s", aim=0.6),
        Figure(name="watches opened in a three-node upgrade", value=len(watches), unit="", aim=16),
        Figure(name="resident memory, idle", value=idle, unit="MB", aim=60),
        Figure(name="resident memory, peak of a three-node upgrade", value=peak, unit="MB", aim=70),
    ]


async def _start_and_stop(found: Desk) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    manager = await found.start_manager()
    took = loop.time() - began
    await manager.stop()
    return took


def _selection(request: Request) -> tuple[str, ...]:
    return tuple(value for key, value in request.query if key in {"labelSelector", "fieldSelector"})


def memory(pid: int, field: str) -> float:
    """MB, from /proc: VmRSS is what is resident now, VmHWM the most that ever was."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / _KIB_PER_MB if found else 0.0


class Trap(Recorder):
    """Keeps the answer to the creation of the first node's Job back: there the manager is killed."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.sprung = asyncio.Event()
        #: A status was written after that.
        self.recovered = asyncio.Event()

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass on; the write is made, its answer is not sent."""
        async with super().open(request) as stream:
            if not self.sprung.is_set() and request.method == "POST" and b"pre-drain" in request.body:
                self.sprung.set()
                await asyncio.Event().wait()
            if self.sprung.is_set() and self.exchanges[-1].writes_status:
                self.recovered.set()
            yield stream


async def _killed() -> Figure:
    """The next status write needs nobody but the manager: the Job is there, its node's state is not on record."""
    loop = asyncio.get_running_loop()
    async with desk(scenario="three-nodes", time_scale=0.3, recorder=Trap) as found:
        manager = await found.start_manager()
        await found.apply()
        if not isinstance(found.recorder, Trap):
            raise TypeError(found.recorder)
        await found.recorder.sprung.wait()
        manager.process.kill()
        killed = loop.time()
        async with asyncio.TaskGroup() as group:
            group.create_task(found.start_manager())
            await found.recorder.recovered.wait()
            took = loop.time() - killed
        await found.succeeded()
    return Figure(name="SIGKILL and restart to the next status write", value=took, unit="s", aim=1)
