"""The releases that the cluster knows, and what an upgrade to each needs, for `upgrade-manager preflight --versions`.

cli/version_list.py prints them. The rules are those of release.py and iso.py.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.release.migrations import pairs
from upgrade_manager.release.version import InvalidVersion, Version
from webhook.cluster import LiveReader
from webhook.listings import MACHINE_PLANS
from webhook.preflight.iso import iso_finding
from webhook.preflight.release import ALL_VERSIONS, Before, running_version
from webhook.sharing import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from webhook.cluster import ClusterReader, Listing
    from webhook.preflight.iso_server import IsoServer

_NO_CHECKSUM = "Set spec.isoChecksum to the SHA-512 of the ISO: nothing shows that the ISO is the release's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A Version, and what an upgrade of this cluster to it needs."""

    name: str
    #: The oldest release that can be upgraded; empty for any.
    minimum: str
    #: True if the release table has the steps from the running release, as final ones.
    is_known: bool
    #: False if the ISO cannot be downloaded from here; None if its server was not asked.
    is_reachable: bool | None
    #: As sentences; empty if a plan may start.
    needs: tuple[str, ...]
    #: Warnings, as sentences.
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """The releases that the cluster knows, in order."""

    running: str
    releases: Sequence[Release]


class _WithoutSecrets:
    """A `ClusterReader` of a user who may not read the machine-plan Secrets, which then count as without a drain."""

    def __init__(self, cluster: ClusterReader) -> None:
        self._cluster = cluster

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        if listing is not MACHINE_PLANS:
            return await self._cluster.list(listing)
        with suppress(Forbidden):
            return await self._cluster.list(listing)
        return []


async def read_releases(client: Client, iso: IsoServer, *, skip_iso: bool) -> Releases:
    """Read the Versions, and ask the servers of their ISOs. Raises KubeError and NotInstalled."""
    cluster = _WithoutSecrets(SnapshotReader(LiveReader(client)))
    running = await running_version(cluster)
    before, found = await Before.read(cluster, running=running), await cluster.list(ALL_VERSIONS)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_release(before, one, iso, skip_iso=skip_iso)) for one in sorted(found, key=_order)]
    return Releases(running=running, releases=[task.result() for task in tasks])


async def _release(before: Before, version: Object, iso: IsoServer, *, skip_iso: bool) -> Release:
    name, minimum = objects.name(version), objects.text(version, "spec", "minUpgradableVersion")
    refusal = before.begun(name) or await before.path(name, minimum=minimum)
    url = objects.text(version, "spec", "isoURL")
    found = await iso_finding(iso, url) if url and not skip_iso else None
    no_url = () if url else (versions.without_url(name),)
    unreachable = (f"ISO: {found.message}",) if found and found.denies else ()
    small = (f"ISO: {found.message}",) if found and not found.denies else ()
    unchecked = () if objects.text(version, "spec", "isoChecksum") else (_NO_CHECKSUM,)
    return Release(
        name=name,
        minimum=minimum,
        is_known=not pairs.refusal(before.current, name),
        is_reachable=False if no_url else None if skip_iso else not unreachable,
        needs=(*((refusal.cause,) if refusal else ()), *no_url, *unreachable),
        remarks=(*small, *unchecked),
    )


def _order(version: Object) -> tuple[tuple[int, ...], bool, str]:
    """Order releases by their numbers, each after its candidates, and development builds first."""
    name = objects.name(version)
    try:
        parsed = Version.parse(name)
    except InvalidVersion:
        return (), False, name
    return parsed.core or (), not parsed.is_prerelease, name
