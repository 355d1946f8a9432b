"""The obstacles of a node whose upgrade has not ended, and their remedies.

nodes/ shows them in the plan's progress, pipeline/ adds them to its waits, and blockers/ repeats them as blockers.
vm_obstacles.py has the obstacles of VMs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.api.text import name_list

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObstacle:
    """The reason for which a node holds the upgrade up."""

    #: A clause whose subject is the node, as "it".
    why: str
    #: The remedies in their order, each with its command; the first one alone goes into short messages.
    ways_out: tuple[str, ...]


def not_back(node: str, *, os_image: str, release_os: str, is_ready: bool, since: str = "") -> NodeObstacle:
    """Return why a node is not Ready, or does not run the release's OS.

    `since` is the time at which the node became NotReady; empty if unknown.
    """
    found = f"it runs {os_image or 'an unknown OS'}"
    wanted = found if os_image == release_os else f"{found} instead of {release_os}"
    if is_ready:
        return NodeObstacle(why=wanted, ways_out=_boot_release(node))
    ways_out = (f"Check the console of node {node}, and start it", f"Show its conditions: kubectl describe node {node}")
    return NodeObstacle(why=f"it is not Ready{f' since {since}' if since else ''}; {wanted}", ways_out=ways_out)


def _boot_release(node: str) -> tuple[str, ...]:
    """Return the remedy for a node that runs another OS: after a failed boot, the boot loader starts the fallback."""
    return (
        f"Find out on node {node} why it booted the fallback: journalctl --list-boots; journalctl -b -1",
        "The node is drained: reboot it, and select the entry that is not the fallback in the menu on its console",
    )


def cordoned(node: str) -> NodeObstacle:
    """Return the obstacle of an upgraded node that nothing but a user uncordons."""
    return NodeObstacle(why="it is cordoned after its upgrade", ways_out=(f"kubectl uncordon {node}",))


def foreign_hooks(secret: str, hooks: Sequence[str]) -> str:
    """Return why Rancher waits at a node: others' hooks; pipeline/settings/foreign_hooks.py has the remedy."""
    return f"other controllers have not acknowledged their hooks: {name_list(hooks)} (Secret {FLEET_LOCAL}/{secret})"


def undrained(kubernetes: str, *, nodes: int = 1) -> str:
    """Return why nodes that run the release's Kubernetes wait; node_upgrade/waits.py has the remedy."""
    subject, them = ("it runs", "it") if nodes == 1 else ("they run", "them")
    return f"{subject} Kubernetes {kubernetes} already, but Rancher has not drained {them}"
