"""Reading the certificates that a server shows, without trusting or distrusting them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.preflight.certificate_validity import DerError, validity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.preflight.certificate_validity import Validity

#: Seconds for connection and handshake.
TIMEOUT = 10.0
#: Seconds for a connection to be gone once it is dropped.
_FAREWELL = 1.0
#: Names that mean this machine, whatever a resolver knows of them (RFC 6761, 6.3).
_LOCALHOST = "localhost"
_LOOPBACK = ("127.0.0.1", "::1")


class CertificateProbe(Protocol):
    """Reads what a server shows, for the check of the API servers' certificates."""

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        """The validity of each certificate that the server at that address or name shows, at least one, its own first.

        Raises Transient where none can be read, within seconds; its text does not name the server.
        """
        ...


class TlsProbe:
    """By a TLS handshake, after which the connection is dropped.

    Nothing is verified, so that an expired certificate can be read too, and nothing is sent that would have to be kept
    from a stranger. The server's name goes along (SNI) where it is a name, since the certificate may depend on it.
    """

    def __init__(self) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        """As the protocol says."""
        try:
            async with asyncio.timeout(TIMEOUT):
                chain = await self._shake_hands(host, port)
        except TimeoutError as error:
            raise Transient(f"no certificate within {TIMEOUT:g} s", reason=TIMED_OUT) from error
        except ssl.SSLError as error:
            raise Transient(f"no TLS handshake comes about: {error.reason or type(error).__name__}") from error
        except socket.gaierror as error:
            raise Transient(f"its name cannot be resolved: {error.strerror}") from error
        except (OSError, ValueError) as error:
            raise Transient(f"it cannot be reached: {_why(error)}", reason=REFUSED) from error
        try:
            validities = [validity_of(certificate) for certificate in chain]
        except DerError as error:
            raise Transient(f"its certificate cannot be read: {error}") from error
        if not validities:
            raise Transient("it shows no certificate")
        return validities

    async def _shake_hands(self, host: str, port: int) -> list[bytes]:
        """The certificates, DER. Raises what the operating system, the resolver and the TLS library raise."""
        *others, last = _addresses(host)
        for address in others:
            with suppress(ConnectionError):
                return await self._shake_hands_at(address, port, name=host)
        return await self._shake_hands_at(last, port, name=host)

    async def _shake_hands_at(self, address: str, port: int, *, name: str) -> list[bytes]:
        transport, closing = await asyncio.get_running_loop().create_connection(
            _Closing,
            address,
            port,
            ssl=self._tls,
            server_hostname=name,
            # The time-out is the caller's.
            ssl_handshake_timeout=2 * TIMEOUT,
        )
        try:
            return _chain(transport.get_extra_info("ssl_object"))
        finally:
            transport.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await closing.closed


class _Closing(asyncio.Protocol):
    """Tells when the connection is gone."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, _error: Exception | None) -> None:
        """The transport has let go of its socket."""
        if not self.closed.done():
            self.closed.set_result(None)


def _why(error: OSError | ValueError) -> str:
    """Its words, which the event loop puts together where there was more than one attempt."""
    return getattr(error, "strerror", "") or str(error) or type(error).__name__


def _addresses(host: str) -> tuple[str, ...]:
    """What to connect to for a host: itself, unless its name means this machine."""
    return _LOOPBACK if host == _LOCALHOST or host.endswith(f".{_LOCALHOST}") else (host,)


def _chain(connection: Any) -> list[bytes]:
    """All that the server has sent. Python has a documented way to it since 3.13, and the same beneath it before."""
    if hasattr(connection, "get_unverified_chain"):
        return list(connection.get_unverified_chain())
    shown = connection._sslobj.get_unverified_chain() or []  # noqa: SLF001
    return [ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in shown]
