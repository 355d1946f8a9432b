"""A file that is being downloaded, and beside it the identity of the file on the server.

downloads.py continues the file; the command prepare removes partial files of other releases.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_tree import PARTIAL, complete

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import BinaryIO

#: Suffix of the identity's file, after PARTIAL. RKE2 and rancher-system-agent ignore files with these suffixes.
_IDENTITY = ".etag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of the whole file on the server."""

    #: The ETag; empty if the server sends no ETag, so that the file cannot be continued.
    etag: str = ""
    #: The size in bytes; None if the server does not send the size.
    size: int | None = None


class PartialFile:
    """The partial file of a target; its length is the progress.

    Bytes are appended only while the recorded identity equals that of the server's file. The identity is written before
    the first byte, so that a file without an identity, or with another identity, is never continued.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self.path = target.with_name(target.name + PARTIAL)
        self._identity = target.with_name(target.name + PARTIAL + _IDENTITY)

    def length(self) -> int:
        """Return the number of bytes in the partial file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def identity(self) -> Identity:
        """Return the recorded identity; an empty identity if the record is not readable."""
        try:
            content = json.loads(self._identity.read_text(encoding="utf-8"))
            etag, size = content["etag"], content["size"]
        except (OSError, ValueError, KeyError, TypeError):
            return Identity()
        valid = isinstance(etag, str) and (size is None or isinstance(size, int))
        return Identity(etag=etag, size=size) if valid else Identity()

    def begin(self, identity: Identity) -> None:
        """Start an empty file of this identity."""
        self.discard()
        if not identity.etag:
            return
        with self._identity.open("w", encoding="utf-8") as file:
            json.dump({"etag": identity.etag, "size": identity.size}, file)
            file.flush()
            os.fsync(file.fileno())

    def open_at(self, offset: int) -> BinaryIO:
        """Open the file for appending at the offset, and remove the bytes after the offset."""
        # The file is unbuffered, because a buffer would delay errors until the file is closed.
        file = self.path.open("r+b" if offset else "wb", buffering=0)
        if offset:
            # The file is not truncated to 0, because ext4 flushes such a file when it is closed.
            file.seek(offset)
            file.truncate()
        return file

    def complete(self) -> None:
        """Give the file its name, durably."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self._identity.unlink(missing_ok=True)
        complete(self.path, self._target)

    def discard(self) -> None:
        """Remove the file, then its identity."""
        self.path.unlink(missing_ok=True)
        self._identity.unlink(missing_ok=True)


def write_all(file: BinaryIO, pieces: Iterable[bytes]) -> None:
    """Write the whole pieces to an unbuffered file."""
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[file.write(rest) :]
