"""TLS server certificates from memory and from a directory whose files change (controller-runtime's certwatcher)."""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import structlog

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The names of the files in a volume of a Secret of type kubernetes.io/tls.
CERTIFICATE, KEY = "tls.crt", "tls.key"
#: Seconds after which files that did not load are read again: a read may fail although the files are valid.
RETRY_INTERVAL = 1.0

#: Times of change, inodes and sizes of both files.
_Metadata: TypeAlias = tuple[tuple[int, int, int], ...]


class CertificateError(Exception):
    """A certificate cannot be made or loaded."""


def context_from_pem(pem: bytes) -> ssl.SSLContext:
    """Return a server context with this key and certificate. Raises CertificateError unless they match."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        with _memory_file(pem) as path:
            # With a password, because OpenSSL would ask for that of an encrypted key on the terminal.
            context.load_cert_chain(path, password="")
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"key and certificate cannot be loaded: {error}") from error
    return context


class CertWatcher:
    """Serves the key and certificate in a directory, and after a change the new ones from the next handshake on.

    Each handshake checks whether the files have changed. A pair that does not load never replaces the current one: it
    is loaded into a new context, because a failed load would break the served one. It is read again after
    RETRY_INTERVAL, not at each handshake, which any client can begin.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = structlog.get_logger(__name__, certificates=str(path))
        #: Metadata of the files of the served pair.
        self._loaded: _Metadata = ()
        #: Metadata of the files that last failed to load, and the loop time from which they are read again.
        self._failed: tuple[_Metadata, float] = ((), float("-inf"))
        #: The last error, which is logged once; "" after a check without one.
        self._error = ""
        #: The context of the last changed pair that loaded.
        self._context: ssl.SSLContext | None = None

    async def context(self) -> ssl.SSLContext:
        """Return a context that serves the newest valid pair. Raises CertificateError without any."""
        self._loaded = self._metadata()
        front = self._load()
        front.sni_callback = self._choose
        return front

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        try:
            self._reload()
        except CertificateError as error:
            if str(error) != self._error:
                self._log.error("certificate not reloaded", error=str(error))
            self._error = str(error)
        if self._context is not None:
            connection.context = self._context

    def _reload(self) -> None:
        """Load the files if they have changed. Raises CertificateError."""
        metadata, now = self._metadata(), loop_time()
        if metadata != self._loaded:
            failed, retry_at = self._failed
            if metadata == failed and now < retry_at:
                return
            self._failed = (metadata, now + RETRY_INTERVAL)
            self._context = self._load()
            self._loaded = metadata
            self._log.info("certificate reloaded")
        self._failed, self._error = ((), float("-inf")), ""

    def _metadata(self) -> _Metadata:
        try:
            stats = [(self._path / name).stat() for name in (CERTIFICATE, KEY)]
        except OSError as error:
            raise CertificateError(f"{self._path}: {error}") from error
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats)

    def _load(self) -> ssl.SSLContext:
        try:
            return context_from_pem(b"\n".join((self._path / name).read_bytes() for name in (KEY, CERTIFICATE)))
        except (OSError, CertificateError) as error:
            raise CertificateError(f"{self._path}: {error}") from error


@contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    """Give the path of a temporary file with this content, in memory where the system can."""
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
