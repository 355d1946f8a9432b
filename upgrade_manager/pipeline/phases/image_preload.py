from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, Component
from upgrade_manager.api.names import component_name
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube.resources import SUC_PLANS
from upgrade_manager.pipeline.phases.base import Completed, Phase
from upgrade_manager.pipeline.phases.eligibility import check_upgrade_path
from upgrade_manager.pipeline.phases.plan_jobs import (
    NodeStates,
    follow_plan,
    names_collide,
    plan_waiting,
    prepare_nodes,
)
from upgrade_manager.pipeline.selections import MANAGED_NODES, suc_jobs, suc_plans
from upgrade_manager.resources.suc_plan import image_preload_plan

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import Failed, PhaseResult

WORK = "image preload"
_STATES = NodeStates(
    running=NodeState.IMAGE_PRELOADING, done=NodeState.IMAGE_PRELOADED, failed=NodeState.IMAGE_PRELOAD_FAILED
)


class ImagePreload(Phase):
    """Loads the new release's images on every node, before the cluster is changed."""

    name = PhaseName.IMAGE_PRELOAD
    activity = "Preloading images on the nodes"
    reads_repository = True

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Fail if Harvester does not support this upgrade path, unless spec.force is set."""
        release = ctx.status["releaseMetadata"] or {}
        target, minimum = release.get("harvester", ""), release.get("minUpgradableVersion", "")
        return await check_upgrade_path(ctx, target=target, minimum=minimum)

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Create the Plan once, then follow it."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        concurrency = resolve_concurrency(ctx.plan.spec.image_preload_option.concurrency, nodes=len(nodes))
        if concurrency is None:
            return Completed()
        name = component_name(ctx.owner.name, Component.IMAGE_PRELOAD)
        plans, jobs = await ctx.watch_all(suc_plans(ctx.owner), suc_jobs(ctx.owner))
        plan = plans.get(name, CATTLE_SYSTEM)
        if plan is None or not ctx.owner.owns(plan):
            if plan is None:
                await prepare_nodes(ctx, nodes, name)
            at_once = 1 if names_collide(nodes) else concurrency
            manifest = image_preload_plan(ctx.owner, ctx.plan_settings, concurrency=at_once)
            await ctx.ensure(SUC_PLANS, manifest)
            return plan_waiting(name, WORK, done=0, nodes=len(nodes))
        return await follow_plan(ctx, plan, jobs, states=_STATES, work=WORK)


def resolve_concurrency(configured: int, *, nodes: int) -> int | None:
    """Return the number of nodes that preload at once; None to skip the preload.

    0 means all nodes; the system-upgrade-controller itself would start no Job.
    """
    if configured < 0:
        return None
    return min(configured, nodes) if configured else nodes
