"""A CA with the serving certificate that it signed, as PEM."""

from __future__ import annotations

import json
import ssl
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from upgrade_manager.runtime.cert_watcher import CertificateError, context_from_pem
from upgrade_manager.runtime.self_signed import run_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The subject of every self-made CA.
CA_COMMON_NAME = "harvester-upgrade-manager-webhook-ca"
#: OpenSSL's X509_V_FLAG_NO_CHECK_TIME; `is_valid` compares the validity with the manager's clock instead.
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)
_ISSUER = (sys.executable, "-m", "webhook.certificates.issuer")
#: A limit that exceeds the number of flights of a handshake.
_MAX_FLIGHTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The Service in front of the webhook."""

    name: str
    namespace: str

    @property
    def host(self) -> str:
        """The name that the API server verifies."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the Service in DNS."""
        return self.name, f"{self.name}.{self.namespace}", self.host, f"{self.host}.cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Key, certificate and CA; `load` has verified that they belong together."""

    key: str = field(repr=False)
    certificate: str
    authority: str
    not_before: datetime
    not_after: datetime

    @classmethod
    def load(cls, *, key: str, certificate: str, authority: str, service: Service) -> Pair:
        """Verify the certificate by a handshake in memory, as the API server will. Raises CertificateError."""
        server = context_from_pem(f"{key}\n{certificate}".encode())
        try:
            shown = _verified(server, authority, service.host)
        except ssl.SSLError as error:
            raise CertificateError(f"the certificate cannot be verified: {error}") from error
        own = subjects(authority)
        if len(own) != 1:
            raise CertificateError(f"{len(own)} CAs instead of one")
        return cls(
            key=key,
            certificate=certificate,
            authority=authority,
            not_before=max(_time(one["notBefore"]) for one in (shown, *own)),
            not_after=min(_time(one["notAfter"]) for one in (shown, *own)),
        )

    @classmethod
    async def issue(cls, service: Service, now: datetime) -> Pair:
        """Return a new pair, made by a child process (issuer.py). Raises CertificateError."""
        printed = await run_program((*_ISSUER, service.name, service.namespace, now.isoformat()))
        return cls.load(**json.loads(printed), service=service)

    def context(self) -> ssl.SSLContext:
        """Return a server context."""
        return context_from_pem(f"{self.key}\n{self.certificate}".encode())

    def is_valid(self, now: datetime) -> bool:
        """Return True unless the certificate has expired or is not yet valid."""
        return self.not_before <= now < self.not_after

    def is_due(self, now: datetime) -> bool:
        """Return True if the certificate has to be replaced: it is not valid, or in the last third of its life."""
        return not self.is_valid(now) or now >= self.not_after - (self.not_after - self.not_before) / 3


def subjects(authority: str) -> Sequence[Mapping[str, Any]]:
    """Return the CA certificates decoded. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _trust(context, authority)
    return context.get_ca_certs()


def _trust(context: ssl.SSLContext, authority: str) -> None:
    try:
        context.load_verify_locations(cadata=authority)
    # TypeError: not ASCII; ValueError: empty.
    except (ssl.SSLError, TypeError, ValueError) as error:
        raise CertificateError(f"CA certificate cannot be loaded: {error}") from error


def _verified(server: ssl.SSLContext, authority: str, host: str) -> Mapping[str, Any]:
    """Return the server's certificate decoded after a handshake with a client that trusts the CA. Raises SSLError."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.hostname_checks_common_name = False
    trusting.verify_flags |= _NO_CHECK_TIME
    _trust(trusting, authority)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=host)
    sides = client, server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_MAX_FLIGHTS):
        for side in sides:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return client.getpeercert() or {}


def _time(text: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), tz=UTC)
