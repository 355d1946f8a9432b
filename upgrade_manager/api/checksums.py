"""SHA-256 checksums of files of the ISO: the termination message of one Job, and an environment variable of others.

The Job is built in resources/checksums, and pipeline/iso_checksums passes its result on to commands of toolkit.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Bytes of the text: the kubelet cuts off longer termination messages.
MAX_BYTES = 4096
_DIGEST = re.compile(r"[0-9a-f]{64}")


def write_checksums(files: Mapping[str, str]) -> str:
    """Return the text of digests by path below the ISO's root; it may be longer than MAX_BYTES."""
    return json.dumps(dict(sorted(files.items())), ensure_ascii=False, separators=(",", ":"))


def read_checksums(text: str) -> dict[str, str]:
    """Return digests by path. Raises ValueError for a text that write_checksums does not write."""
    try:
        files = json.loads(text)
    except RecursionError as error:
        raise ValueError("too deeply nested") from error
    if not isinstance(files, dict) or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ValueError("not an object of checksums")
    for path, digest in files.items():
        if not path.startswith("/") or not path.isprintable() or ".." in path.split("/"):
            raise ValueError(f"{path!r} is not a path below the ISO's root")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise ValueError(f"the digest of {path} is not SHA-256 in hexadecimal")
    return files
