"""engine.py runs the phase; the phase's Jobs run toolkit/commands/prepare.py. survey.py has its second Plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, Component
from upgrade_manager.api.names import FIRST_ATTEMPT
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.outcome import Completed, Phase, Waiting
from upgrade_manager.pipeline.phases.eligibility import check_release, check_upgrade_path
from upgrade_manager.pipeline.phases.plan_jobs import (
    NodeStates,
    Work,
    colliding_nodes,
    create_plan,
    follow_plan,
)
from upgrade_manager.pipeline.phases.survey import survey
from upgrade_manager.pipeline.selections import MANAGED_NODES, suc_jobs, suc_plans
from upgrade_manager.resources.suc_plan import image_preload_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import Failed, PhaseResult

WORK = Work("image preload", done="Images loaded")
OPTION = "spec.imagePreloadOption.concurrency"
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
        refused = await check_release(ctx, target=target)
        return refused or await check_upgrade_path(ctx, target=target, minimum=minimum)

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Preload the images unless that is skipped, then survey the nodes."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        result = await _preload(ctx, nodes)
        if result is not None and not isinstance(result, Completed):
            return result
        return await survey(ctx, nodes, is_preloaded=result is not None)


async def _preload(ctx: ReconcileContext, nodes: Sequence[Object]) -> PhaseResult | None:
    """Create the Plan once, then follow it to its end, even if a user has disabled the preload in the meantime.

    Return None without a Plan.
    """
    concurrency = resolve_concurrency(ctx.plan.spec.image_preload_option.concurrency, nodes=len(nodes))
    name = ctx.owner.name_of(Component.IMAGE_PRELOAD)
    plans, jobs = await ctx.watch_all(suc_plans(ctx.owner), suc_jobs(ctx.owner))
    plan = plans.get(name, CATTLE_SYSTEM)
    is_own = plan is not None and ctx.owner.owns(plan)
    if concurrency is None and not is_own:
        return None
    # Failed nodes and new ones are left in a later attempt.
    done = _done_before(ctx, nodes)
    if done and not is_own and len(done) == len(nodes):
        return Completed()
    if plan is not None and is_own:
        result = await follow_plan(ctx, plan, jobs, states=_STATES, work=WORK)
    else:
        at_once = 1 if colliding_nodes(nodes) else concurrency or 0
        manifest = image_preload_plan(ctx.owner, ctx.plan_settings, concurrency=at_once, done=done)
        result = await create_plan(ctx, manifest, nodes, work=WORK)
    if not isinstance(result, Waiting):
        return result
    return replace(result, message=result.message + _concurrency_note(nodes, concurrency))


def _done_before(ctx: ReconcileContext, nodes: Sequence[Object]) -> list[str]:
    """Return the nodes that have loaded the images in an earlier attempt."""
    if ctx.owner.attempt == FIRST_ATTEMPT:
        return []
    return [name for name in map(objects.name, nodes) if ctx.status.node_state(name) is NodeState.IMAGE_PRELOADED]


def _concurrency_note(nodes: Sequence[Object], configured: int | None) -> str:
    """Return why the Plan's concurrency differs from the configured concurrency; empty for equal numbers."""
    if configured is None:
        return f"; it started before {OPTION} was set below 0, and is finished first"
    colliding = colliding_nodes(nodes) if configured > 1 else []
    if not colliding:
        return ""
    return f"; one node at a time, because the names {name_list(colliding)} are equal up to the first dot"


def resolve_concurrency(configured: int, *, nodes: int) -> int | None:
    """Return the number of nodes that preload at once; None to skip the preload.

    0 means all nodes; the system-upgrade-controller would start no Job with a concurrency of 0.
    """
    if configured < 0:
        return None
    return min(configured, nodes) if configured else nodes
