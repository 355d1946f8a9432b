"""The files of a release's ISO that the commands of a node read, in a folder that a web server serves.

The web server takes the place of the upgrade repository's nginx, which tests/image runs in the toolkit's image.
"""

from __future__ import annotations

import functools
import http.server
import subprocess
import threading
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import yaml

from hack.real_host import image_files
from hack.real_host.root_tree import NEW_OS, set_os

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KUBERNETES = "v1.35.2+rke2r1"
_RELEASE = {"harvester": "v1.8.0", "os": NEW_OS, "kubernetes": KUBERNETES, "rancher": "v2.14.0"}
#: Images by the archive of each group.
IMAGES = {
    "common": ("docker.io/rancher/rancher:v2.14.0", "docker.io/library/busybox:1"),
    "rke2": ("docker.io/rancher/hardened-etcd:v3.6",),
    "agent": ("docker.io/rancher/system-agent:v0.3",),
}
#: MiB of an image's layer, unpacked.
LAYER_MIB = 24
ROOTFS = "rootfs.squashfs"


def make_iso(folder: Path, root: Path | None = None) -> None:
    """Write the files; a release without a root file system is enough for `node prepare`."""
    groups = {group: [{"list": f"/{group}.txt", "archive": f"/{group}.tar.zst"}] for group in IMAGES}
    (folder / "bundle").mkdir(parents=True)
    (folder / "harvester-release.yaml").write_text(yaml.safe_dump(_RELEASE), encoding="utf-8")
    (folder / "bundle/metadata.yaml").write_text(yaml.safe_dump({"images": groups}), encoding="utf-8")
    random = Random(1)
    for group, references in IMAGES.items():
        (folder / f"bundle/{group}.txt").write_text("".join(f"{one}\n" for one in references), encoding="utf-8")
        content = image_files.archive(*references, random=random, mib=LAYER_MIB)
        (folder / f"bundle/{group}.tar.zst").write_bytes(content)
    if root is not None:
        make_rootfs(root, folder / ROOTFS)


def make_rootfs(root: Path, target: Path) -> None:
    """Pack a copy of the root file system under the release's name; the tree is a release's afterwards."""
    set_os(root, NEW_OS)
    target.unlink(missing_ok=True)
    options = ("-noappend", "-no-progress", "-quiet", "-comp", "zstd", "-Xcompression-level", "1")
    subprocess.run(["mksquashfs", str(root), str(target), *options], check=True, stdout=subprocess.DEVNULL)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the folder without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class' name
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Serve the folder on this machine's loopback, and return the port."""
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
