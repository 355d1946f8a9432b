"""Archives of images for a real containerd."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from random import Random
from typing import Any

import zstandard

from hack.real_host import image_files


def unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(archive))) as content:
        return {info.name: file.read() for info in content if (file := content.extractfile(info)) is not None}


def test_manifest_names_configuration_and_layer_of_each_image() -> None:
    files = unpacked(image_files.archive("docker.io/a/b:1", "docker.io/c/d:2", random=Random(1), mib=1))
    manifest: list[dict[str, Any]] = json.loads(files["manifest.json"])
    assert [image["RepoTags"] for image in manifest] == [["docker.io/a/b:1"], ["docker.io/c/d:2"]]
    for image in manifest:
        (layer,) = image["Layers"]
        digest = hashlib.sha256(gzip.decompress(files[layer])).hexdigest()
        assert json.loads(files[image["Config"]])["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_layers_shrink_to_a_quarter() -> None:
    size = len(image_files.archive("docker.io/a/b:1", random=Random(1), mib=4))
    assert 1024 * 1024 <= size < 1.2 * 1024 * 1024
