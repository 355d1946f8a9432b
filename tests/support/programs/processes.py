"""Inspects processes through /proc, and interrupts programs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_TIMEOUT = 20.0
_INTERVAL = 0.02


def is_alive(pid: int) -> bool:
    """Return True if a process runs; a zombie does not."""
    return _state(pid)[0] != "Z"


def group_is_alive(group: int) -> bool:
    """Return True if a process of a process group runs. A zombie holds neither files nor sockets any more."""
    processes = [_state(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return any(state != "Z" and its_group == group for state, its_group in processes)


def _state(pid: int) -> tuple[str, int]:
    """Return the state and the process group of a process; without a process the state of a zombie."""
    try:
        state, _, group, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "Z", 0
    return state, int(group)


def started_with(word: str) -> list[int]:
    """Return the processes that have the word in their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if word in line and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def program_of(pid: int) -> str:
    """Return the name of a process's program."""
    return Path(Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()).name


def becomes_true(condition: Callable[[], bool]) -> bool:
    """Return True if a condition becomes true before the timeout."""
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_INTERVAL)
    return True


#: Sends a signal to the program when it imports a module.
_INTERRUPTED = """\
import importlib.util, os, runpy, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Interrupt())
sys.argv = ["program", *{arguments}]
runpy.run_module({program!r}, run_name="__main__", alter_sys=True)
"""


def interrupted(program: str, *arguments: str, module: str, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Run a program that gets a signal while it imports a module."""
    script = _INTERRUPTED.format(program=program, arguments=arguments, module=module, number=int(number))
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  # the command under test
