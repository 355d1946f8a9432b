"""NodeUpgrade with the changes that surround it on all hosts; engine.py runs it.

Rancher restarts RKE2 on each node, which applies its packaged charts. Those of VM networks wait until all nodes are
done, because an interrupted upgrade of the chart would delete the networks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.names import FIRST_ATTEMPT
from upgrade_manager.pipeline.host_changes import SKIP
from upgrade_manager.pipeline.node_upgrade.phase import NodeUpgrade, finish_drains
from upgrade_manager.pipeline.node_upgrade.report import has_started
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases import host_plans, vm_updates
from upgrade_manager.pipeline.selections import (
    LOCAL_CLUSTER,
    LOCAL_MACHINES,
    MACHINE_PLANS,
    MANAGED_NODES,
    UPGRADE_JOBS,
)

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

#: The wait of a paused plan whose Rancher has not begun.
_BEFORE_FIRST = Waiting(message="Paused before the first node", waits=(), held="before the first node")


class GuardedNodeUpgrade(NodeUpgrade):
    """Upgrades the nodes; until the last one is done, RKE2's chart of VM networks is held back on all of them."""

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Hold the chart back on clusters of several nodes, then upgrade the nodes."""
        handled = self._handled_of(ctx)
        is_resumed = ctx.owner.attempt > FIRST_ATTEMPT and not handled.is_suspended
        if is_resumed:
            suspending = await vm_updates.suspend(ctx)
            if suspending is not None:
                return suspending
        is_new = ctx.status["provisionGeneration"] is None and not has_started(ctx)
        paused = _BEFORE_FIRST if is_new and ctx.plan.spec.paused else None
        if paused is not None and SKIP.entry(ctx) is None:
            return paused
        if ctx.status["singleNode"] is None and (is_new or is_resumed):
            # The watches of the nodes' upgrade stay. So does the Plan, for nodes that join.
            await ctx.watch_all(MANAGED_NODES, LOCAL_MACHINES, LOCAL_CLUSTER, MACHINE_PLANS, UPGRADE_JOBS)
            held = await host_plans.apply(ctx, SKIP)
            if not isinstance(held, Completed):
                return held
        if paused is not None:
            return paused
        handled.is_suspended = True
        return await super().run(ctx)

    async def exit(self, ctx: ReconcileContext) -> Waiting | Failed | None:
        """Undo the changes of all hosts first; the hooks that Rancher sets meanwhile are answered."""
        await host_plans.record_before_undo(ctx)
        undoing = await host_plans.undo(ctx, succeeds=True)
        if undoing is None:
            return await super().exit(ctx)
        draining = await finish_drains(ctx, self._handled_of(ctx))
        if draining is None or isinstance(draining, Failed):
            return draining or undoing
        return replace(undoing, waits=(*undoing.waits, *draining.waits))
