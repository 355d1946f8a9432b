"""A self-signed certificate for the metrics server, whose clients do not verify it.

The manager runs this module as a program, so that the cryptography library takes no memory in the manager.
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

_HOST = "localhost"
_VALIDITY = timedelta(days=365)
#: The certificate is valid before now, for clients whose clocks are slow.
_CLOCK_SKEW = timedelta(hours=1)
#: Seconds for the program.
_TIMEOUT = 60.0
_COMMAND = (sys.executable, "-m", "upgrade_manager.runtime.self_signed")


async def self_signed() -> ssl.SSLContext:
    """Return a server context with a new certificate. Raises CertificateError."""
    return context_from_pem(await run_program(_COMMAND))


async def run_program(command: tuple[str, ...]) -> bytes:
    """Return what a program prints that makes a certificate. Raises CertificateError if it fails."""
    return await asyncio.to_thread(_run, command)


def make_pem(*, now: datetime) -> bytes:
    """Return a new key and its self-signed certificate as PEM."""
    from cryptography import x509  # noqa: PLC0415  # keeps 8 MB out of the manager
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
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(pem)


def _run(command: tuple[str, ...]) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=True)  # noqa: S603  # a fixed command
    except (OSError, subprocess.SubprocessError) as error:
        raise CertificateError(f"cannot create a certificate: {error}") from error
    return done.stdout


def main() -> None:
    """Print a key and its certificate."""
    sys.stdout.buffer.write(make_pem(now=datetime.now(tz=UTC)))


if __name__ == "__main__":
    main()
