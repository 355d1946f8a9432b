"""Names a node that does not return from its reboot, with the kubelet's message.

table.py lists it; facts/node_obstacles.py explains why the node is not back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.deadlines import lost_node, reboot
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.wait import LostNodeWait, RebootWait
from upgrade_manager.facts.node_obstacles import Reboot, not_back
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
    node = found[0] if found else None
    ready = objects.condition(node, "Ready")
    is_ready = objects.text(ready, "status") == "True"
    obstacle = not_back(
        wait.name,
        os_image=objects.text(node, "status", "nodeInfo", "osImage"),
        release_os=wait.release_os,
        kubelet=objects.text(node, "status", "nodeInfo", "kubeletVersion"),
        release_kubernetes=wait.release_kubernetes,
        is_ready=is_ready,
        since=objects.text(ready, "lastTransitionTime"),
        reboot=Reboot.of(is_awaited=isinstance(wait, RebootWait), is_done=wait.has_rebooted),
    )
    if obstacle is None:
        # The node has come back, which the phase has not seen yet.
        return
    words = "" if is_ready else objects.excerpt(ready, "message") or objects.text(ready, "reason")
    yield Blocker(
        reason=BlockerReason.NODE_NOT_BACK,
        kind="Node",
        name=wait.name,
        node=wait.name,
        message=f"Node {wait.name}: {obstacle.why}" + (f" ({words})" if words else ""),
        remedies=obstacle.ways_out,
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
