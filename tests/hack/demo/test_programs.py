"""The start of the two programs, and the check that they still run."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.demo.processes import Child, ProcessGroup, process_group
from hack.demo.programs import DemoError, Programs
from tests.support.programs.processes import becomes_true, is_alive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[ProcessGroup]:
    async with process_group(tmp_path) as found:
        yield found


async def sleepers(group: ProcessGroup) -> Programs:
    cluster = await group.start("cluster", SLEEP)
    manager = await group.start("manager", SLEEP)
    return Programs(
        kubeconfig=group.folder / "kubeconfig",
        processes=group,
        cluster=cluster,
        manager=manager,
        manager_command=SLEEP,
    )


async def end(child: Child, number: signal.Signals) -> None:
    child.process.send_signal(number)
    await child.process.wait()


@pytest.mark.parametrize("which", ["cluster", "manager"])
async def test_other_exit_ends_the_demo(group: ProcessGroup, which: str) -> None:
    programs = await sleepers(group)
    await end(getattr(programs, which), signal.SIGTERM)
    with pytest.raises(DemoError, match=f"the {which} was terminated by SIGTERM") as caught:
        await programs.check()
    assert caught.value.child is getattr(programs, which)


@pytest.mark.full
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
