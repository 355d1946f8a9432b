"""A throw-away certificate, for a server whose clients are told not to verify it, as metrics scrapers are.

Run as a program it prints key and certificate and ends. The manager runs it that way, so that the library which makes
them never takes memory in the process that stays.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from upgrade_manager.runtime.cert_watcher import CertificateError, context_from_pem

if TYPE_CHECKING:
    import ssl

#: What the certificate is for; nobody checks it.
_HOST = "localhost"
_VALID = timedelta(days=365)
#: Certificates start a little in the past, for clients whose clocks are behind.
_SKEW = timedelta(hours=1)
#: Seconds for making a certificate.
_PATIENCE = 60.0
_COMMAND = (sys.executable, "-m", "upgrade_manager.runtime.self_signed")


async def self_signed() -> ssl.SSLContext:
    """A server context with a new certificate, for as long as this process lives. Raises CertificateError."""
    return context_from_pem(await asyncio.to_thread(_run, _COMMAND))


def make_pem(*, now: datetime) -> bytes:
    """A new key and a certificate for it, signed by itself, one after the other as PEM."""
    from cryptography import x509  # noqa: PLC0415  # 8 MB that only this program needs
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _HOST)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(pem)


def _run(command: tuple[str, ...]) -> bytes:
    try:
        made = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)  # noqa: S603  # our own
    except (OSError, subprocess.SubprocessError) as error:
        raise CertificateError(f"the program that makes a self-signed certificate failed: {error}") from error
    return made.stdout


def main() -> None:
    """Print a key and its certificate."""
    sys.stdout.buffer.write(make_pem(now=datetime.now(tz=UTC)))


if __name__ == "__main__":
    main()
