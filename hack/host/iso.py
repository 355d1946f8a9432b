"""The large files of a simulated ISO: archives of images, and the root file system of the operating system."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

import yaml
import zstandard

if TYPE_CHECKING:
    from hack.cluster.scenario import Scenario

_METADATA = "bundle/metadata.yaml"
ROOTFS = "rootfs.squashfs"


def large_files(scenario: Scenario, small: dict[str, bytes]) -> dict[str, bytes]:
    """Return the archives that the ISO's metadata names, their lists, and the operating system."""
    release = scenario.release
    files = {ROOTFS: f"PRETTY_NAME={release.os_image}\n".encode()}
    images = sorted((*release.images_added, *release.images_kept))
    for group, archives in yaml.safe_load(small[_METADATA])["images"].items():
        for index, archive in enumerate(archives):
            # The first archive has the images of the release, each other one a separate image.
            first = group == "common" and index == 0
            name = archive["archive"].rpartition("/")[2].removesuffix(".tar.zst")
            references = images if first else [f"docker.io/rancher/{name.lower()}:{release.harvester}"]
            files[f"bundle{archive['list']}"] = "".join(f"{one}\n" for one in references).encode()
            files[f"bundle{archive['archive']}"] = image_archive(*references)
    return files


def image_archive(*references: str) -> bytes:
    """Return an archive of images as `docker save` writes it, compressed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as content:
        manifest = json.dumps([{"RepoTags": [reference]} for reference in references]).encode()
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(manifest)
        content.addfile(entry, io.BytesIO(manifest))
    return zstandard.compress(buffer.getvalue())
