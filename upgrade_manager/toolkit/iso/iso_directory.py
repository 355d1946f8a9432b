"""Files of an ISO that is mounted in the Pod, as RepositoryFiles; repository_files reads files over HTTP.

The command checksums reads the ISO by it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import NotFound
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.iso.repository_files import PIECE, FileBody

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path
    from typing import BinaryIO


class IsoDirectory:
    """RepositoryFiles below a folder, whose links do not lead out of it."""

    def __init__(self, root: Path) -> None:
        self._tree = HostTree(root)

    def path(self, path: str) -> Path:
        """Return the path of the file in the Pod. Raises NotFound."""
        found = self._tree.path(path)
        if not found.is_file():
            raise NotFound(f"{path} does not exist on the ISO")
        return found

    @asynccontextmanager
    async def open(self, path: str, *, offset: int = 0, etag: str = "") -> AsyncGenerator[FileBody]:
        """See RepositoryFiles; the file does not change, so it has no etag."""
        _ = etag
        found = self.path(path)
        with found.open("rb") as file:
            file.seek(offset)
            yield FileBody(offset=offset, size=found.stat().st_size, etag="", pieces=_pieces(file))


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := file.read(PIECE):
        yield piece
