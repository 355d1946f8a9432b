"""VMs that were shut down for a node's sake: its Job starts them again once the node is back. Best effort.

The Job is made before the node is recorded as done, and never afterwards: so there is one, whatever crashes when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import JobType
from upgrade_manager.nodes.effects import RestoreVMs

if TYPE_CHECKING:
    from upgrade_manager.nodes.effects import Effect
    from upgrade_manager.nodes.model import NodeView


def restoration(view: NodeView) -> tuple[Effect, ...]:
    """What is due for the VMs of a node that is seen to be back."""
    recorded = view.state is not None and view.state.upgraded
    return (RestoreVMs(node=view.name),) if view.restores_vms and not recorded else ()


def complaint(view: NodeView) -> str:
    """What is to be said at the node whose VMs were not started again; empty while all is well."""
    job = view.jobs.get(JobType.RESTORE_VM)
    return f"its VMs were not all started again: {job.cause}" if job is not None and job.given_up else ""
