"""Files of the host, which the Pod sees below a mount."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from upgrade_manager.toolkit.run.errors import StepFailed

#: Symbolic links that one path may follow, as in Linux.
_MAX_LINKS = 40
#: Suffix of a file until it is complete; a killed run leaves such a file, and the next run overwrites it.
PARTIAL = ".partial"


class HostTree:
    """Reads and writes files by their absolute paths on the host.

    Symbolic links are followed as the host follows them: an absolute target lies below the mount, and no link leads out
    of the mount.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, absolute: str) -> Path:
        """Return the path at which the Pod sees the file. Raises StepFailed for a loop of links."""
        pending = list(reversed(PurePosixPath(absolute).parts[1:]))
        found, links = self.root, 0
        while pending:
            part = pending.pop()
            if part == "..":
                found = self.root if found == self.root else found.parent
                continue
            step = found / part
            if not step.is_symlink():
                found = step
                continue
            links += 1
            if links > _MAX_LINKS:
                raise StepFailed(f"{absolute} on the host: too many symbolic links")
            target = PurePosixPath(step.readlink())
            if target.is_absolute():
                found = self.root
            pending += [part for part in reversed(target.parts) if part != "/"]
        return found

    def exists(self, absolute: str) -> bool:
        """Return True for a file or directory."""
        return self.path(absolute).exists()

    def is_there(self, absolute: str) -> bool:
        """Return True for a file or directory. Raises OSError if the host cannot say."""
        try:
            self.path(absolute).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def read(self, absolute: str) -> str | None:
        """Return the file's text, or None without the file."""
        content = self.read_bytes(absolute)
        return None if content is None else content.decode("utf-8", "replace")

    def read_bytes(self, absolute: str) -> bytes | None:
        """Return the file's content, or None without the file."""
        try:
            return self.path(absolute).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, absolute: str, text: str, *, mode: int = 0o644) -> None:
        """Write the file so that it is complete after a power failure, or absent."""
        self.write_bytes(absolute, text.encode(), mode=mode)

    def write_bytes(self, absolute: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write the file as `write` does."""
        path = self.path(absolute)
        self.make_directory(str(PurePosixPath(absolute).parent))
        partial = path.with_name(path.name + PARTIAL)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        complete(partial, path)

    def make_directory(self, absolute: str) -> None:
        """Create the directory and its parents."""
        self.path(absolute).mkdir(parents=True, exist_ok=True)

    def names(self, absolute: str) -> list[str]:
        """Return the names in the directory, in order; none without the directory."""
        try:
            return sorted(path.name for path in self.path(absolute).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove_empty(self, absolute: str) -> None:
        """Remove the directory if it is empty."""
        if self.exists(absolute) and not self.names(absolute):
            self.path(absolute).rmdir()

    def remove(self, absolute: str) -> None:
        """Remove the file, or the directory with its content, if it exists; a link itself is removed."""
        pure = PurePosixPath(absolute)
        path = self.path(str(pure.parent)) / pure.name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def complete(partial: Path, path: Path) -> None:
    """Give a synced file its name, durably."""
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
