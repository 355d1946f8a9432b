"""The files of the upgrade repository, as commands in this process read them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING

from hack.actors.repository import ROOT
from upgrade_manager.kube.errors import REFUSED, NotFound, Transient
from upgrade_manager.toolkit.iso.repository_files import PIECE, FileBody

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.actors.repository import Repository


class SimulatedRepositoryFiles:
    """Implements RepositoryFiles for the Service of one plan."""

    def __init__(self, repository: Repository, *, service: str) -> None:
        self._repository = repository
        self._service = service

    @asynccontextmanager
    async def open(self, path: str, *, offset: int = 0, etag: str = "") -> AsyncIterator[FileBody]:
        """See RepositoryFiles."""
        if not self._repository.is_up(self._service):
            raise Transient(f"{self._service}{path}: connection refused", reason=REFUSED)
        response = self._repository.answer(f"{ROOT}{path}")
        if response.status == HTTPStatus.NOT_FOUND:
            raise NotFound(f"{path} does not exist", status=response.status)
        if response.status != HTTPStatus.OK:
            raise Transient(f"{path}: the upgrade repository returned HTTP {response.status}", status=response.status)
        content = response.body
        tag = f'"{sha256(content).hexdigest()[:16]}"'
        begin = offset if etag in {"", tag} else 0
        yield FileBody(offset=begin, size=len(content), etag=tag, pieces=_pieces(content[begin:]))


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]
