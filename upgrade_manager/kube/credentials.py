"""Credentials that are renewed when old or rejected, once for all requests and at a limited rate.

http_transport.py and preflight/kubelet_transport.py add them to each request.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.config import ConfigError

if TYPE_CHECKING:
    from upgrade_manager.kube.config import ClientConfig, TlsConfig

#: Seconds between two renewals: a server that rejects everything must not cause endless calls of an exec plugin.
_RENEWAL_INTERVAL = 10.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Credentials:
    """The credentials and connection settings of requests; replaced only when one of them changes."""

    #: The Authorization header and those of impersonation, if any.
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    tls: ssl.SSLContext
    server_name: str
    proxy: str


class Authenticator:
    """Provides the credentials of each request; close it at the end.

    A renewal is a separate task, because an exec plugin may take longer than a request waits.
    """

    def __init__(self, config: ClientConfig, credentials: Credentials) -> None:
        self._config = config
        self._credentials = credentials
        self._renewal: asyncio.Task[None] | None = None
        #: Loop times.
        self._loaded_at = loop_time()
        self._last_renewal = -math.inf

    @classmethod
    async def create(cls, config: ClientConfig) -> Authenticator:
        """Build the first credentials. Raises ConfigError."""
        return cls(config, await _build(config))

    async def aclose(self) -> None:
        """Cancel a renewal."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})

    async def credentials(self) -> Credentials:
        """Return the current credentials, renewed if they are old; during a renewal, the old ones."""
        is_renewing = self._renewal is not None and not self._renewal.done()
        if loop_time() - self._loaded_at >= self._config.max_age and not is_renewing:
            await asyncio.shield(self._start_renewal())
        return self._credentials

    async def renew(self, rejected: Credentials) -> Credentials:
        """Return newer credentials than the rejected ones, or the same if there are no newer ones yet."""
        if self._credentials is rejected:
            await asyncio.shield(self._start_renewal())
        return self._credentials

    def _start_renewal(self) -> asyncio.Task[None]:
        """Return the task of the last renewal if it runs or is recent, else of a new one."""
        if self._renewal is None or (self._renewal.done() and loop_time() - self._last_renewal >= _RENEWAL_INTERVAL):
            self._last_renewal = loop_time()
            self._renewal = asyncio.create_task(self._load(self._credentials), name="renew-credentials")
        return self._renewal

    async def _load(self, old: Credentials) -> None:
        try:
            config = await self._config.source.load()
            if _headers(config) != old.headers or config.tls != self._config.tls:
                self._credentials = await _build(config, old.tls if config.tls == self._config.tls else None)
        except ConfigError as error:
            # The current credentials may still be valid.
            _log.warning("credentials not renewed", error=str(error))
            return
        self._config = config
        self._loaded_at = loop_time()


async def _build(config: ClientConfig, tls: ssl.SSLContext | None = None) -> Credentials:
    headers = _headers(config)
    if not all(value.isprintable() for _, value in headers):
        raise ConfigError("the token or the user to impersonate has characters that are invalid in an HTTP header")
    if tls is None:
        # In a thread: it takes milliseconds and reads files.
        tls = await asyncio.to_thread(_tls_context, config.tls)
    return Credentials(headers=headers, tls=tls, server_name=config.tls.server_name, proxy=config.proxy)


def _headers(config: ClientConfig) -> tuple[tuple[str, str], ...]:
    authorization = (("authorization", config.authorization),) if config.authorization else ()
    return authorization + config.impersonation


def _tls_context(config: TlsConfig) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=config.ca_data or None)
        # Cluster CAs often lack the extensions that strict verification requires.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if config.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if config.cert_file:
            context.load_cert_chain(config.cert_file, config.key_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the certificates for the API server cannot be loaded: {error}") from error
    return context
