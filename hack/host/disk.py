"""The disk of the simulated hosts: a node's, however little room the machine has on which they are folders.

containers.py has it in each process, machines.py in its own; the tests, too.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

#: Free bytes of each file system.
FREE = 100 * 1024**3
_BLOCK = 4096


def statvfs(path: str | os.PathLike[str]) -> SimpleNamespace:
    """Return what the toolkit reads of `os.statvfs`. Raises OSError for a path that does not exist."""
    os.stat(path)  # noqa: PTH116  # as os.statvfs, of any kind of path
    return SimpleNamespace(f_bavail=FREE // _BLOCK, f_frsize=_BLOCK)


def simulate() -> None:
    """Let this process see the simulated disk from now on."""
    os.statvfs = statvfs  # type: ignore[assignment]
