"""Server certificates from memory and from a directory that somebody else keeps up to date."""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The files' names in a Secret of type kubernetes.io/tls.
CERTIFICATE, KEY = "tls.crt", "tls.key"


class CertificateError(Exception):
    """No certificate could be made or loaded; the message says which and why."""


def context_from_pem(pem: bytes) -> ssl.SSLContext:
    """A server context for the key and certificates in one PEM. Raises CertificateError unless they are a pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        with _memory_file(pem) as path:
            context.load_cert_chain(path)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"key and certificate do not load: {error}") from error
    return context


class CertificateDirectory:
    """Serves the pair in a directory, and from the first handshake after a change the new pair.

    A pair that does not load is reported once and never replaces the one in use: it is tried in a context of its own,
    because loading into one that serves would break that. Reading the files takes well below a millisecond, so no task
    has to poll them: every handshake looks whether they changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = structlog.get_logger(__name__, certificates=str(path))
        #: The files' state that was looked at last, whether it loaded or not.
        self._looked_at: tuple[tuple[int, int, int], ...] = ()
        #: The last pair that loaded.
        self._good: ssl.SSLContext | None = None

    async def context(self) -> ssl.SSLContext:
        """A server context that always serves the newest good pair. Raises CertificateError without any."""
        self._looked_at = self._state()
        front = self._load()
        front.sni_callback = self._choose
        return front

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        try:
            state = self._state()
            if state != self._looked_at:
                self._looked_at = state
                self._good = self._load()
                self._log.info("certificate replaced")
        except CertificateError as error:
            self._log.error("certificate not replaced", error=str(error))
        if self._good is not None:
            connection.context = self._good

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        try:
            stats = [(self._path / name).stat() for name in (CERTIFICATE, KEY)]
        except OSError as error:
            raise CertificateError(f"{self._path}: {error}") from error
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)

    def _load(self) -> ssl.SSLContext:
        try:
            pem = b"\n".join((self._path / name).read_bytes() for name in (KEY, CERTIFICATE))
        except OSError as error:
            raise CertificateError(f"{self._path}: {error}") from error
        try:
            return context_from_pem(pem)
        except CertificateError as error:
            raise CertificateError(f"{self._path}: {error}") from error


@contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    """A path with this content, which is gone with the context and, on Linux, never on a disk."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
