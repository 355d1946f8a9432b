"""Archives of images as `docker save` writes them, which a real containerd accepts: random layers, compressed.

iso.py makes those of a release.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import TYPE_CHECKING

import zstandard

from hack.host.iso import tar_of

if TYPE_CHECKING:
    from random import Random

_MIB = 1024 * 1024


def archive(*references: str, random: Random, mib: int) -> bytes:
    """Return the archive of these images; each has a layer of so many MiB that shrinks to a quarter."""
    files: dict[str, bytes] = {}
    manifest = []
    for reference in references:
        layer = tar_of({f"data/{n}": random.randbytes(_MIB // 4) + bytes(3 * _MIB // 4) for n in range(mib)})
        packed = gzip.compress(layer, compresslevel=1, mtime=0)
        config = json.dumps(_config(layer)).encode()
        config_name, layer_name = (hashlib.sha256(data).hexdigest() for data in (config, packed))
        files |= {f"{config_name}.json": config, f"{layer_name}.tar.gz": packed}
        manifest.append({"RepoTags": [reference], "Config": f"{config_name}.json", "Layers": [f"{layer_name}.tar.gz"]})
    content = tar_of(files | {"manifest.json": json.dumps(manifest).encode()})
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(content)


def _config(layer: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    return {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [digest]}}
