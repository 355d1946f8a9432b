"""The release's description on the ISO: its component versions, and the archives of its images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
import yaml

from upgrade_manager.kube.errors import NotFound, Terminal
from upgrade_manager.release.errors import NOT_A_RELEASE, BadRepository
from upgrade_manager.release.image_lists import parse_list
from upgrade_manager.release.release_file import parse_release
from upgrade_manager.toolkit.iso.component_versions import parse_components
from upgrade_manager.toolkit.iso.repository_files import read_small
from upgrade_manager.toolkit.run.errors import BadArchive, WrongChecksum

if TYPE_CHECKING:
    from upgrade_manager.toolkit.iso.checksums import Checksums
    from upgrade_manager.toolkit.iso.component_versions import Components
    from upgrade_manager.toolkit.iso.repository_files import RepositoryFiles

RELEASE = "/harvester-release.yaml"
BUNDLE = "/bundle/metadata.yaml"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageArchive:
    """One archive of images; both paths are below the ISO's root."""

    #: Text file with one reference per line.
    list_path: str
    archive_path: str

    @property
    def file_name(self) -> str:
        """The archive's name without its directory."""
        return self.archive_path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The archives of a release, by their use."""

    #: Images of Harvester and Rancher.
    common: tuple[ImageArchive, ...]
    #: Images of Kubernetes.
    rke2: tuple[ImageArchive, ...]
    #: Images that rancher-system-agent runs.
    agent: tuple[ImageArchive, ...]


class ReleaseFiles:
    """Reads each description once."""

    def __init__(self, files: RepositoryFiles, *, checksums: Checksums) -> None:
        self._files = files
        self._checksums = checksums
        self._versions: dict[str, str] | None = None
        self._components: Components | None = None
        self._bundle: Bundle | None = None
        #: By path of the list.
        self._references: dict[str, list[str]] = {}

    async def versions(self) -> dict[str, str]:
        """Return the component versions that the manager knows too. Raises KubeError and BadArchive."""
        if self._versions is None:
            body = await self._read(RELEASE)
            try:
                self._versions = parse_release(body, where=RELEASE)
            except BadRepository as error:
                raise BadArchive(str(error)) from error
        return self._versions

    async def components(self) -> Components:
        """Return the versions of the cluster's components. Raises KubeError and BadArchive."""
        if self._components is None:
            self._components = parse_components(await self._read(RELEASE), where=RELEASE)
        return self._components

    async def bundle(self) -> Bundle:
        """Return the archives. Raises KubeError and BadArchive."""
        if self._bundle is None:
            document = _mapping(await self._read(BUNDLE), BUNDLE)
            groups = document.get("images")
            if not isinstance(groups, dict):
                raise BadArchive(f"{BUNDLE}: images is missing; {NOT_A_RELEASE}")
            self._bundle = Bundle(
                common=_archives(groups, "common"), rke2=_archives(groups, "rke2"), agent=_archives(groups, "agent")
            )
        return self._bundle

    async def references(self, archive: ImageArchive) -> list[str]:
        """Return the images that the archive's list names. Raises KubeError and BadArchive."""
        known = self._references.get(archive.list_path)
        if known is None:
            known = self._references[archive.list_path] = parse_list(await self._read(archive.list_path))
        if not known:
            raise BadArchive(f"{archive.list_path} names no image; {NOT_A_RELEASE}")
        return known

    async def _read(self, path: str) -> bytes:
        """Return a file; read a file with a wrong checksum once more. Raises WrongChecksum."""
        try:
            try:
                return await self._verified(path)
            except WrongChecksum as error:
                _log.warning("file is read again", error=str(error))
                return await self._verified(path)
        except NotFound as error:
            raise Terminal(f"{path} does not exist on the ISO; {NOT_A_RELEASE}") from error

    async def _verified(self, path: str) -> bytes:
        content = await read_small(self._files, path)
        self._checksums.verify_content(path, content)
        return content


def _mapping(body: bytes, where: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(body)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadArchive(f"{where} is not YAML; {NOT_A_RELEASE}") from error
    if not isinstance(document, dict):
        raise BadArchive(f"{where} is not a mapping; {NOT_A_RELEASE}")
    return document


def _archives(groups: dict[str, Any], group: str) -> tuple[ImageArchive, ...]:
    """Return the archives of a group. Raises BadArchive, also for an empty group, as on a net-install ISO."""
    entries = groups.get(group)
    if not isinstance(entries, list) or not entries:
        raise BadArchive(f"{BUNDLE}: images.{group} is empty; use a full ISO, not the net-install ISO")
    return tuple(
        ImageArchive(list_path=_path(entry, "list", group), archive_path=_path(entry, "archive", group))
        for entry in entries
    )


def _path(entry: object, key: str, group: str) -> str:
    """Return the path below the ISO's root. Raises BadArchive for a missing path, or a path outside the bundle."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, str) or not value.strip("/") or ".." in value.split("/") or not value.isprintable():
        raise BadArchive(f"{BUNDLE}: images.{group}: {key} {value!r} is not a path")
    return f"/bundle/{value.lstrip('/')}"
