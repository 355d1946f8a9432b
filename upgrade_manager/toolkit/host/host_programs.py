"""Runs programs of the host, by chroot into its root file system, and programs of the Pod's own image."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import structlog

from upgrade_manager.toolkit.host.program_input import InputPipe
from upgrade_manager.toolkit.run.errors import BadEnvironment, ProgramFailed, ProgramTimedOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: The folders of the host's own programs, without RKE2's.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
#: Bytes of standard output that are kept; a list of all images of a node has about 100 kB.
_MAX_OUTPUT = 16 * 1024 * 1024
#: Lines of standard error that are kept for messages.
_LAST_LINES = 20
#: Characters of a line in a message.
_MAX_LINE = 300
#: Seconds for a program and its children to end after a signal, and between two looks at them.
_GRACE = 5.0
_POLL = 0.05
#: The signal that is not sent, and shows whether a process is there.
_PROBE = 0
_LINE_LIMIT = 1024 * 1024

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One start of a program, as data that tests record and replay."""

    argv: tuple[str, ...]
    #: Seconds until the program is killed.
    timeout: float
    #: The program's whole environment besides PATH.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: The program's standard input, which a thread produces; None for an empty input.
    stdin: Iterator[bytes] | None = None

    @property
    def program(self) -> str:
        """The program's name without its directory."""
        return self.argv[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The exit status and the output of a program."""

    status: int
    stdout: str = ""
    #: The last lines of standard error.
    stderr: str = ""

    @property
    def last_line(self) -> str:
        """The last line that is not empty, of standard error or else of standard output, shortened."""
        lines = [line.strip() for text in (self.stdout, self.stderr) for line in text.splitlines() if line.strip()]
        return lines[-1][:_MAX_LINE] if lines else ""


class HostPrograms(Protocol):
    """Runs programs of the host."""

    async def run(self, call: Call) -> Output:
        """Return the output with any exit status. Raises ProgramTimedOut, and ProgramFailed for a failed start."""
        ...


async def run_program(programs: HostPrograms, call: Call) -> Output:
    """Run a program that must return 0. Raises ProgramFailed with its last line, and ProgramTimedOut."""
    output = await programs.run(call)
    if output.status != 0:
        raise ProgramFailed(f"{call.program} returned {output.status}: {output.last_line or 'no output'}")
    return output


class ChrootPrograms:
    """Starts `chroot ROOT PROGRAM ARGUMENTS…`; never a shell line."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def run(self, call: Call) -> Output:
        """See HostPrograms."""
        argv = (_located("chroot"), str(self._root), *call.argv)
        return await _run_process(call, argv, path=PATH)


class PodPrograms:
    """Starts programs of the Pod's own image, such as helm; never a shell line."""

    async def run(self, call: Call) -> Output:
        """See HostPrograms."""
        argv = (_located(call.argv[0]), *call.argv[1:])
        return await _run_process(call, argv, path=os.environ.get("PATH", PATH))


def _located(program: str) -> str:
    """Return the path of a program of the Pod's image. Raises BadEnvironment."""
    found = shutil.which(program)
    if found is None:
        raise BadEnvironment(f"the program {program} is not on PATH")
    return found


async def _run_process(call: Call, argv: tuple[str, ...], *, path: str) -> Output:
    """Start `argv` for the call. Raises ProgramTimedOut."""
    _log.info("program started", argv=list(call.argv))
    pipe = InputPipe() if call.stdin is not None else None
    try:
        output = await _output_of(argv, call, pipe, path=path)
    finally:
        if pipe is not None:
            pipe.close()
    _log.info("program ended", program=call.program, status=output.status)
    return output


async def _output_of(argv: tuple[str, ...], call: Call, pipe: InputPipe | None, *, path: str) -> Output:
    process = await asyncio.create_subprocess_exec(
        *argv,
        env={"PATH": path, **call.environment},
        stdin=asyncio.subprocess.DEVNULL if pipe is None else pipe.read_end,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LINE_LIMIT,
        start_new_session=True,
    )
    try:
        if pipe is not None:
            pipe.started()
        async with asyncio.timeout(call.timeout):
            return await _communicate(process, call, pipe)
    except TimeoutError as error:
        raise ProgramTimedOut(f"{call.program} did not end within {call.timeout:g} s") from error
    finally:
        await _end(process)


async def _communicate(process: asyncio.subprocess.Process, call: Call, pipe: InputPipe | None) -> Output:
    if process.stdout is None or process.stderr is None:
        raise AssertionError("both are pipes")
    try:
        async with asyncio.TaskGroup() as group:
            stdout = group.create_task(_read(process.stdout))
            stderr = group.create_task(_follow(process.stderr, call.program))
            if call.stdin is not None and pipe is not None:
                group.create_task(_feed(process, pipe, call.stdin))
            status = group.create_task(process.wait())
    except BaseExceptionGroup as group_error:
        # Only the producer of the input can fail, and the caller handles its error.
        raise group_error.exceptions[0] from None
    return Output(status=status.result(), stdout=stdout.result(), stderr=stderr.result())


async def _follow(stream: asyncio.StreamReader, program: str) -> str:
    """Log the lines of standard error as they arrive, and return the last lines."""
    kept: deque[str] = deque(maxlen=_LAST_LINES)
    while line := await _line(stream):
        kept.append(line.decode(errors="replace").rstrip())
        _log.info("program output", program=program, line=kept[-1][:_MAX_LINE])
    return "\n".join(kept)


async def _line(stream: asyncio.StreamReader) -> bytes:
    """Return the next line, empty at the end."""
    try:
        return await stream.readline()
    except ValueError:
        return b"(a line that is too long)\n"


async def _read(stream: asyncio.StreamReader) -> str:
    """Return the stream's beginning; the rest is read and discarded."""
    kept = bytearray()
    while piece := await stream.read(_LINE_LIMIT):
        kept += piece[: _MAX_OUTPUT - len(kept)]
    return kept.decode(errors="replace")


async def _feed(process: asyncio.subprocess.Process, pipe: InputPipe, source: Iterator[bytes]) -> None:
    """Feed the source; if the source fails, kill the program, which must not take a part for the whole input."""
    try:
        await pipe.feed(source)
    except BaseException:
        _signal(process, signal.SIGKILL)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program and its children, unless it has succeeded: a child that outlives it would go on writing."""
    if process.returncode == 0:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not _signal(process, number):
            break
        if await _ends(process):
            return
    await process.wait()


async def _ends(process: asyncio.subprocess.Process) -> bool:
    """Return True if the program and its children end within the grace.

    Until Python 3.11.3 the time-out of a task that is being cancelled is a cancellation; nothing reports the end of a
    child of another process.
    """
    for _ in range(round(_GRACE / _POLL)):
        if process.returncode is not None and not _signal(process, _PROBE):
            return True
        await asyncio.sleep(_POLL)
    return False


def _signal(process: asyncio.subprocess.Process, number: int) -> bool:
    """Send the signal to the program and its children; return False if they have ended."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True
