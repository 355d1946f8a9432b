"""Requests to kubelets over TLS, with the token of the manager's service account; preflight/kubelets.py sends them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, Self

import aiohttp
from yarl import URL

from upgrade_manager.kube.credentials import Authenticator
from upgrade_manager.kube.errors import REFUSED, UNTRUSTED, Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from types import TracebackType

    from upgrade_manager.kube.config import ClientConfig
    from upgrade_manager.kube.credentials import Credentials

#: Seconds for a TCP connection and the handshake, of the 10 s that the caller allows the whole request.
_CONNECT_TIMEOUT = 5.0
#: Seconds that an unused connection is kept: for the second request to the same kubelet.
_KEEP_ALIVE = 5.0
#: Bytes of a refusal.
_REFUSAL = 1024


class KubeletTransport(Protocol):
    """Reads from kubelets."""

    async def fetch(self, url: str, *, limit: int) -> Response:
        """Return a response of any status with at most `limit` bytes of its body.

        The caller limits the time. Raises Transient without a response: UNTRUSTED for a certificate that is not valid
        for the address, else REFUSED.
        """
        ...


class HttpKubeletTransport:
    """A `KubeletTransport` over aiohttp, with the credentials and the CA of an API server; an async context manager.

    The token goes to the address in the URL alone: proxies of the environment and of a kubeconfig are not used, and no
    redirect is followed. A body is read as it arrives, because unpacking it could take any amount of memory.
    """

    def __init__(self, config: ClientConfig, *, user_agent: str) -> None:
        self._config = _for_kubelets(config)
        self._user_agent = user_agent
        self._stack = AsyncExitStack()
        self._authenticator: Authenticator
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Load the credentials. Raises ConfigError for invalid certificates."""
        self._authenticator = await Authenticator.create(self._config)
        self._stack.push_async_callback(self._authenticator.aclose)
        self._session = await self._stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=_KEEP_ALIVE),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT),
                headers={"user-agent": self._user_agent, "accept": "application/json", "accept-encoding": "identity"},
                auto_decompress=False,
            )
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def fetch(self, url: str, *, limit: int) -> Response:
        """Implement `KubeletTransport`; after a 401 it renews the credentials and sends the request once more."""
        credentials = await self._authenticator.credentials()
        response = await self._fetch(url, limit, credentials)
        if response.status == HTTPStatus.UNAUTHORIZED:
            renewed = await self._authenticator.renew(credentials)
            if renewed is not credentials:
                return await self._fetch(url, limit, renewed)
        return response

    async def _fetch(self, url: str, limit: int, credentials: Credentials) -> Response:
        try:
            async with self._session.get(
                URL(url, encoded=True), headers=credentials.headers, allow_redirects=False, ssl=credentials.tls
            ) as response:
                body = await _read(response, limit if response.status == HTTPStatus.OK else _REFUSAL)
                return Response(status=response.status, body=body)
        except aiohttp.ClientConnectorCertificateError as error:
            raise Transient(f"certificate not trusted: {_untrusted(error)}", reason=UNTRUSTED) from error
        except (aiohttp.ClientError, OSError, EOFError) as error:
            raise Transient(_cause(error), reason=REFUSED) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _KubeletSource:
    """Loads configurations for kubelets."""

    inner: ClientConfig

    async def load(self) -> ClientConfig:
        """Return the current configuration. Raises ConfigError."""
        return _for_kubelets(await self.inner.source.load())


def _for_kubelets(config: ClientConfig) -> ClientConfig:
    """Return the configuration without what is meant for the API server: its name, its proxy, whom to impersonate.

    A kubelet's certificate is always verified, because it gets the token.
    """
    tls = replace(config.tls, server_name="", insecure=False)
    return replace(config, tls=tls, proxy="", impersonation=(), source=_KubeletSource(inner=config))


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the beginning of the body, and drop the connection if there is more."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk[: limit - len(body)]
        if len(body) >= limit:
            response.close()
            break
    return bytes(body)


def _untrusted(error: aiohttp.ClientConnectorCertificateError) -> str:
    found = error.certificate_error
    return str(getattr(found, "verify_message", "")) or str(found)


def _cause(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"connection failed: {error.strerror or error.os_error}"
    return f"connection broken ({type(error).__name__})"
