"""The import of images into a real containerd by its ctr, and the space that it takes on the disk."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from random import Random

import pytest

from hack.real_host.image_files import archive
from tests.support.programs.polling import eventually
from tests.support.programs.private_host import PrivateHost, private_host, skip_without
from upgrade_manager.toolkit.host.host_paths import CONTAINERD, CONTAINERD_SOCKET, CTR
from upgrade_manager.toolkit.host.host_programs import PATH
from upgrade_manager.toolkit.images.containerd import Images
from upgrade_manager.toolkit.images.image_archive import unpacked

pytestmark = [pytest.mark.full, pytest.mark.real_loop]

REFERENCES = ["docker.io/rancher/longhorn:v1.9.0", "docker.io/rancher/kubevirt:v1.5.0"]
#: MiB of each image's layer, of which a quarter cannot be compressed.
LAYER = 16
COMPRESSED = LAYER // 4 * len(REFERENCES)
CONFIG = f"""version = 2
root = "{CONTAINERD}"
state = "/run/k3s/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{CONTAINERD_SOCKET}"
"""


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PrivateHost]:
    """Run a host whose process 1 is containerd, with RKE2's folders."""
    skip_without("containerd", "ctr")
    init = (str(shutil.which("containerd", path=PATH)), "--config", "/etc/containerd.toml", "--log-level", "warn")
    files = {"/etc/containerd.toml": CONFIG, CTR: '#!/bin/sh\nexec ctr "$@"\n'}
    async with private_host(tmp_path, monkeypatch, init=init, files=files) as host:
        host.tree.path(CTR).chmod(0o755)

        async def is_ready() -> bool:
            return host.tree.exists(CONTAINERD_SOCKET)

        await eventually(is_ready, seconds=60)
        yield host


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Return an archive of the images, as an ISO has it."""
    path = tmp_path / "images.tar.zst"
    path.write_bytes(archive(*REFERENCES, random=Random(1), mib=LAYER))
    return path


async def used(host: PrivateHost) -> int:
    """Return the MiB of containerd's folder."""
    return int((await host.run("du", "--summarize", "--block-size=1M", CONTAINERD)).split()[0])


async def test_import_takes_the_space_of_the_compressed_layers(host: PrivateHost, images: Path) -> None:
    found, before = Images(host.programs), await used(host)
    assert await found.missing(REFERENCES) == REFERENCES
    await found.load(unpacked(images))
    assert await found.missing(REFERENCES) == []
    kept = await used(host)
    assert COMPRESSED <= kept - before <= COMPRESSED + 1

    # An import without the option takes more.
    plain = host.root / "images.tar"
    plain.write_bytes(b"".join(unpacked(images)))
    await host.run(CTR, "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", "import", "/images.tar")
    assert await used(host) - kept >= LAYER * len(REFERENCES)


async def test_cut_archive_is_not_taken_for_images(host: PrivateHost, images: Path) -> None:
    def cut() -> Generator[bytes]:
        stream = unpacked(images)
        yield next(stream)
        raise OSError("the archive is cut off")

    found = Images(host.programs)
    with pytest.raises(OSError, match="the archive is cut off"):
        await found.load(cut())
    assert await found.missing(REFERENCES) == REFERENCES
    await found.load(unpacked(images))
    assert await found.missing(REFERENCES) == []
