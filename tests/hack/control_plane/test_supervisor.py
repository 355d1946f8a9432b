"""The supervisor ends its processes when it or its parent ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hack.control_plane import supervisor
from tests.support.processes import becomes_true, is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEPER = ["sleep", "600"]
#: A process that has a supervisor with one sleeper; it prints their pids and waits.
PARENT = """
import json, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", sys.argv[1], sys.argv[2]], text=True, start_new_session=True,
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(json.dumps({"do": "start", "name": "one", "argv": ["sleep", "600"]}), file=child.stdin, flush=True)
print(json.dumps([child.pid, json.loads(child.stdout.readline())["pid"]]), flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "supervised"
    folder.mkdir()
    (folder / "data").write_text("x")
    return folder


@pytest.fixture
def process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-I", supervisor.__file__, str(folder)]
    process = subprocess.Popen(  # noqa: S603  # our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    yield process
    process.communicate(timeout=20)


def send(process: subprocess.Popen[str], **command: Any) -> Any:
    """Send a command and return the response."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(command), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def test_signals_are_ignored_and_end_of_input_kills_all(process: subprocess.Popen[str], folder: Path) -> None:
    pids = [send(process, do="start", name=name, argv=SLEEPER)["pid"] for name in ("one", "two")]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
    assert send(process, do="poll", name="one") == {"code": None}
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert [pid for pid in pids if is_alive(pid)] == []
    assert not folder.exists()


def test_a_killed_parent_leaves_nothing(folder: Path) -> None:
    command = [sys.executable, "-c", PARENT, supervisor.__file__, str(folder)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own program
    assert parent.stdout is not None
    pids = json.loads(parent.stdout.readline())
    assert all(map(is_alive, pids))
    parent.kill()
    parent.communicate()
    assert becomes_true(lambda: not any(map(is_alive, pids)) and not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl(2)")
def test_a_killed_supervisor_leaves_no_process(process: subprocess.Popen[str]) -> None:
    pid = send(process, do="start", name="one", argv=SLEEPER)["pid"]
    os.kill(process.pid, signal.SIGKILL)
    assert becomes_true(lambda: not is_alive(pid))
