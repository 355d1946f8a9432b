"""The upgrade of a single node: one Job does everything, without Rancher.

node_view.py chooses it instead of drain.py on a cluster of one node.

    Job single-node-upgrade  SingleNodeUpgrading -> WaitingReboot -> node is back: SingleNodeUpgraded

The reboot stops the API server and the manager too, so it may pass unobserved. The Job may be complete by then, or run
again on the new OS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.drain import (
    await_reboot,
    clear_pending_os,
    lost,
    restore_vms,
    runs_release,
    unfinished_job,
)
from upgrade_manager.nodes.model import Decision
from upgrade_manager.nodes.sequencing import start_or_pause

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import NodeView


def decide(view: NodeView, *, release_os: str) -> Decision:
    """Decide about the node of a single-node cluster."""
    if view.is_upgraded:
        return lost(view, release_os, NodeState.SINGLE_NODE_UPGRADED) or _done(view)
    if JobType.SINGLE_NODE_UPGRADE not in view.jobs and view.state is NodeState.WAITING_REBOOT:
        # The Job has completed and was deleted: it must not run again.
        return _reboot(view, release_os)
    running, failed = NodeState.SINGLE_NODE_UPGRADING, NodeState.SINGLE_NODE_UPGRADE_FAILED
    first = start_or_pause(view, JobType.SINGLE_NODE_UPGRADE, running=running)
    if first is not None:
        return first
    unfinished = unfinished_job(view, JobType.SINGLE_NODE_UPGRADE, running=running, failed=failed)
    return unfinished or _reboot(view, release_os)


def _reboot(view: NodeView, release_os: str) -> Decision:
    return _done(view) if runs_release(view, release_os) else await_reboot(view, release_os)


def _done(view: NodeView) -> Decision:
    effects = (*clear_pending_os(view), *restore_vms(view))
    return Decision(state=NodeState.SINGLE_NODE_UPGRADED, effects=effects)
