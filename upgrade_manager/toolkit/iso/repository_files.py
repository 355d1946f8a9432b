"""Reads files of the ISO from the upgrade repository over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, Self

import aiohttp
from yarl import URL

from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, NotFound, Terminal, Transient
from upgrade_manager.release.repository_client import is_transient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

#: Seconds for a connection, and between two pieces of a body.
_TIMEOUT = 30.0
#: Bytes of one piece at most: large enough that Python's cost for each does not count, small enough for a CPU's cache.
PIECE = 256 * 1024
#: Bytes of a small file: a list of images, or the release's description.
SMALL = 8 * 1024 * 1024


class FileChanged(Transient):
    """The file on the server has changed since the download began, which has to start over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBody:
    """The rest of a file from an offset."""

    #: The offset at which the body begins: the requested one, or 0 from a server without ranges.
    offset: int
    #: Bytes of the whole file; None if the server does not send the size.
    size: int | None
    #: The ETag, which changes with the file's content; empty if the server sends no ETag.
    etag: str
    pieces: AsyncIterator[bytes]


class RepositoryFiles(Protocol):
    """The files of one ISO."""

    def open(self, path: str, *, offset: int = 0, etag: str = "") -> AbstractAsyncContextManager[FileBody]:
        """Open a file by its path below the ISO's root, which begins with a slash.

        With an etag, the body begins at 0 if the file has another etag. Raises NotFound, FileChanged for an offset
        beyond the file's end, Transient for a broken connection or a server error, and Terminal for another response.
        """
        ...


async def read_small(files: RepositoryFiles, path: str) -> bytes:
    """Return a small file. Raises the errors of RepositoryFiles.open, and Terminal for a large file."""
    content = bytearray()
    async with files.open(path) as body:
        async for piece in body.pieces:
            content += piece
            if len(content) > SMALL:
                raise Terminal(f"{path} exceeds {SMALL} bytes")
        if body.size is not None and len(content) != body.size:
            raise Transient(f"{path}: {len(content)} of {body.size} bytes arrived")
    return bytes(content)


class HttpRepositoryFiles:
    """RepositoryFiles below a base URL; an async context manager."""

    def __init__(self, base: str, *, user_agent: str) -> None:
        self._base = base.rstrip("/")
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": self._user_agent, "accept-encoding": "identity"},
            read_bufsize=4 * PIECE,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_TIMEOUT, sock_read=_TIMEOUT),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    @asynccontextmanager
    async def open(self, path: str, *, offset: int = 0, etag: str = "") -> AsyncGenerator[FileBody]:
        """See RepositoryFiles."""
        url = f"{self._base}{path}"
        headers = {}
        if offset:
            headers["range"] = f"bytes={offset}-"
            if etag:
                headers["if-range"] = etag
        try:
            async with self._session.get(URL(url), headers=headers, allow_redirects=False) as response:
                yield _body(response, url, offset)
        except TimeoutError as error:
            raise Transient(f"{url}: no data for {_TIMEOUT:g} s", reason=TIMED_OUT) from error
        except aiohttp.ClientConnectorError as error:
            raise Transient(f"{url}: {error}", reason=REFUSED) from error
        except (aiohttp.ClientError, asyncio.IncompleteReadError, ConnectionError) as error:
            raise Transient(f"{url}: connection broken ({type(error).__name__})") from error


def _body(response: aiohttp.ClientResponse, url: str, offset: int) -> FileBody:
    """Interpret the response. Raises NotFound, Transient and Terminal."""
    match response.status:
        case HTTPStatus.OK:
            begin, size = 0, response.content_length
        case HTTPStatus.PARTIAL_CONTENT:
            begin, size = _range(response.headers.get("content-range", ""), url)
        case HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise FileChanged(f"{url} is shorter than {offset} bytes", status=response.status)
        case HTTPStatus.NOT_FOUND:
            raise NotFound(f"{url} does not exist", status=response.status)
        case status if is_transient(status):
            raise Transient(f"{url}: the upgrade repository returned HTTP {status}", status=status)
        case status:
            raise Terminal(f"{url}: the upgrade repository returned HTTP {status}", status=status)
    etag = response.headers.get("etag", "")
    return FileBody(offset=begin, size=size, etag=etag, pieces=response.content.iter_chunked(PIECE))


def _range(header: str, url: str) -> tuple[int, int | None]:
    """Parse `bytes 5-9/10`. Raises Terminal."""
    first = header.removeprefix("bytes ").partition("-")[0]
    if not first.isdigit():
        raise Terminal(f"{url}: the Content-Range {header!r} is invalid")
    return int(first), _size(header)


def _size(header: str) -> int | None:
    size = header.rpartition("/")[2]
    return int(size) if size.isdigit() else None
