"""The file of a bundle: a tar of files in one folder, compressed. Equal contents give equal bytes.

bundle.py writes it; reader.py reads it.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Bytes of the file, at most.
MAX_BYTES = 20_000_000
#: Bytes of one log to begin with, and at least.
_LOG, _LEAST = 1_000_000, 10_000
#: The version of the files' layout.
FORMAT = 1
MANIFEST, HISTORY, LEASE = "manifest.json", "history.json", "lease.json"
LOGS = "logs/"


def folder_of(plan: str) -> str:
    """Return the folder in the file."""
    return f"{plan}-bundle"


def packed(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Return the file with these contents, by path."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def bounded(files: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, int]]:
    """Return the files with logs that fit, and the bytes of the logs that were cut; their ends are kept."""
    limit = _LOG
    while True:
        kept = {path: _end(content, limit) if path.startswith(LOGS) else content for path, content in files.items()}
        if limit <= _LEAST or len(packed("", kept)) <= MAX_BYTES:
            cut = {path: len(files[path]) for path, content in kept.items() if len(content) < len(files[path])}
            return kept, cut
        limit //= 2


def _end(content: bytes, limit: int) -> bytes:
    """Return the last lines, in at most so many bytes."""
    if len(content) <= limit:
        return content
    return content[-limit:].partition(b"\n")[2] or content[-limit:]
