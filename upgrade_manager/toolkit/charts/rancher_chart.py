"""Rancher's Helm chart, which the ISO has in an image for rancher-system-agent; no registry is needed."""

from __future__ import annotations

import asyncio
import json
import posixpath
import re
import tarfile
from typing import TYPE_CHECKING, BinaryIO

import zstandard

from upgrade_manager.release.image_lists import identities
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.iso.downloads import Downloads
from upgrade_manager.toolkit.run.errors import BadArchive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from upgrade_manager.toolkit.iso.release_files import ImageArchive
    from upgrade_manager.toolkit.run.context import ToolkitContext

_IMAGE = "rancher/system-agent-installer-rancher"
#: The archive in the command's temporary folder.
_ARCHIVE = "/system-agent-images.tar.zst"
#: The chart is in the image's root.
_CHART = re.compile(r"(?:\./)?rancher-[^/]+\.tgz")
#: Bytes; a real chart has about 30 kB.
_MAX_CHART = 16 * 1024 * 1024
_MAX_MANIFEST = 16 * 1024 * 1024


async def rancher_chart(context: ToolkitContext) -> Path:
    """Return the chart's file in the command's temporary folder. Raises KubeError and StepFailed."""
    version = (await context.release.components()).rancher
    target = context.folder / f"rancher-{version.removeprefix('v')}.tgz"
    if target.exists():
        return target
    reference = f"{_IMAGE}:{version}"
    archive = await _archive_with(context, reference)
    folder = HostTree(context.folder)
    await Downloads(context.files, folder, checksums=context.checksums, random=context.random).fetch(
        archive.archive_path, _ARCHIVE
    )
    content = await asyncio.to_thread(chart_of, folder.path(_ARCHIVE), reference)
    folder.remove(_ARCHIVE)
    target.write_bytes(content)
    return target


async def _archive_with(context: ToolkitContext, reference: str) -> ImageArchive:
    """Return the archive whose list names the image."""
    names = identities(reference)
    for archive in (await context.release.bundle()).agent:
        if any(names & identities(one) for one in await context.release.references(archive)):
            return archive
    raise BadArchive(f"no image list of the ISO names {reference}, which has Rancher's chart")


def chart_of(archive: Path, reference: str) -> bytes:
    """Return the chart in an image of a `docker save` archive. Raises BadArchive."""
    try:
        return _chart_of(archive, reference)
    except (
        tarfile.TarError,
        zstandard.ZstdError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        EOFError,
    ) as error:
        raise BadArchive(f"{archive.name} is not an archive of images: {error}") from error


def _chart_of(archive: Path, reference: str) -> bytes:
    manifest, links = _described(archive)
    names = identities(reference)
    layers = {
        links.get(layer, layer)
        for image in manifest
        if any(names & identities(tag) for tag in image.get("RepoTags") or ())
        for layer in image["Layers"]
    }
    found = b""
    for path, file in _entries(archive):
        if path in layers:
            # The chart in the last layer would prevail, but only one layer has the chart.
            found = _chart_in(file) or found
    if not found:
        raise BadArchive(f"{archive.name}: the image {reference} has no file rancher-VERSION.tgz")
    return found


def _described(archive: Path) -> tuple[list[dict[str, list[str]]], dict[str, str]]:
    """Return manifest.json, and the targets of symbolic links between layers."""
    manifest: list[dict[str, list[str]]] = []
    links: dict[str, str] = {}
    with archive.open("rb") as raw, _tar(raw) as content:
        for entry in content:
            if entry.issym():
                links[entry.name] = posixpath.normpath(posixpath.join(posixpath.dirname(entry.name), entry.linkname))
            elif entry.name == "manifest.json" and (file := content.extractfile(entry)) is not None:
                manifest = json.loads(file.read(_MAX_MANIFEST))
    return manifest, links


def _entries(archive: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Yield names and contents of the archive's files; each content must be read before the next file."""
    with archive.open("rb") as raw, _tar(raw) as content:
        for entry in content:
            file = content.extractfile(entry) if entry.isfile() else None
            if file is not None:
                yield entry.name, file  # type: ignore[misc]  # typeshed: IO[bytes]


def _tar(raw: BinaryIO) -> tarfile.TarFile:
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return tarfile.open(fileobj=reader, mode="r|")


def _chart_in(layer: BinaryIO) -> bytes:
    """Return the chart in a layer, which may be compressed; empty if the layer has none."""
    with tarfile.open(fileobj=layer, mode="r|*") as content:
        for entry in content:
            if entry.isfile() and entry.size <= _MAX_CHART and _CHART.fullmatch(entry.name):
                file = content.extractfile(entry)
                return file.read() if file is not None else b""
    return b""
