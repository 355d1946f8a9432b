"""The supervisor and its processes, here plain sleepers: what it answers, and what is left when somebody dies."""

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
#: A process that has a supervisor with one sleeper, says their pids and waits.
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


class Asked:
    """A supervisor and its answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "guarded"
    folder.mkdir()
    (folder / "data").write_text("x")
    return folder


@contextmanager
def guarding(folder: Path) -> Iterator[Asked]:
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-I", program.__file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Asked(process)
    finally:
        process.communicate(timeout=20)


def test_it_starts_looks_and_kills(folder: Path) -> None:
    with guarding(folder) as supervisor:
        pid = supervisor.ask(do="start", name="one", argv=SLEEPER)["pid"]
        assert is_alive(pid)
        assert supervisor.ask(do="look", name="one") == {"code": None}
        assert supervisor.ask(do="kill", name="one") == {"code": -signal.SIGKILL}
        assert not is_alive(pid)
        assert supervisor.ask(do="look", name="one") == {"code": -signal.SIGKILL}
        again = supervisor.ask(do="start", name="one", argv=SLEEPER)["pid"]
        assert is_alive(again)


def test_what_a_process_says_is_kept_over_its_lives(folder: Path) -> None:
    with guarding(folder) as supervisor:
        for word in ("first", "second"):
            supervisor.ask(do="start", name="one", argv=["sh", "-c", f"echo {word}; echo complaint >&2; exit 3"])
            assert eventually(lambda: supervisor.ask(do="look", name="one") == {"code": 3})
        assert (folder / "one.log").read_text().split() == ["first", "complaint", "second", "complaint"]


def test_a_program_that_is_not_there_is_an_answer(folder: Path) -> None:
    with guarding(folder) as supervisor:
        assert supervisor.ask(do="start", name="one", argv=["/nowhere/etcd"]) == {
            "error": "/nowhere/etcd: No such file or directory"
        }
        assert "pid" in supervisor.ask(do="start", name="two", argv=SLEEPER)


def test_nothing_is_left_when_it_is_not_needed_any_more(folder: Path) -> None:
    with guarding(folder) as supervisor:
        pids = [supervisor.ask(do="start", name=name, argv=SLEEPER)["pid"] for name in ("one", "two")]
    assert supervisor.process.returncode == 0
    assert [pid for pid in pids if is_alive(pid)] == []
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_everybody_is_its_parents_to_understand(folder: Path, number: int) -> None:
    with guarding(folder) as supervisor:
        supervisor.ask(do="start", name="one", argv=SLEEPER)
        supervisor.process.send_signal(number)
        assert supervisor.ask(do="look", name="one") == {"code": None}
        assert folder.exists()


def test_a_parent_that_is_killed_leaves_nothing(folder: Path) -> None:
    parent = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-c", PARENT, program.__file__, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = json.loads(parent.stdout.readline())
    assert all(map(is_alive, pids))
    parent.kill()
    parent.communicate()
    assert eventually(lambda: not any(map(is_alive, pids)) and not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_supervisor_that_is_killed_takes_its_processes_along(folder: Path) -> None:
    with guarding(folder) as supervisor:
        pid = supervisor.ask(do="start", name="one", argv=SLEEPER)["pid"]
        os.kill(supervisor.process.pid, signal.SIGKILL)
        assert eventually(lambda: not is_alive(pid))
