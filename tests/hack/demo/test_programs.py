"""The start of the two programs, and the check that they still run."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from hack.demo.processes import Child, ProcessGroup, process_group
from hack.demo.programs import DemoError, Programs, ready_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.real_loop

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


async def test_cluster_exit_before_ready_is_an_error(group: ProcessGroup) -> None:
    child = await group.start("cluster", [sys.executable, "-S", "-c", "raise SystemExit('no port')"])
    with pytest.raises(DemoError, match="the cluster exited with status 1"):
        await ready_line(child, within=20)
    assert child.tail(1) == "no port"
