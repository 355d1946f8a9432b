"""The supervisor with sleepers as processes: its responses, and what is left when it or its parent is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hack.control_plane import supervisor as program
from tests.support.processes import eventually, is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEPER = ["sleep", "600"]
#: A process that has a supervisor with one sleeper; it prints their pids and waits.
PARENT = """
import json, subprocess, sys, time
supervisor = subprocess.Popen(
    [sys.executable, "-I", sys.argv[1], sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    start_new_session=True)
supervisor.stdin.write(json.dumps({"do": "start", "name": "one", "argv": ["sleep", "600"]}) + "\\n")
supervisor.stdin.flush()
print(json.dumps([supervisor.pid, json.loads(supervisor.stdout.readline())["pid"]]), flush=True)
time.sleep(600)
"""


class Supervised:
    """A supervisor as a process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def send(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        response: dict[str, Any] = json.loads(self.process.stdout.readline())
        return response


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "supervised"
    folder.mkdir()
    (folder / "data").write_text("x")
    return folder


@contextmanager
def supervising(folder: Path) -> Iterator[Supervised]:
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-I", program.__file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Supervised(process)
    finally:
        process.communicate(timeout=20)


def test_a_process_is_started_polled_and_killed(folder: Path) -> None:
    with supervising(folder) as supervisor:
        pid = supervisor.send(do="start", name="one", argv=SLEEPER)["pid"]
        assert is_alive(pid)
        assert supervisor.send(do="poll", name="one") == {"code": None}
        assert supervisor.send(do="kill", name="one") == {"code": -signal.SIGKILL}
        assert not is_alive(pid)
        assert supervisor.send(do="poll", name="one") == {"code": -signal.SIGKILL}
        again = supervisor.send(do="start", name="one", argv=SLEEPER)["pid"]
        assert is_alive(again)


def test_the_log_outlives_a_restart(folder: Path) -> None:
    with supervising(folder) as supervisor:
        for word in ("first", "second"):
            supervisor.send(do="start", name="one", argv=["sh", "-c", f"echo {word}; echo error >&2; exit 3"])
            assert eventually(lambda: supervisor.send(do="poll", name="one") == {"code": 3})
        assert (folder / "one.log").read_text().split() == ["first", "error", "second", "error"]


def test_a_missing_program_is_an_error_response(folder: Path) -> None:
    with supervising(folder) as supervisor:
        assert supervisor.send(do="start", name="one", argv=["/nowhere/etcd"]) == {
            "error": "/nowhere/etcd: No such file or directory"
        }
        assert "pid" in supervisor.send(do="start", name="two", argv=SLEEPER)


def test_the_end_of_input_kills_everything(folder: Path) -> None:
    with supervising(folder) as supervisor:
        pids = [supervisor.send(do="start", name=name, argv=SLEEPER)["pid"] for name in ("one", "two")]
    assert supervisor.process.returncode == 0
    assert [pid for pid in pids if is_alive(pid)] == []
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_ignored(folder: Path, number: int) -> None:
    with supervising(folder) as supervisor:
        supervisor.send(do="start", name="one", argv=SLEEPER)
        supervisor.process.send_signal(number)
        assert supervisor.send(do="poll", name="one") == {"code": None}
        assert folder.exists()


def test_a_killed_parent_leaves_nothing(folder: Path) -> None:
    parent = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-c", PARENT, program.__file__, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = json.loads(parent.stdout.readline())
    assert all(map(is_alive, pids))
    parent.kill()
    parent.communicate()
    assert eventually(lambda: not any(map(is_alive, pids)) and not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl(2)")
def test_a_killed_supervisor_leaves_no_process(folder: Path) -> None:
    with supervising(folder) as supervisor:
        pid = supervisor.send(do="start", name="one", argv=SLEEPER)["pid"]
        os.kill(supervisor.process.pid, signal.SIGKILL)
        assert eventually(lambda: not is_alive(pid))
