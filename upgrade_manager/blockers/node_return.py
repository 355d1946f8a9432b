"""Finds the cause of a node that does not return from its reboot.

table.py lists it; nodes/drain.py decides what the node waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.deadlines import lost_node, reboot
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.blockers.wait import LostNodeWait, RebootWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.blockers.wait import ReturnWait


def _blockers(view: View, wait: ReturnWait) -> Iterator[Blocker]:
    """Yield the node, with the kubelet's message."""
    found = view.objects(Selection(resource=NODES, field_selector=f"metadata.name={wait.name}"))
    ready = objects.condition(found[0], "Ready") if found else None
    words = objects.excerpt(ready, "message") or objects.text(ready, "reason")
    is_ready = objects.text(ready, "status") == "True"
    if is_ready:
        remedy = steps(
            f"Find out on node {wait.name} why it booted the fallback: journalctl --list-boots; journalctl -b -1",
            "The node is drained: reboot it, and select the entry that is not the fallback in the menu on its console",
        )
    else:
        show = f"Show its conditions: kubectl describe node {wait.name}"
        remedy = steps(f"Check the console of node {wait.name}, and start it", show)
    yield Blocker(
        reason=BlockerReason.NODE_NOT_BACK,
        kind="Node",
        name=wait.name,
        node=wait.name,
        message=f"Node {wait.name}: {wait.detail}" + (f" ({words})" if words and not is_ready else ""),
        remedy=remedy,
        since=wait.since,
    )


FINDERS = (
    Finder(
        wait=RebootWait,
        reasons=(BlockerReason.NODE_NOT_BACK,),
        overdue=reboot,
        find=_blockers,
    ),
    Finder(
        wait=LostNodeWait,
        reasons=(BlockerReason.NODE_NOT_BACK,),
        overdue=lost_node,
        find=_blockers,
    ),
)
