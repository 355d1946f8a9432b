"""Whatever ends the demo, its children end with it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hack.demo.processes import family

pytestmark = pytest.mark.real_loop

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
#: Does what the demo does and then waits to be killed: prints its children's process ids.
PARENT = """
import asyncio, pathlib, sys
from hack.demo.processes import family

async def main():
    async with family(pathlib.Path(sys.argv[1])) as relatives:
        child = await relatives.start("sleeper", [sys.executable, "-c", "import time; time.sleep(60)"])
        print(child.process.pid, relatives.group, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
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
    async with family(tmp_path) as relatives:
        child = await relatives.start("sleeper", SLEEPER)
    assert child.process.returncode == -signal.SIGTERM
    assert child.ending() == "the sleeper was ended by SIGTERM"
    assert await gone(relatives.group)


async def test_a_child_that_ended_by_itself_says_how(tmp_path: Path) -> None:
    async with family(tmp_path) as relatives:
        child = await relatives.start("quitter", [sys.executable, "-c", "print('a\\nb\\nc'); raise SystemExit(3)"])
        await child.process.wait()
    assert child.ending() == "the quitter ended with exit status 3"
    assert child.tail(2) == "b\nc"


async def test_nothing_outlives_a_killed_demo(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(folder), stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert parent.stdout is not None
    child, keeper = (int(word) for word in (await parent.stdout.readline()).split())
    parent.kill()
    await parent.wait()
    assert await gone(child, keeper)
    assert not folder.exists()
