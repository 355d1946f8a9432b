"""A controller as a process: its records, its memory and its processor time."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hack.bench.in_process import BenchError
from hack.bench.peers.environments import ROOT, command
from hack.bench.process import MIB_PER_MB, memory, processor_time

if TYPE_CHECKING:
    from hack.bench.peers.environments import Peer
    from hack.bench.peers.servers import Server
    from hack.demo.processes import Child, ProcessGroup

#: Seconds between two polls of a controller's log.
INTERVAL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerProcess:
    """A controller that was started."""

    child: Child
    #: Of the clock that all processes share.
    began: float

    @classmethod
    async def start(cls, peer: Peer, children: ProcessGroup, server: Server, *, objects: int) -> ControllerProcess:
        """Start it without waiting."""
        variables = {**server.environment, "PEER_OBJECTS": str(objects), "PYTHONPATH": str(ROOT)}
        given = [f"{name}={value}" for name, value in variables.items()]
        program = command(peer)
        began = time.monotonic()
        # Several servers have controllers at the same time, and a server has several one after the other.
        log = f"{peer.name}-{urlsplit(server.url).port}-{len(children.children)}"
        child = await children.start(log, ["env", *given, *program])
        return cls(child=child, began=began)

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self.child.process.returncode is None

    async def record(self, event: str, *, within: float) -> dict[str, Any]:
        """Wait for a record, and return it. Raises BenchError, TimeoutError."""
        async with asyncio.timeout(within):
            while True:
                for record in records(self.child.log.read_text(errors="replace")):
                    if record["event"] == event:
                        return record
                if not self.is_running:
                    raise BenchError(f"{self.child.ending()}\n{self.child.tail(20)}")
                await asyncio.sleep(INTERVAL)

    def processor(self) -> float:
        """Return the seconds of processor time so far."""
        return processor_time(self.child.process.pid)

    def resident(self) -> float:
        """Return the resident memory in MiB."""
        return memory(self.child.process.pid, "VmRSS") * MIB_PER_MB

    async def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self.child.process.kill()
        await self.child.process.wait()


def records(log: str) -> list[dict[str, Any]]:
    """Return the records among the lines of a log."""
    return [json.loads(line) for line in log.splitlines() if line.startswith('{"event": ') and line.endswith("}")]
