"""The demo's children end with it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import becomes_true, is_alive

pytestmark = pytest.mark.real_loop

#: Starts a child as the demo does, prints the process ids, and waits.
PARENT = """
import asyncio, pathlib, sys
from hack.demo.processes import process_group

async def main():
    async with process_group(pathlib.Path(sys.argv[1])) as group:
        child = await group.start("sleeper", ["sleep", "600"])
        print(child.process.pid, group.group, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_no_child_outlives_a_killed_demo(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(folder), stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert parent.stdout is not None
    pids = [int(word) for word in (await parent.stdout.readline()).split()]
    parent.kill()
    await parent.wait()
    assert await asyncio.to_thread(becomes_true, lambda: not any(map(is_alive, pids)))
    assert not folder.exists()
