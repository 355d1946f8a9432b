"""Reads the certificates that a server presents, without verifying them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.preflight.certificates import DerError, validity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.preflight.certificates import Validity

#: Seconds for connection and handshake.
TIMEOUT = 10.0
#: Seconds to wait for an aborted connection to close.
_CLOSE_TIMEOUT = 1.0
#: Names of the local host, which resolvers may not know (RFC 6761, 6.3).
_LOCALHOST = "localhost"
_LOOPBACK = ("127.0.0.1", "::1")


class CertificateProbe(Protocol):
    """Reads the certificate chain of a server."""

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        """Return the validity of each certificate presented at that address, the server's own first; at least one.

        Raises Transient within seconds if none can be read; its message does not name the server.
        """
        ...


class TlsProbe:
    """Reads the chain by a TLS handshake and drops the connection.

    Nothing is verified, so that expired certificates can be read, and no data is sent. The host name is sent as SNI,
    because the certificate may depend on it.
    """

    def __init__(self) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        """Implement CertificateProbe."""
        try:
            async with asyncio.timeout(TIMEOUT):
                chain = await self._handshake(host, port)
        except TimeoutError as error:
            raise Transient(f"TLS handshake timed out after {TIMEOUT:g} s", reason=TIMED_OUT) from error
        except ssl.SSLError as error:
            raise Transient(f"TLS handshake failed: {error.reason or type(error).__name__}") from error
        except socket.gaierror as error:
            raise Transient(f"name cannot be resolved: {error.strerror}") from error
        except (OSError, ValueError) as error:
            raise Transient(f"connection failed: {_reason(error)}", reason=REFUSED) from error
        try:
            validities = [validity_of(certificate) for certificate in chain]
        except DerError as error:
            raise Transient(f"certificate cannot be parsed: {error}") from error
        if not validities:
            raise Transient("server presents no certificate")
        return validities

    async def _handshake(self, host: str, port: int) -> list[bytes]:
        """Return the chain in DER. Raises OSError and ValueError."""
        *others, last = _addresses(host)
        for address in others:
            with suppress(ConnectionError):
                return await self._handshake_at(address, port, name=host)
        return await self._handshake_at(last, port, name=host)

    async def _handshake_at(self, address: str, port: int, *, name: str) -> list[bytes]:
        transport, closing = await asyncio.get_running_loop().create_connection(
            _Closing,
            address,
            port,
            ssl=self._tls,
            server_hostname=name,
            # Longer than `read` waits, so that its timeout applies.
            ssl_handshake_timeout=2 * TIMEOUT,
        )
        try:
            return _chain(transport.get_extra_info("ssl_object"))
        finally:
            transport.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    await closing.closed


class _Closing(asyncio.Protocol):
    """Signals when the connection is closed."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, _error: Exception | None) -> None:
        """Record that the transport has closed its socket."""
        if not self.closed.done():
            self.closed.set_result(None)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", "") or str(error) or type(error).__name__


def _addresses(host: str) -> tuple[str, ...]:
    """Return the addresses to try: the host itself, or the loopback addresses for localhost."""
    return _LOOPBACK if host == _LOCALHOST or host.endswith(f".{_LOCALHOST}") else (host,)


def _chain(connection: Any) -> list[bytes]:
    """Return the chain as the server sent it. The public method exists since Python 3.13."""
    if hasattr(connection, "get_unverified_chain"):
        return list(connection.get_unverified_chain())
    shown = connection._sslobj.get_unverified_chain() or []  # noqa: SLF001
    return [ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in shown]
