"""The upgrade of the only node: one Job does everything, and Rancher is not asked.

    Job single-node-upgrade  SingleNodeUpgrading -> WaitingReboot -> node is back: SingleNodeUpgraded

The node takes everything down with it, the API server and the manager too. So the Job may be complete, or tried again
by the new system, before anybody has seen the reboot: the decision follows from what is there now, and nothing is
waited for that may have passed unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.decision import Decision
from upgrade_manager.nodes.drain import is_back, not_complete, reboot
from upgrade_manager.nodes.effects import ForgetOS
from upgrade_manager.nodes.pause import first_step
from upgrade_manager.nodes.restoration import complaint, restoration

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import NodeView


def decide(view: NodeView, *, release_os: str) -> Decision:
    """Judge the only node."""
    if view.state is NodeState.SINGLE_NODE_UPGRADED:
        return _finished(view)
    if JobType.SINGLE_NODE_UPGRADE not in view.jobs and view.state is NodeState.WAITING_REBOOT:
        # Its Job has done its work, and somebody has removed it: it must not be done once more.
        return _back(view, release_os)
    first = first_step(view, JobType.SINGLE_NODE_UPGRADE, begun=NodeState.SINGLE_NODE_UPGRADING)
    if first is not None:
        return first
    job = view.jobs[JobType.SINGLE_NODE_UPGRADE]
    running, failed = NodeState.SINGLE_NODE_UPGRADING, NodeState.SINGLE_NODE_UPGRADE_FAILED
    unfinished = not_complete(view, job, running=running, failed=failed)
    return _back(view, release_os) if unfinished is None else unfinished


def _back(view: NodeView, release_os: str) -> Decision:
    return _finished(view) if is_back(view, release_os) else reboot(view, release_os)


def _finished(view: NodeView) -> Decision:
    forget = (ForgetOS(node=view.name),) if view.pending_os else ()
    return Decision(state=NodeState.SINGLE_NODE_UPGRADED, effects=forget + restoration(view), note=complaint(view))
