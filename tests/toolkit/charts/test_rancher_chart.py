from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
import zstandard

from hack.host.iso import installer_archive, tar_of
from upgrade_manager.toolkit.charts.rancher_chart import chart_of
from upgrade_manager.toolkit.run.errors import BadArchive

IMAGE = "rancher/system-agent-installer-rancher:v2.14.0"
CHART = {"rancher-2.14.0.tgz": b"chart"}


def archive(**files: bytes) -> bytes:
    """Return an archive of two images; keywords are the layers of the second one."""
    layers = {name.replace("_", "/"): content for name, content in files.items()}
    manifest = [
        {"RepoTags": ["rancher/other:v2.14.0"], "Layers": ["other.tar"]},
        {"RepoTags": [f"docker.io/{IMAGE}"], "Layers": list(layers)},
    ]
    other = {"other.tar": tar_of({"rancher-9.9.9.tgz": b"another chart"})}
    return zstandard.compress(tar_of({**other, **layers, "manifest.json": json.dumps(manifest).encode()}))


def linked() -> bytes:
    """Return an archive whose layer is a symbolic link to another image's, as older programs write it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as content:
        for name, body in {
            "a/layer.tar": tar_of(CHART),
            "manifest.json": json.dumps([{"RepoTags": [IMAGE], "Layers": ["b/layer.tar"]}]).encode(),
        }.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            content.addfile(entry, io.BytesIO(body))
        link = tarfile.TarInfo("b/layer.tar")
        link.type, link.linkname = tarfile.SYMTYPE, "../a/layer.tar"
        content.addfile(link)
    return zstandard.compress(buffer.getvalue())


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(archive(layer=tar_of(CHART)), id="plain-layer"),
        pytest.param(archive(layer=tar_of(CHART, mode="w:gz")), id="compressed-layer"),
        pytest.param(archive(layer=tar_of({"./rancher-2.14.0.tgz": b"chart"})), id="names-with-dot"),
        pytest.param(archive(first=tar_of({"run.sh": b""}), second=tar_of(CHART)), id="second-layer"),
        pytest.param(installer_archive(f"docker.io/{IMAGE}", CHART), id="one-image"),
        pytest.param(linked(), id="linked-layer"),
    ],
)
def test_chart_is_found(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "agent.tar.zst"
    file.write_bytes(content)
    assert chart_of(file, IMAGE) == b"chart"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(archive(layer=tar_of({"run.sh": b""})), "has no file rancher-VERSION.tgz", id="no-chart"),
        pytest.param(
            archive(layer=tar_of({"usr/rancher-2.14.0.tgz": b""})), "has no file rancher-VERSION.tgz", id="elsewhere"
        ),
        pytest.param(installer_archive("rancher/other:v1", CHART), "has no file rancher-VERSION.tgz", id="other-image"),
        pytest.param(b"<html>", "is not an archive of images", id="not-zstd"),
        pytest.param(zstandard.compress(b"text" * 999), "is not an archive of images", id="not-tar"),
        pytest.param(archive(layer=tar_of(CHART))[:-9], "is not an archive of images", id="truncated"),
        pytest.param(zstandard.compress(tar_of({"manifest.json": b"{"})), "is not an archive of images", id="json"),
        pytest.param(
            zstandard.compress(tar_of({"manifest.json": b'[{"RepoTags": 1}]'})), "is not an archive of", id="types"
        ),
    ],
)
def test_other_archive_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "agent.tar.zst"
    file.write_bytes(content)
    with pytest.raises(BadArchive, match=f"^agent.tar.zst.*{words}"):
        chart_of(file, IMAGE)
