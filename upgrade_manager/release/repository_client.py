"""Reads files of the upgrade repository over HTTP."""

from __future__ import annotations

import asyncio
import re
import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, Self

import aiohttp
from yarl import URL

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, KubeError, Terminal, Transient
from upgrade_manager.kube.transport import Response
from upgrade_manager.release.errors import NOT_A_RELEASE, BadRepository, Unreachable

if TYPE_CHECKING:
    from types import TracebackType

#: The repository's Service, as Pods reach it.
SERVICE_URL = f"http://{{service}}.{HARVESTER_SYSTEM}"
#: Seconds for one file.
TIMEOUT = 10.0
_OK = 200
_NOT_FOUND = 404
#: Redirects that are followed, all on the same host.
_REDIRECTS = 5
#: Bytes read at a time, so that the limit also holds for compressed responses.
_PIECE = 64 * 1024
_CONNECT_TIMEOUT = 10.0
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_USER_INFO = re.compile(r"(?<=://)[^\s/?#]*@")


class RepositoryClient(Protocol):
    """Fetches files of the upgrade repository."""

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # part of the request
        """Return the response, of any status.

        Raises Transient if no complete response arrives within `timeout` seconds, and Terminal if the body exceeds
        `limit` bytes, the URL is invalid or redirects to another host.
        """
        ...


def shown(text: str) -> str:
    """Return a URL, or a text with URLs, for messages: without users and passwords."""
    return _USER_INFO.sub("", text)


async def read_file(client: RepositoryClient, url: str, *, limit: int) -> bytes | None:
    """Return the file's content, of at most `limit` bytes, or None if it does not exist. Raises BadRepository."""
    try:
        response = await client.fetch(url, limit=limit, timeout=TIMEOUT)
    except Transient as error:
        raise Unreachable(f"upgrade repository unreachable: {shown(str(error))}") from error
    except KubeError as error:
        raise BadRepository(f"{shown(str(error))}; {NOT_A_RELEASE}") from error
    if response.status == _NOT_FOUND:
        return None
    if is_transient(response.status):
        raise Unreachable(f"{shown(url)}: upgrade repository returned HTTP {response.status}")
    if response.status != _OK:
        raise BadRepository(f"{shown(url)}: upgrade repository returned HTTP {response.status}; {NOT_A_RELEASE}")
    return response.body


def is_transient(status: int) -> bool:
    """Return True for the status of a response that says that the repository is overloaded or starts."""
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS


class HttpRepositoryClient:
    """A `RepositoryClient` over aiohttp; an async context manager."""

    def __init__(self, *, user_agent: str) -> None:
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession
        #: For https; made when it is first used, because the system's authorities take a megabyte.
        self._tls: ssl.SSLContext | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": self._user_agent},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # part of the request
        """Implement `RepositoryClient`."""
        try:
            async with asyncio.timeout(timeout):
                return await self._follow(url, limit)
        except aiohttp.ClientConnectorError as error:
            # Before ValueError, which an untrusted certificate is, too.
            raise Transient(f"{shown(url)}: {error}", reason=REFUSED) from error
        except (aiohttp.NonHttpUrlClientError, ValueError) as error:
            raise Terminal(f"{shown(url)} is not a valid URL") from error
        except TimeoutError as error:
            raise Transient(f"{shown(url)}: timed out after {timeout:g} s", reason=TIMED_OUT) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"{shown(url)}: connection broken ({type(error).__name__})") from error

    async def _follow(self, url: str, limit: int) -> Response:
        # URL() keeps double slashes, which the repository's URLs have.
        target = URL(url)
        for _ in range(_REDIRECTS):
            tls = await self._context() if target.scheme == "https" else True
            async with self._session.get(target, allow_redirects=False, ssl=tls) as response:
                location = response.headers.get("location", "")
                if response.status not in _REDIRECTING or not location:
                    return await _read(response, url, limit)
                following = target.join(URL(location))
            if following.origin() != target.origin():
                raise Terminal(f"{shown(url)} redirects to another host ({following.host})")
            target = following
        raise Terminal(f"{shown(url)} redirects more than {_REDIRECTS} times")

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        return self._tls


async def _read(response: aiohttp.ClientResponse, url: str, limit: int) -> Response:
    body = bytearray()
    async for piece in response.content.iter_chunked(_PIECE):
        body += piece
        if len(body) > limit:
            raise Terminal(f"{shown(url)} exceeds {limit} bytes")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(status=response.status, headers=headers, body=bytes(body))
