"""Credentials that stay fresh: renewed when they are old or were refused, once for all who wait, never in a rush."""

from __future__ import annotations

import asyncio
import math
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.config import ConfigError

if TYPE_CHECKING:
    from upgrade_manager.kube.config import Connection, Tls

#: Seconds between two renewals, so that a server which refuses everything does not keep a login plugin busy.
_PAUSE = 10.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Access:
    """What one request is sent with; a new one is made only when something in it has changed."""

    authorization: str
    tls: ssl.SSLContext
    server_name: str
    proxy: str


class Login:
    """Hands out the access for each request."""

    def __init__(self, connection: Connection, access: Access) -> None:
        self._connection = connection
        self._access = access
        self._lock = asyncio.Lock()
        #: The loop's time at which the connection was taken.
        self._taken = loop_time()
        #: And at which a newer one was last asked for.
        self._asked = -math.inf

    @classmethod
    async def begin(cls, connection: Connection) -> Login:
        """With the first access made. Raises ConfigError."""
        return cls(connection, await _access(connection))

    async def access(self) -> Access:
        """The current one, renewed first when it is old; whoever comes while that goes on takes the old one."""
        if loop_time() - self._taken >= self._connection.max_age and not self._lock.locked():
            return await self.renewed(self._access)
        return self._access

    async def renewed(self, used: Access) -> Access:
        """Another access than the one used, if there is one by now; else the same."""
        async with self._lock:
            if self._access is used and loop_time() - self._asked >= _PAUSE:
                self._asked = loop_time()
                await self._renew(used)
            return self._access

    async def _renew(self, used: Access) -> None:
        try:
            new = await self._connection.source.connect()
            if _is_changed(self._connection, new):
                tls = None if new.tls != self._connection.tls else used.tls
                self._access = await _access(new, tls)
        except ConfigError as error:
            # What we have may still be good, and may be all that there will be.
            _log.warning("credentials not renewed", error=str(error))
            return
        self._connection = new
        self._taken = loop_time()


def _is_changed(old: Connection, new: Connection) -> bool:
    return (old.authorization, old.tls) != (new.authorization, new.tls)


async def _access(connection: Connection, tls: ssl.SSLContext | None = None) -> Access:
    if not connection.authorization.isprintable():
        raise ConfigError("the token holds characters that no HTTP header may carry")
    # A context takes milliseconds to make and reads files.
    made = await asyncio.to_thread(_tls_context, connection.tls) if tls is None else tls
    return Access(
        authorization=connection.authorization,
        tls=made,
        server_name=connection.tls.server_name,
        proxy=connection.proxy,
    )


def _tls_context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=tls.authorities or None)
        # Kubernetes' own certificate authorities often lack the extensions that strict checking asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not tls.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the certificates to reach the API server with are of no use: {error}") from error
    return context
