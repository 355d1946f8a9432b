"""The large files of a simulated ISO: archives of images, and the root file system of the operating system."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Literal

import yaml
import zstandard

if TYPE_CHECKING:
    from pathlib import Path

    from hack.scenario import Scenario

_METADATA = "bundle/metadata.yaml"
ROOTFS = "rootfs.squashfs"
#: Images with charts: those of Harvester, and that of Rancher.
_CHARTS = "docker.io/rancher/harvester-cluster-repo"
#: Images of add-ons, which have the release's tag.
ADDON_IMAGES = ("harvester-vm-import-controller", "harvester-pcidevices", "harvester-seeder")
_INSTALLER = "docker.io/rancher/system-agent-installer-rancher"


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files, as the loop mount of an ISO shows them."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def root_file_system(scenario: Scenario) -> dict[str, bytes]:
    """Return the operating system, whose only content is its name."""
    return {ROOTFS: f"PRETTY_NAME={scenario.release.os_image}\n".encode()}


def large_files(scenario: Scenario, small: dict[str, bytes]) -> dict[str, bytes]:
    """Return the archives that the ISO's metadata names, their lists, and the operating system."""
    release = scenario.release
    files = root_file_system(scenario)
    addons = [f"docker.io/rancher/{name}:{release.harvester}" for name in ADDON_IMAGES]
    images = sorted((*release.images_added, *release.images_kept, *addons, f"{_CHARTS}:{release.harvester}"))
    for group, archives in yaml.safe_load(small[_METADATA])["images"].items():
        for index, archive in enumerate(archives):
            # The first archive has the images of the release, each other one a separate image.
            first = group == "common" and index == 0
            name = archive["archive"].rpartition("/")[2].removesuffix(".tar.zst")
            references = images if first else [f"docker.io/rancher/{name.lower()}:{release.harvester}"]
            files[f"bundle{archive['list']}"] = "".join(f"{one}\n" for one in references).encode()
            files[f"bundle{archive['archive']}"] = image_archive(*references)
            if group == "agent":
                files |= _with_rancher(scenario, archive, references)
    return files


def _with_rancher(scenario: Scenario, archive: dict[str, str], references: list[str]) -> dict[str, bytes]:
    """Return the archive for rancher-system-agent with the image of Rancher's chart, and its list."""
    version = scenario.release.rancher
    reference = f"{_INSTALLER}:{version}"
    return {
        f"bundle{archive['list']}": "".join(f"{one}\n" for one in (*references, reference)).encode(),
        f"bundle{archive['archive']}": installer_archive(
            reference, {f"rancher-{version.removeprefix('v')}.tgz": b"chart"}, *references
        ),
    }


def image_archive(*references: str) -> bytes:
    """Return an archive of images as `docker save` writes it, compressed."""
    manifest = json.dumps([{"RepoTags": [reference]} for reference in references]).encode()
    return zstandard.compress(tar_of({"manifest.json": manifest}))


def installer_archive(reference: str, files: dict[str, bytes], *others: str) -> bytes:
    """Return an archive with an image of one compressed layer, and others without layers."""
    images: list[dict[str, list[str]]] = [{"RepoTags": [one], "Layers": []} for one in others]
    images.append({"RepoTags": [reference], "Layers": ["blobs/sha256/1"]})
    layer = tar_of(files, mode="w:gz")
    return zstandard.compress(tar_of({"blobs/sha256/1": layer, "manifest.json": json.dumps(images).encode()}))


def tar_of(files: dict[str, bytes], *, mode: Literal["w", "w:gz"] = "w") -> bytes:
    """Return a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as content:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            content.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()
