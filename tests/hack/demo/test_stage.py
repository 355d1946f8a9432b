"""Starting the two programs, and what becomes of the demo when one of them ends."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.demo.options import parse
from hack.demo.processes import Child, Family, family
from hack.demo.stage import DemoError, Stage, cluster_command, manager_command, ready_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.real_loop

SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
async def relatives(tmp_path: Path) -> AsyncIterator[Family]:
    async with family(tmp_path) as found:
        yield found


async def staged(relatives: Family) -> Stage:
    cluster = await relatives.start("cluster", SLEEP)
    manager = await relatives.start("manager", SLEEP)
    return Stage(
        kubeconfig=relatives.folder / "kubeconfig",
        family=relatives,
        cluster=cluster,
        manager=manager,
        manager_command=SLEEP,
    )


async def end(child: Child, number: signal.Signals) -> None:
    child.process.send_signal(number)
    await child.process.wait()


async def test_while_both_run_there_is_nothing_to_remark(relatives: Family) -> None:
    assert await (await staged(relatives)).check() == ""


async def test_a_killed_manager_is_started_again(relatives: Family) -> None:
    stage = await staged(relatives)
    killed = stage.manager
    await end(killed, signal.SIGKILL)
    remark = await stage.check()
    assert remark == f"the manager was killed; started again, process {stage.manager.process.pid}"
    assert stage.manager is not killed
    assert stage.manager.process.returncode is None


@pytest.mark.parametrize("which", ["cluster", "manager"])
async def test_a_program_that_ends_otherwise_ends_the_demo(relatives: Family, which: str) -> None:
    stage = await staged(relatives)
    await end(getattr(stage, which), signal.SIGTERM)
    with pytest.raises(DemoError, match=f"the {which} was ended by SIGTERM") as caught:
        await stage.check()
    assert caught.value.child is getattr(stage, which)


async def test_the_ready_line_is_read_once_it_is_complete(relatives: Family) -> None:
    lines = "print('hello'); print('ready repo-url=http://x/{plan}', flush=True); import time; time.sleep(60)"
    child = await relatives.start("cluster", [sys.executable, "-S", "-c", lines])
    assert await ready_line(child, within=20) == "ready repo-url=http://x/{plan}"


async def test_a_cluster_that_ends_before_it_is_ready_is_reported(relatives: Family) -> None:
    child = await relatives.start("cluster", [sys.executable, "-S", "-c", "raise SystemExit('no port')"])
    with pytest.raises(DemoError, match="the cluster ended with exit status 1"):
        await ready_line(child, within=20)
    assert child.tail(1) == "no port"


async def test_a_cluster_that_never_gets_ready_is_given_up(relatives: Family) -> None:
    child = await relatives.start("cluster", SLEEP)
    with pytest.raises(DemoError, match="not ready within 0 s"):
        await ready_line(child, within=0.05)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], [], id="default pace"),
        pytest.param(["--instant"], ["--instant"], id="instant"),
        pytest.param(["--time-scale", "2"], ["--time-scale", "2.0"], id="scaled"),
    ],
)
def test_the_pace_is_passed_on_to_the_cluster(arguments: list[str], expected: list[str]) -> None:
    command = cluster_command(parse(arguments), Path("kubeconfig"))
    assert command[command.index("kubeconfig") + 1 :] == expected


def test_the_manager_is_the_installed_program_with_its_repository_named() -> None:
    command = manager_command(Path("kubeconfig"), "http://127.0.0.1:1/{plan}")
    assert command[1:6] == ["run", "--kubeconfig", "kubeconfig", "--repo-url", "http://127.0.0.1:1/{plan}"]
    assert Path(command[0]).name == "upgrade-manager"
