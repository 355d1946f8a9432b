"""The release of an upgrade that has begun and that nodes have not reached yet, and the releases accepted until then.

The manager keeps it in an annotation of Rancher's cluster (pipeline/settings/unfinished_upgrade.py), because Harvester
reports the new release once the cluster's components run it, and the plan that began the upgrade may be deleted. The
webhook (webhook/checks/version.py) and the phases apply the same rule.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_UNFINISHED_UPGRADE
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.release.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedUpgrade:
    """An upgrade that has changed the cluster, and not yet all nodes."""

    #: Harvester's version before the upgrade.
    previous: str
    release: str
    #: The OS that a node of the release reports.
    os: str

    @classmethod
    def of(cls, cluster: Object | None) -> UnfinishedUpgrade | None:
        """Read the annotation of Rancher's cluster; None without a valid one."""
        try:
            found = json.loads(objects.text(cluster, "metadata", "annotations", ANNOTATION_UNFINISHED_UPGRADE))
        except (ValueError, RecursionError):
            return None
        values = {key: objects.text(found, key) for key in ("previous", "release", "os")}
        return cls(**values) if all(values.values()) else None

    def annotation(self) -> str:
        """Return the annotation's value."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def behind(self, nodes: Iterable[Object]) -> list[str]:
        """Return the names of the nodes that do not run the release's OS."""
        found = (objects.name(node) for node in nodes if objects.text(node, "status", "nodeInfo", "osImage") != self.os)
        return sorted(found)

    def refusal(self, target: str, nodes: Iterable[Object], *, is_name: bool = False) -> str:
        """Return why the target is not accepted while nodes are behind; empty if it is.

        `is_name` is True for the name of a Version, which need not be a release.
        """
        if self._accepts(target, is_name=is_name):
            return ""
        behind = self.behind(nodes)
        if not behind:
            return ""
        verb = "does" if len(behind) == 1 else "do"
        return (
            f"The upgrade from {self.previous} to {self.release} has begun, and {name_list(behind)} {verb} not run "
            f"{self.release} yet. Until then only {self.release} or a patch of it is accepted, not {target}"
        )

    def _accepts(self, target: str, *, is_name: bool) -> bool:
        try:
            wanted, begun = Version.parse(target), Version.parse(self.release)
        except InvalidVersion:
            return is_name
        if wanted.core is None or begun.core is None:
            return is_name or target == self.release
        return wanted.core[:2] == begun.core[:2] and not wanted.older_than(begun)


def version_before(unfinished: UnfinishedUpgrade | None, nodes: Iterable[Object], *, running: str) -> str:
    """Return the version at which an upgrade begins: Harvester's, unless nodes have not finished an earlier upgrade.

    Harvester reports the new release before the nodes run it.
    """
    return unfinished.previous if unfinished is not None and unfinished.behind(nodes) else running
