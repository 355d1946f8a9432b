"""The failure of a node, from its failed Job; phase.py ends the upgrade with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import JobType
from upgrade_manager.blockers.job_failures import job_failure
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.pipeline.outcome import Failed

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import Decision, NodeView
    from upgrade_manager.pipeline.context import ReconcileContext

#: The work of each Job whose failure is the node's, in messages.
_WORKS = {
    JobType.PRE_DRAIN: "pre-drain",
    JobType.POST_DRAIN: "OS upgrade",
    JobType.SINGLE_NODE_UPGRADE: "upgrade",
}


async def node_failure(ctx: ReconcileContext, view: NodeView, decision: Decision) -> Failed:
    """Return the failure of the node, with the words and the log of its failed Job; its message has the words, too."""
    failed = [(work, view.jobs[type_]) for type_, work in _WORKS.items() if type_ in view.jobs]
    for work, job in failed:
        if job.progress is Progress.FAILED:
            failure = await job_failure(ctx.client, job)
            if decision.state is not None:
                ctx.status.move_node(view.name, decision.state, message=f"{work} {failure.cause}")
            return Failed(cause=f"Node {view.name}: {work} {failure.cause}", log=failure.log, node=view.name)
    return Failed(cause=f"Node {view.name}: {decision.failure}", node=view.name)
