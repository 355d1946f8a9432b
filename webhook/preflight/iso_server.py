"""Asks an HTTP server about the ISO without downloading it; iso.py and versions.py judge the response."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, Self

import aiohttp
from yarl import URL

if TYPE_CHECKING:
    from types import TracebackType

#: Seconds for a response, redirects included.
TIMEOUT = 15.0
_CONTENT_RANGE = re.compile(r"bytes \d+-\d+/(\d+)", re.ASCII)
_FIRST_BYTE = {"range": "bytes=0-0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class IsoResponse:
    """The response of a server about a file."""

    status: int
    #: Bytes; None if the server does not say.
    size: int | None


class Unreachable(Exception):
    """The server does not respond; the text is the reason, without the URL."""


class IsoServer(Protocol):
    """Asks about the file of a URL."""

    async def ask(self, url: str) -> IsoResponse:
        """Return the last response after all redirects. Raises Unreachable within seconds."""
        ...


class HttpIsoServer:
    """An `IsoServer` over aiohttp, which uses the proxies of the environment; an async context manager."""

    def __init__(self, *, user_agent: str) -> None:
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        # The library's own context trusts no server (cli/lean_imports.py).
        tls = await asyncio.to_thread(ssl.create_default_context)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": self._user_agent, "accept-encoding": "identity"},
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, url: str) -> IsoResponse:
        """Implement `IsoServer`: HEAD, and where the server refuses that, GET of the first byte."""
        try:
            async with asyncio.timeout(TIMEOUT):
                found = await self._send("HEAD", url, {})
                return found if found.status < HTTPStatus.BAD_REQUEST else await self._send("GET", url, _FIRST_BYTE)
        except TimeoutError as error:
            raise Unreachable(f"no response within {TIMEOUT:g} s") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise Unreachable(f"TLS: {_words(error.certificate_error)}") from error
        except aiohttp.ClientConnectorSSLError as error:
            raise Unreachable(f"TLS: {_words(error.os_error)}") from error
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(_words(error.os_error)) from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, ValueError) as error:
            raise Unreachable("not a valid HTTP URL") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"connection broken ({type(error).__name__})") from error

    async def _send(self, method: str, url: str, headers: dict[str, str]) -> IsoResponse:
        # The body of a GET is not read; the connection is closed with the response.
        async with self._session.request(method, URL(url), headers=headers, allow_redirects=True) as response:
            return IsoResponse(status=response.status, size=_size(response))


def _size(response: aiohttp.ClientResponse) -> int | None:
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
        return int(match[1]) if match else None
    return response.content_length


def _words(error: Exception) -> str:
    """Return the reason of a failed connection, in OpenSSL's or the operating system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return error.reason or type(error).__name__
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        # The library's own text is longer and names the address.
        return os.strerror(error.errno)
    return getattr(error, "strerror", "") or str(error) or type(error).__name__
