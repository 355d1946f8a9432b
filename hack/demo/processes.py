"""The demo's child processes: each has a log, all are in one process group, and none outlives the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp

from hack.demo import supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

#: Seconds from SIGTERM to SIGKILL.
STOP_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A program and its log."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    def tail(self, lines: int) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def ending(self) -> str:
        """Describe how the process ended."""
        code = self.process.returncode or 0
        if code < 0:
            return f"the {self.name} was terminated by {signal.Signals(-code).name}"
        return f"the {self.name} exited with status {code}"

    async def is_ready(self, url: str, *, interval: float) -> bool:
        """Wait until the program responds to a probe; return False if it ends before."""
        async with aiohttp.ClientSession() as http:
            while self.process.returncode is None:
                with contextlib.suppress(aiohttp.ClientError):
                    async with http.get(url) as response:
                        if response.ok:
                            return True
                await asyncio.sleep(interval)
        return False

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after STOP_TIMEOUT."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


@dataclass(slots=True)
class ProcessGroup:
    """All children of one demo; created by `process_group`."""

    folder: Path
    #: The process group, led by the supervisor.
    group: int
    #: In the order of their start, the reverse of which is the order of their stop.
    children: list[Child] = field(default_factory=list)

    async def start(self, name: str, command: Sequence[str]) -> Child:
        """Start a program whose output is appended to `NAME.log`."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=self.group,
            )
        child = Child(name=name, process=process, log=log)
        self.children.append(child)
        return child


@contextlib.asynccontextmanager
async def process_group(folder: Path) -> AsyncIterator[ProcessGroup]:
    """Provide a process group and its supervisor, and stop all children at the end."""
    command = [sys.executable, "-I", "-S", supervisor.__file__, str(folder)]
    leader = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)  # noqa: ASYNC220  # its pipe is held, not read
    group = ProcessGroup(folder=folder, group=leader.pid)
    try:
        yield group
    finally:
        for child in reversed(group.children):
            if child.process.returncode is None:
                await child.stop()
        os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()
        if leader.stdin is not None:
            leader.stdin.close()
