"""Sees every change of a file that this process makes, by Python's audit events, and can end the command there."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.toolkit.toolkit_interrupts import Killed

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Events, and where their arguments have the paths that change, each with its directory's descriptor or None.
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((1, 3),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
    "open": ((0, None),),
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: The descriptor of a path that is relative to the working directory.
_NO_DIRECTORY = -1


@dataclass(slots=True)
class FileOperations:
    """The changes below a root, and elsewhere."""

    root: Path
    #: Operation below the root before which the command is killed; -1 for none.
    kill_at: int = -1
    inside: list[str] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)

    def see(self, event: str, *paths: Path) -> None:
        """Record a change. Raises Killed: nothing happens any more."""
        inside = [path for path in paths if path.is_relative_to(self.root)]
        self.outside += [path for path in paths if path not in inside]
        if not inside:
            return
        if len(self.inside) == self.kill_at:
            raise Killed(f"{event} {inside[0]}")
        self.inside.append(f"{event} {inside[0]}")


_observers: list[FileOperations] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _observers or event not in _CHANGES or (event == "open" and not arguments[2] & _WRITES):
        return
    # A descriptor instead of a path was opened before.
    named = [one for one in _CHANGES[event] if isinstance(arguments[one[0]], str | bytes | os.PathLike)]
    paths = [_real_path(arguments[path], _NO_DIRECTORY if at is None else arguments[at]) for path, at in named]
    for observer in _observers:
        observer.see(event, *paths)


def _real_path(path: str | bytes | os.PathLike[str], directory: int) -> Path:
    """Return where the change takes effect, as the kernel resolves the links of its directory."""
    base = Path.cwd() if directory == _NO_DIRECTORY else Path(f"/proc/self/fd/{directory}")
    absolute = base / os.fsdecode(path)
    return Path(os.path.realpath(absolute.parent)) / absolute.name


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
