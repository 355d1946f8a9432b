"""Reading files of the upgrade repository over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, Self

import aiohttp
from yarl import URL

from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Terminal, Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from types import TracebackType

#: Redirects followed, all on one host.
_REDIRECTS = 5
#: Bytes read at a time, so that the limit holds for what is left after decompression.
_PIECE = 64 * 1024
_CONNECT_TIMEOUT = 10.0
_REDIRECTING = frozenset({301, 302, 303, 307, 308})


class Fetcher(Protocol):
    """Fetches one URL, for whoever reads the upgrade repository."""

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # part of the request
        """The answer, of any status; at most `limit` bytes, within `timeout` seconds.

        Raises Transient when no complete answer came, and Terminal when it would be longer, leads to another host, or
        the URL is none.
        """
        ...


class HttpFetcher:
    """A fetcher over aiohttp; use it as an async context manager."""

    def __init__(self, *, user_agent: str) -> None:
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession

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
        """As the protocol says."""
        try:
            async with asyncio.timeout(timeout):
                return await self._follow(url, limit)
        except (aiohttp.NonHttpUrlClientError, ValueError) as error:
            raise Terminal(f"{url} is no URL that can be fetched") from error
        except TimeoutError as error:
            raise Transient(f"{url} did not come within {timeout:g} s", reason=TIMED_OUT) from error
        except aiohttp.ClientConnectorError as error:
            raise Transient(f"{url} cannot be reached: {error}", reason=REFUSED) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"{url} broke off: {type(error).__name__}") from error

    async def _follow(self, url: str, limit: int) -> Response:
        # Kept as written: the repository's own URLs have double slashes.
        target = URL(url)
        for _ in range(_REDIRECTS):
            async with self._session.get(target, allow_redirects=False) as answer:
                location = answer.headers.get("location", "")
                if answer.status not in _REDIRECTING or not location:
                    return await _read(answer, url, limit)
                following = target.join(URL(location))
            if following.origin() != target.origin():
                raise Terminal(f"{url} leads to another host, {following.host}, which is not asked")
            target = following
        raise Terminal(f"{url} redirects more than {_REDIRECTS} times")


async def _read(answer: aiohttp.ClientResponse, url: str, limit: int) -> Response:
    body = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE):
        body += piece
        if len(body) > limit:
            raise Terminal(f"{url} is longer than {limit} bytes, which it must not be")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(status=answer.status, headers=headers, body=bytes(body))
