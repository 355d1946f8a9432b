"""Sees every change of a file that this process makes, by Python's audit events, and can end the command there."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.toolkit_interrupts import Killed

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Events whose first argument is the path that changes.
_CHANGES = {"os.remove", "os.mkdir", "os.rmdir", "os.rename", "os.truncate", "os.link", "os.symlink", "os.chmod"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


@dataclass(slots=True)
class FileOperations:
    """The changes below a root, and elsewhere."""

    root: Path
    #: Operation below the root before which the command is killed; -1 for none.
    kill_at: int = -1
    inside: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def see(self, event: str, path: str) -> None:
        """Record a change. Raises Killed: nothing happens any more."""
        if not Path(path).is_relative_to(self.root):
            self.outside.append(path)
            return
        if len(self.inside) == self.kill_at:
            raise Killed(f"{event} {path}")
        self.inside.append(f"{event} {path}")


_observers: list[FileOperations] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _observers or (event not in _CHANGES and event != "open"):
        return
    path = arguments[0]
    if isinstance(path, str | Path) and (event != "open" or arguments[2] & _WRITES):
        for observer in _observers:
            observer.see(event, os.fspath(path))


sys.addaudithook(_hook)


@contextmanager
def file_operations(root: Path, *, kill_at: int = -1) -> Iterator[FileOperations]:
    """See the changes while the block runs."""
    observer = FileOperations(root, kill_at)
    _observers.append(observer)
    try:
        yield observer
    finally:
        _observers.remove(observer)
