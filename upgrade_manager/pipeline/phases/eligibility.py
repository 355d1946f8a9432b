"""The check that Harvester supports the upgrade, made as soon as the target is known.

initialize.py and image_preload.py call it; release/upgrade_path.py has the rule, and on each node
toolkit/commands/version_guard.py repeats it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts import machine_plan
from upgrade_manager.pipeline.outcome import Failed
from upgrade_manager.pipeline.selections import MACHINE_PLANS, MANAGED_NODES
from upgrade_manager.pipeline.settings import unfinished_upgrade
from upgrade_manager.release.upgrade_path import all_run, begun_refusal, path_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.release.unfinished import UnfinishedUpgrade
    from upgrade_manager.release.upgrade_path import Refusal


async def check_upgrade_path(ctx: ReconcileContext, *, target: str, minimum: str) -> Failed | None:
    """Fail if Harvester does not support the upgrade, or the releases' steps are unknown, unless spec.force is set."""
    if ctx.plan.spec.force:
        return None
    current = ctx.status["previousVersion"] or ""
    upgraded = await _upgraded(ctx, target) if current == target else ()
    refusal = path_refusal(current=current, target=target, minimum=minimum, upgraded=upgraded)
    return _failed(ctx, refusal)


async def check_release(ctx: ReconcileContext, *, target: str) -> Failed | None:
    """Fail if nodes still wait for another release, which the name of the plan's Version did not show before."""
    if target == ctx.plan.spec.version:
        return None
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    return check_unfinished(ctx, await unfinished_upgrade.read(ctx), nodes, target=target, is_name=False)


def check_unfinished(
    ctx: ReconcileContext,
    unfinished: UnfinishedUpgrade | None,
    nodes: Sequence[Object],
    *,
    target: str,
    is_name: bool,
) -> Failed | None:
    """Fail if an earlier plan has begun another release; spec.force does not skip this check."""
    refusal = begun_refusal(unfinished, nodes, target=target, is_name=is_name)
    return _failed(ctx, refusal)


def _failed(ctx: ReconcileContext, refusal: Refusal | None) -> Failed | None:
    """Return the failure of a plan whose release is the wrong one, which no retry can change."""
    if refusal is None:
        return None
    field = "spec.image" if ctx.plan.spec.image else "spec.version"
    return Failed(cause=refusal.cause, advice=refusal.advice, immutable=field)


async def _upgraded(ctx: ReconcileContext, version: str) -> Sequence[Object]:
    """Return all nodes if none is left to upgrade or held by a hook of a plan that ended early, else none."""
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    if not all_run(nodes, version):
        return ()
    return () if any(map(machine_plan.is_pending, (await ctx.watch(MACHINE_PLANS)).list())) else nodes
