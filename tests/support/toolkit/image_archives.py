"""Archives of images as `docker save` writes them, and ones that are not."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Sequence


def entry(name: str, **fields: Any) -> tarfile.TarInfo:
    """Return a header; a plain file unless `type` is given."""
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def tar(*entries: tuple[tarfile.TarInfo, bytes], format: int = tarfile.GNU_FORMAT) -> bytes:  # noqa: A002  # tarfile's
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as content:
        for info, data in entries:
            if data:
                info.size = len(data)
            content.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def images_tar(*references: str, layers: Sequence[tuple[tarfile.TarInfo, bytes]] = ()) -> bytes:
    """Return the tar archive of these images."""
    manifest = json.dumps([{"RepoTags": [reference]} for reference in references]).encode()
    return tar(*layers, (entry("manifest.json"), manifest))


def image_archive(*references: str) -> bytes:
    """Return the compressed archive of these images."""
    return compressed(images_tar(*references))


def compressed(content: bytes) -> bytes:
    """Return one zstd frame with a checksum, as the zstd program writes it."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)
