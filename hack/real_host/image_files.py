"""Archives of images as `docker save` writes them, which a real containerd accepts: random layers, compressed.

iso.py makes those of a release.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

_MIB = 1024 * 1024


def archive(*references: str, random: Random, mib: int) -> bytes:
    """Return the archive of these images; each has a layer of so many MiB that shrinks to a quarter."""
    buffer, manifest = io.BytesIO(), []
    with tarfile.open(fileobj=buffer, mode="w") as content:
        for reference in references:
            entry: dict[str, object] = {"RepoTags": [reference]}
            layer = _tar(_files(random, mib=mib))
            packed = gzip.compress(layer, compresslevel=1, mtime=0)
            config = json.dumps(_config(layer)).encode()
            for key, data, suffix in (("Config", config, ".json"), ("Layers", packed, ".tar.gz")):
                name = hashlib.sha256(data).hexdigest() + suffix
                entry[key] = [name] if key == "Layers" else name
                _add(content, name, data)
            manifest.append(entry)
        _add(content, "manifest.json", json.dumps(manifest).encode())
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(buffer.getvalue())


def _files(random: Random, *, mib: int) -> Iterator[tuple[str, bytes]]:
    for number in range(mib):
        yield f"data/{number}", random.randbytes(_MIB // 4) + bytes(3 * _MIB // 4)


def _tar(files: Iterator[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as content:
        for name, data in files:
            _add(content, name, data)
    return buffer.getvalue()


def _add(content: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    content.addfile(info, io.BytesIO(data))


def _config(layer: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    return {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [digest]}}
