from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs.polling import eventually
from upgrade_manager.toolkit.host.host_programs import Call, ChrootPrograms
from upgrade_manager.toolkit.run.errors import BadArchive, ProgramTimedOut

pytestmark = pytest.mark.real_loop

MIB = bytes(1024 * 1024)
#: Records the end of its input, so that a test sees a stream that was taken for complete.
READ_ALL = 'wc -c >"$0.read" && echo complete >"$0.end"'


def _pieces(count: int, *, error: Exception | None = None) -> Iterator[bytes]:
    for _ in range(count):
        yield MIB
    if error is not None:
        raise error


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _closed(before: int) -> None:
    """Wait until no more files are open than before. A transport closes its pipes after the program has ended."""

    async def are_closed() -> bool:
        return _open_files() == before

    await eventually(are_closed, seconds=60)


async def test_input_arrives_whole(programs: ChrootPrograms, tmp_path: Path) -> None:
    before = _open_files()
    call = Call(argv=("/bin/sh", "-c", READ_ALL, str(tmp_path / "in")), timeout=60, stdin=_pieces(20))
    assert (await programs.run(call)).status == 0
    assert (tmp_path / "in.read").read_text().strip() == str(20 * len(MIB))
    await _closed(before)


@pytest.mark.parametrize("count", [0, 5])
async def test_failed_input_is_never_taken_for_complete(programs: ChrootPrograms, tmp_path: Path, count: int) -> None:
    before = _open_files()
    stdin = _pieces(count, error=BadArchive("a.tar.zst is corrupt"))
    call = Call(argv=("/bin/sh", "-c", READ_ALL, str(tmp_path / "in")), timeout=60, stdin=stdin)
    with pytest.raises(BadArchive, match=r"^a.tar.zst is corrupt$"):
        await programs.run(call)
    assert not (tmp_path / "in.end").exists()
    await _closed(before)


async def test_program_that_ends_before_its_input_reports_its_status(programs: ChrootPrograms) -> None:
    call = Call(argv=("/bin/sh", "-c", "echo refused >&2; exit 3"), timeout=60, stdin=_pieces(50))
    output = await programs.run(call)
    assert (output.status, output.last_line) == (3, "refused")


async def test_program_that_does_not_read_times_out(programs: ChrootPrograms) -> None:
    before = _open_files()
    with pytest.raises(ProgramTimedOut, match=r"^sleep did not end within 0\.2 s$"):
        await programs.run(Call(argv=("/bin/sleep", "60"), timeout=0.2, stdin=_pieces(50)))
    await _closed(before)


async def test_process_that_keeps_the_pipe_open_is_not_awaited(programs: ChrootPrograms, tmp_path: Path) -> None:
    """A process in a separate session outlives its program."""
    before, pid = _open_files(), tmp_path / "pid"
    script = 'exec 3<&0; setsid sleep 600 >/dev/null 2>&1 & echo $! >"$0"'
    call = Call(argv=("/bin/sh", "-c", script, str(pid)), timeout=0.5, stdin=_pieces(50))
    try:
        with pytest.raises(ProgramTimedOut):
            await programs.run(call)
        await _closed(before)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_cancelled_command_ends_the_program(programs: ChrootPrograms, tmp_path: Path) -> None:
    fed = threading.Event()

    def endless() -> Iterator[bytes]:
        while True:
            yield MIB
            fed.set()

    call = Call(argv=("/bin/sh", "-c", READ_ALL, str(tmp_path / "in")), timeout=60, stdin=endless())
    task = asyncio.create_task(programs.run(call))
    await asyncio.to_thread(fed.wait)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not (tmp_path / "in.end").exists()
