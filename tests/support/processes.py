"""Inspects processes through /proc."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT = 20.0
_INTERVAL = 0.02


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


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
    """Whether a condition becomes true before the timeout."""
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_INTERVAL)
    return True
