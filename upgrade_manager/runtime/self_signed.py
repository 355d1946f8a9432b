"""A self-signed certificate for the metrics server, whose clients do not verify it.

metrics_server.py starts it; webhook/certificates/pair.py runs its issuer in the same way.

The manager runs this module as a program, so that the cryptography library takes no memory in the manager.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from upgrade_manager.runtime.cert_watcher import CertificateError, context_from_pem

if TYPE_CHECKING:
    import ssl

_HOST = "localhost"
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
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415

    from upgrade_manager.runtime import certificate_builder as parts  # noqa: PLC0415

    key, name = parts.new_key(), parts.common_name(_HOST)
    certificate = (
        parts.builder(key.public_key(), subject=name, issuer=name, now=now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return parts.key_pem(key) + parts.certificate_pem(certificate)


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
