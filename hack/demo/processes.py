"""The demo's child processes: each writes its own log, all stand in one group, and none outlives the demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hack.demo import supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

#: Seconds that a child gets to stop after it was asked to.
STOP_WITHIN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A running program and the file that holds what it has said."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    def tail(self, lines: int) -> str:
        """Return the last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def ending(self) -> str:
        """Say how it ended, for a process that has."""
        code = self.process.returncode or 0
        if code < 0:
            return f"the {self.name} was ended by {signal.Signals(-code).name}"
        return f"the {self.name} ended with exit status {code}"

    async def stop(self) -> None:
        """Ask it to stop, and insist after a while."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


@dataclass(slots=True)
class Family:
    """All children of one demo; made by `family`."""

    folder: Path
    #: The process group, led by the keeper.
    group: int
    #: In the order in which they were started; they are stopped in the opposite one.
    children: list[Child] = field(default_factory=list)

    async def start(self, name: str, command: Sequence[str]) -> Child:
        """Start a program with its output in the log `NAME.log`, to which a second start of the same name appends."""
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
async def family(folder: Path) -> AsyncIterator[Family]:
    """Give children a group and a keeper, and stop whatever still runs at the end."""
    command = [sys.executable, "-I", "-S", supervisor.__file__, str(folder)]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)  # noqa: ASYNC220  # its pipe is ours to hold, not the loop's
    relatives = Family(folder=folder, group=guard.pid)
    try:
        yield relatives
    finally:
        for child in reversed(relatives.children):
            if child.process.returncode is None:
                await child.stop()
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()
        if guard.stdin is not None:
            guard.stdin.close()
