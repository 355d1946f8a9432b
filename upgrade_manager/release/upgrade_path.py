"""The refusal of an upgrade between two releases, before the release's own file is known and after.

pipeline/phases/eligibility.py ends a plan by it, and webhook/preflight/release.py checks a plan before its creation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.release.migrations import pairs
from upgrade_manager.release.version import check_eligibility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.release.unfinished import UnfinishedUpgrade

_FORCED = "spec.force: true skips this check"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reason why a plan cannot upgrade to its release."""

    cause: str
    #: The next step of the user.
    advice: str

    def __str__(self) -> str:
        """Return both, for a message."""
        return f"{self.cause}. {self.advice}"


def path_refusal(*, current: str, target: str, minimum: str, upgraded: Sequence[Object]) -> Refusal | None:
    """Return why Harvester does not support the upgrade, or its steps are unknown; None if it may start.

    `upgraded` are the nodes if there is nothing left to upgrade on any of them, else none.
    """
    refusal, unknown = check_eligibility(current, target, minimum), pairs.refusal(current, target)
    if current == target and upgraded:
        cause = f"Nothing to do: {_all(upgraded)} {target}"
    elif refusal is None and not unknown:
        return None
    else:
        cause = f"upgrade from {current} to {target} is not allowed: {refusal or unknown}"
    forced = pairs.FORCED if unknown and refusal is None and not upgraded else _FORCED
    return Refusal(cause=cause, advice=f"Create a plan for another release; {forced}")


def begun_refusal(
    unfinished: UnfinishedUpgrade | None, nodes: Sequence[Object], *, target: str, is_name: bool
) -> Refusal | None:
    """Return why another release has to be finished first; spec.force does not skip this check."""
    refusal = unfinished.refusal(target, nodes, is_name=is_name) if unfinished and target else ""
    return Refusal(cause=refusal, advice="Create a plan for that release") if refusal else None


def all_run(nodes: Sequence[Object], version: str) -> bool:
    """Return True if all nodes run the version's OS; after a failed upgrade, some run an older one."""
    images = (objects.text(node, "status", "nodeInfo", "osImage") for node in nodes)
    return bool(nodes) and all(version in image.split() for image in images)


def _all(nodes: Sequence[Object]) -> str:
    """Return the subject and the verb of a sentence about all nodes."""
    return f"node {objects.name(nodes[0])} runs" if len(nodes) == 1 else f"all {len(nodes)} nodes run"
