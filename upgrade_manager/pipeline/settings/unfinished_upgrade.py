"""The annotation of Rancher's cluster about an upgrade that nodes have not reached yet.

rancher.py writes it in the patch that starts the node upgrade, and removes it in the patch that ends it;
../ending/held_nodes.py writes it before an earlier end; ../phases/initialize.py and eligibility.py read it.
release/unfinished.py has its content and the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import ANNOTATION_UNFINISHED_UPGRADE, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.plan_objects import skip_missing
from upgrade_manager.release.unfinished import UnfinishedUpgrade

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

log = structlog.get_logger(__name__)


async def read(ctx: ReconcileContext) -> UnfinishedUpgrade | None:
    """Return the upgrade that an earlier plan has begun; None without one."""
    return UnfinishedUpgrade.of(await _find(ctx))


def of_plan(ctx: ReconcileContext) -> UnfinishedUpgrade:
    """Return this plan's upgrade."""
    release = ctx.status["releaseMetadata"] or {}
    previous = ctx.status["previousVersion"] or ""
    return UnfinishedUpgrade(previous=previous, release=release.get("harvester", ""), os=release.get("os", ""))


def has_ended(ctx: ReconcileContext) -> bool:
    """Return True once every node has reached this plan's release."""
    return PhaseName.NODE_UPGRADE.completed in ctx.status.recorded_phases()


async def keep(ctx: ReconcileContext) -> None:
    """Annotate the cluster before this plan ends early, unless it is annotated, or the plan has changed nothing.

    A single node's upgrade asks nothing of Rancher, so that its cluster is not annotated before.
    """
    if PhaseName.CLUSTER_UPGRADE.active not in ctx.status.recorded_phases() or has_ended(ctx):
        return
    try:
        cluster = await _find(ctx)
        if cluster is None or UnfinishedUpgrade.of(cluster) == of_plan(ctx):
            return
        await _annotate(ctx, cluster, of_plan(ctx).annotation(), event="unfinished upgrade recorded")
    except KubeError as error:
        # The error must not hold up the plan's end.
        log.warning("unfinished upgrade not recorded", error=str(error))


async def forget(ctx: ReconcileContext) -> None:
    """Remove the annotation of an earlier plan after the upgrade of a single node."""
    cluster = await _find(ctx)
    if cluster is not None and ANNOTATION_UNFINISHED_UPGRADE in objects.annotations_of(cluster):
        await _annotate(ctx, cluster, None, event="upgrade finished")


async def _find(ctx: ReconcileContext) -> Object | None:
    find = ctx.client.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL, metadata_only=True)
    return await skip_missing(ctx.client, FLEET_LOCAL, find)


async def _annotate(ctx: ReconcileContext, cluster: Object, value: str | None, *, event: str) -> None:
    metadata = {"annotations": {ANNOTATION_UNFINISHED_UPGRADE: value}}
    patch = MergePatch({"metadata": metadata}).at(objects.resource_version(cluster))
    name, namespace = PROVISIONING_CLUSTER, FLEET_LOCAL
    await ctx.patch(PROVISIONING_CLUSTERS, name, patch, namespace=namespace, metadata_only=True, event=event)
