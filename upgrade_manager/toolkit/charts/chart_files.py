"""The files of Harvester's chart repository, which the API server's proxy of its Service reaches.

The commands' context has them; addons.py and managed_charts.py read the versions of charts that the release names
nowhere, cdi_crd.py the archive of Harvester's chart. chart_repository.py upgrades the repository before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.api.keys import CATTLE_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import TIMED_OUT, Transient
from upgrade_manager.toolkit.run.errors import BadArchive, StepFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.client import Client
    from upgrade_manager.toolkit.iso.release_files import ReleaseFiles

#: The folder of the charts behind the Service's only port.
FOLDER = f"/api/v1/namespaces/{CATTLE_SYSTEM}/services/http:harvester-cluster-repo:80/proxy/charts"
INDEX = "index.yaml"
_NAME = "the index of Harvester's chart repository"
#: The chart by whose version the index of the release is known.
_HARVESTER = "harvester"
#: Bytes; the index has some 20 kB, Harvester's chart less than a megabyte.
_MAX_INDEX, _MAX_CHART = 8 * 1024 * 1024, 64 * 1024 * 1024
#: Both are safe; a large document takes the slower one seconds.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Seconds for a whole file.
_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """The newest version of a chart, and the file that has it."""

    version: str
    file: str


class ChartFiles:
    """Reads the index once in a run, as soon as it is the release's, and each archive once."""

    def __init__(self, client: Client, release: ReleaseFiles) -> None:
        self._client = client
        self._release = release
        self._index: dict[str, IndexEntry] = {}
        self._archives: dict[str, bytes] = {}

    async def version(self, chart: str) -> str:
        """Return the chart's version. Raises KubeError and StepFailed."""
        return (await self._entry(chart)).version

    async def has(self, chart: str) -> bool:
        """Return True if the repository has the chart. Raises KubeError and BadArchive."""
        return chart in await self._entries()

    async def archive(self, chart: str) -> bytes:
        """Return the chart's archive. Raises KubeError and StepFailed."""
        file = (await self._entry(chart)).file
        if file not in self._archives:
            self._archives[file] = await self._read(file, limit=_MAX_CHART)
        return self._archives[file]

    async def _entry(self, chart: str) -> IndexEntry:
        index = await self._entries()
        if chart not in index:
            raise StepFailed(f"{_NAME} has no chart {chart}")
        return index[chart]

    async def _entries(self) -> dict[str, IndexEntry]:
        if not self._index:
            index = parse_index(await self._read(INDEX, limit=_MAX_INDEX))
            wanted = (await self._release.components()).harvester_chart
            found = index.get(_HARVESTER)
            if found is None or found.version != wanted:
                has = f"has Harvester's chart {found.version}" if found is not None else "has no chart of Harvester"
                raise Transient(f"{_NAME} {has} instead of {wanted}")
            self._index = index
        return self._index

    async def _read(self, file: str, *, limit: int) -> bytes:
        try:
            async with asyncio.timeout(_TIMEOUT):
                content = await self._client.read_path(f"{FOLDER}/{file}", limit=limit + 1)
        except TimeoutError as error:
            raise Transient(f"{file}: the response did not end within {_TIMEOUT:g} s", reason=TIMED_OUT) from error
        if len(content) > limit:
            raise BadArchive(f"{file} of Harvester's chart repository exceeds {limit} bytes")
        return content


def parse_index(body: bytes) -> dict[str, IndexEntry]:
    """Return the first entry of each chart: an index lists the newest version first. Raises BadArchive."""
    try:
        document = yaml.load(body, Loader=LOADER)  # noqa: S506  # both are safe
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadArchive(f"{_NAME} is not YAML") from error
    found = {name: _entry(listed) for name, listed in objects.mapping(document, "entries").items()}
    return {name: entry for name, entry in found.items() if entry is not None}


def _entry(listed: Any) -> IndexEntry | None:
    first: Mapping[str, Any] = (
        objects.mapping({"first": listed[0]}, "first") if isinstance(listed, list) and listed else {}
    )
    version, urls = first.get("version"), first.get("urls")
    if not isinstance(version, str) or not version or not isinstance(urls, list) or not urls:
        return None
    # The URL may be absolute: the repository serves the file itself.
    file = str(urls[0]).rpartition("/")[2]
    return IndexEntry(version=version, file=file) if file and file.isprintable() and "?" not in file else None
