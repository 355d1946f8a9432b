"""The release can be upgraded to: the rules that Initialize applies before the ISO is downloaded.

release/upgrade_path.py has them, gate.py the row. A plan by an image names no release, so that most of them
apply after the download.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, is_managed
from upgrade_manager.api.names import is_object_name
from upgrade_manager.facts import machine_plan, versions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VERSIONS
from upgrade_manager.release.unfinished import UnfinishedUpgrade, version_before
from upgrade_manager.release.upgrade_path import all_run, begun_refusal, path_refusal
from webhook.check import Check, Finding, NotNeeded
from webhook.cluster import Listing
from webhook.listings import CLUSTERS, MACHINE_PLANS, NODES, SERVER_VERSION, keep, read_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.release.upgrade_path import Refusal
    from webhook.check import Subject
    from webhook.cluster import ClusterReader

#: Without its Version, a release is not checked.
NO_VERSION = "its Version does not exist"
#: All releases that the cluster knows.
ALL_VERSIONS = Listing(
    resource=VERSIONS,
    namespace=HARVESTER_SYSTEM,
    slim=keep("spec.isoURL", "spec.isoChecksum", "spec.minUpgradableVersion"),
)


async def running_version(cluster: ClusterReader) -> str:
    """Return the release that Harvester reports; empty if it reports none. Raises KubeError and NotInstalled."""
    settings = await cluster.list(SERVER_VERSION)
    return versions.running(settings[0]) if settings else ""


async def find_version(cluster: ClusterReader, name: str) -> Object | None:
    """Return the Version of that name; None if it does not exist. Raises KubeError and NotInstalled."""
    found = await cluster.list(ALL_VERSIONS) if is_object_name(name) else []
    return next((one for one in found if objects.name(one) == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The state of the cluster before an upgrade."""

    cluster: ClusterReader
    #: The managed nodes.
    nodes: Sequence[Object]
    unfinished: UnfinishedUpgrade | None
    #: The release that the upgrade starts from.
    current: str

    @classmethod
    async def read(cls, cluster: ClusterReader, *, running: str) -> Before:
        """Read the nodes, and the upgrade that an earlier plan has begun. Raises KubeError and NotInstalled."""
        clusters, nodes = await read_all(cluster, CLUSTERS, NODES)
        managed = [node for node in nodes if is_managed(objects.mapping(node, "metadata", "labels"))]
        unfinished = UnfinishedUpgrade.of(next(iter(clusters), None))
        current = version_before(unfinished, managed, running=running)
        return cls(cluster=cluster, nodes=managed, unfinished=unfinished, current=current)

    def begun(self, target: str) -> Refusal | None:
        """Return why another release has to be finished before the Version of that name."""
        return begun_refusal(self.unfinished, self.nodes, target=target, is_name=True)

    async def path(self, target: str, *, minimum: str) -> Refusal | None:
        """Return why the upgrade is not allowed without spec.force. Raises KubeError and NotInstalled."""
        upgraded = self.nodes if self.current == target and all_run(self.nodes, target) else ()
        if upgraded and any(map(machine_plan.is_pending, await self.cluster.list(MACHINE_PLANS))):
            upgraded = ()
        return path_refusal(current=self.current, target=target, minimum=minimum, upgraded=upgraded)


async def _find(subject: Subject) -> list[Finding]:
    running = await running_version(subject.cluster)
    if not running:
        return [Finding(problem=versions.not_running(), remedies=(versions.SHOW_LOG,))]
    before = await Before.read(subject.cluster, running=running)
    refusal = before.begun(subject.spec.version) or await _path(subject, before)
    return [Finding(problem=str(refusal))] if refusal else []


async def _path(subject: Subject, before: Before) -> Refusal | None:
    """Return why the Version cannot be reached. Raises NotNeeded without it, which the check `version` reports."""
    target = subject.spec.version
    if subject.spec.image or subject.spec.force:
        return None
    version = await find_version(subject.cluster, target)
    if version is None:
        raise NotNeeded(NO_VERSION)
    minimum = objects.text(version, "spec", "minUpgradableVersion")
    return await before.path(target, minimum=minimum)


CHECK = Check(name="release", field="spec.version", find=_find)
