"""Checks files of the ISO against the checksums that commands/checksums computed from the ISO.

The upgrade repository is plain HTTP. If the checksums could not be computed, no file is checked.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Self

from upgrade_manager.api.checksums import read_checksums
from upgrade_manager.toolkit.run.errors import BadArchive, BadEnvironment, WrongChecksum

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

#: Bytes that a thread reads and hashes at once; a cancellation waits for them.
_READ = 32 * 1024 * 1024
_PIECE = 1024 * 1024
#: The suffix of lists of images, whose checksums are left out if all checksums together would be too long.
_LIST = ".txt"


class Checksums:
    """The digests that the manager passed to the Job, by path below the ISO's root."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        #: Digests by inode, size and time of files that are hashed; a renamed file keeps all three.
        self._known: dict[tuple[int, ...], str] = {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the environment variable; an empty variable has no checksums. Raises BadEnvironment."""
        try:
            return cls(read_checksums(text) if text else {})
        except ValueError as error:
            raise BadEnvironment(f"the checksums of the ISO's files are invalid: {error}") from error

    def expected(self, source: str) -> str:
        """Return the digest of the ISO's file, empty for a file that is not checked.

        Raises BadArchive for a file that the ISO does not have.
        """
        if not self._files or source in self._files:
            return self._files.get(source, "")
        if source.endswith(_LIST):
            return ""
        raise BadArchive(
            f"{source} is not among the files of the ISO that were checked; the repository names another one"
        )

    def verify_content(self, source: str, content: bytes) -> None:
        """Check the content of a small file. Raises WrongChecksum and BadArchive."""
        _compare(source, expected=self.expected(source), found=hashlib.sha256(content).hexdigest())

    async def verify(self, source: str, path: Path) -> None:
        """Check the downloaded file. Raises WrongChecksum and BadArchive."""
        expected = self.expected(source)
        if expected:
            _compare(source, expected=expected, found=await self._digest(path))

    async def _digest(self, path: Path) -> str:
        """Return the digest; a command hashes each file once, until it changes."""
        stamp = _stamp(path)
        if stamp not in self._known:
            self._known[stamp] = await sha256(path)
        return self._known[stamp]


def _stamp(path: Path) -> tuple[int, ...]:
    state = path.stat()
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


async def sha256(path: Path) -> str:
    """Return the digest of a file of any size, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while await asyncio.to_thread(_update, digest, file):
            pass
    return digest.hexdigest()


def _update(digest: hashlib._Hash, file: BinaryIO) -> bool:
    """Hash the next part; return False at the end."""
    left = _READ
    while left > 0:
        piece = file.read(_PIECE)
        if not piece:
            return False
        digest.update(piece)
        left -= len(piece)
    return True


def _compare(source: str, *, expected: str, found: str) -> None:
    if expected and found != expected:
        raise WrongChecksum(
            f"{source} has the SHA-256 {found}, but the one on the ISO has {expected}. It was changed on its way from "
            "the upgrade repository, which is plain HTTP, or the repository serves another ISO"
        )
