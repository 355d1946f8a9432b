"""The demo's children end with it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hack.demo.processes import process_group

pytestmark = pytest.mark.real_loop

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
#: Starts a child as the demo does, prints the process ids, and waits.
PARENT = """
import asyncio, pathlib, sys
from hack.demo.processes import process_group

async def main():
    async with process_group(pathlib.Path(sys.argv[1])) as group:
        child = await group.start("sleeper", [sys.executable, "-c", "import time; time.sleep(60)"])
        print(child.process.pid, group.group, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    command = ("ps", "-o", "stat=", "-p", str(pid))
    ps = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    state, _ = await ps.communicate()
    return bool(state.strip()) and not state.startswith(b"Z")


async def gone(*pids: int) -> bool:
    async with asyncio.timeout(20):
        for pid in pids:
            while await is_running(pid):
                pass
    return True


async def test_children_stop_with_the_context(tmp_path: Path) -> None:
    async with process_group(tmp_path) as group:
        child = await group.start("sleeper", SLEEPER)
    assert child.process.returncode == -signal.SIGTERM
    assert child.ending() == "the sleeper was terminated by SIGTERM"
    assert await gone(group.group)


async def test_an_exit_is_described_and_logged(tmp_path: Path) -> None:
    async with process_group(tmp_path) as group:
        child = await group.start("quitter", [sys.executable, "-c", "print('a\\nb\\nc'); raise SystemExit(3)"])
        await child.process.wait()
    assert child.ending() == "the quitter exited with status 3"
    assert child.tail(2) == "b\nc"


async def test_no_child_outlives_a_killed_demo(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(folder), stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert parent.stdout is not None
    child, supervisor = (int(word) for word in (await parent.stdout.readline()).split())
    parent.kill()
    await parent.wait()
    assert await gone(child, supervisor)
    assert not folder.exists()
