"""The check that Harvester supports the upgrade, made as soon as the target is known.

initialize.py and image_preload.py call it; on each node toolkit/commands/version_guard.py repeats it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts import machine_plan
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.outcome import Failed
from upgrade_manager.pipeline.selections import MACHINE_PLANS, MANAGED_NODES
from upgrade_manager.pipeline.settings import unfinished_upgrade
from upgrade_manager.release.migrations import pairs
from upgrade_manager.release.version import check_eligibility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.release.unfinished import UnfinishedUpgrade


async def check_upgrade_path(ctx: ReconcileContext, *, target: str, minimum: str) -> Failed | None:
    """Fail if Harvester does not support the upgrade, or the releases' steps are unknown, unless spec.force is set."""
    if ctx.plan.spec.force:
        return None
    current = ctx.status["previousVersion"] or ""
    refusal = check_eligibility(current, target, minimum)
    if refusal is None and current == target and await _is_upgraded(ctx, target):
        refusal = "all nodes run it already"
    unknown = pairs.refusal(current, target)
    if refusal is None and not unknown:
        return None
    forced = "spec.force: true skips this check" if refusal else pairs.FORCED
    advice = f"Create a plan for another release; {forced}"
    return Failed(cause=f"upgrade from {current} to {target} is not allowed: {refusal or unknown}", advice=advice)


async def check_release(ctx: ReconcileContext, *, target: str) -> Failed | None:
    """Fail if nodes still wait for another release, which the name of the plan's Version did not show before."""
    if target == ctx.plan.spec.version:
        return None
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    return check_unfinished(await unfinished_upgrade.read(ctx), nodes, target=target, is_name=False)


def check_unfinished(
    unfinished: UnfinishedUpgrade | None, nodes: Sequence[Object], *, target: str, is_name: bool
) -> Failed | None:
    """Fail if an earlier plan has begun another release; spec.force does not skip this check."""
    refusal = unfinished.refusal(target, nodes, is_name=is_name) if unfinished and target else ""
    return Failed(cause=refusal, advice="Create a plan for that release") if refusal else None


async def _is_upgraded(ctx: ReconcileContext, version: str) -> bool:
    """Return True if no node is left to upgrade or held by a hook of a plan that ended early."""
    if not _run_on_all((await ctx.watch(MANAGED_NODES)).list(), version):
        return False
    return not any(map(machine_plan.is_pending, (await ctx.watch(MACHINE_PLANS)).list()))


def _run_on_all(nodes: list[Object], version: str) -> bool:
    """Return True if all nodes run the version's OS; after a failed upgrade, some run an older one."""
    return bool(nodes) and all(
        version in str((objects.status(node).get("nodeInfo") or {}).get("osImage")).split() for node in nodes
    )
