"""The annotation of Rancher's cluster about an upgrade that nodes have not reached yet.

rancher.py writes it in the patch that starts the node upgrade, and removes it in the patch that ends it;
../ending/held_nodes.py writes it before an earlier end; ../phases/initialize.py and eligibility.py read it.
release/unfinished.py has its content and the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import ANNOTATION_LEDGER, ANNOTATION_UNFINISHED_UPGRADE, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.plan_objects import find_cluster
from upgrade_manager.pipeline.settings import left_entries
from upgrade_manager.release.unfinished import UnfinishedUpgrade

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: Annotations of earlier plans, which end with the upgrade of every node.
_OF_EARLIER = (ANNOTATION_UNFINISHED_UPGRADE, ANNOTATION_LEDGER)
log = structlog.get_logger(__name__)


async def read(ctx: ReconcileContext) -> UnfinishedUpgrade | None:
    """Return the upgrade that an earlier plan has begun; None without one."""
    return UnfinishedUpgrade.of(await find_cluster(ctx.client, metadata_only=True))


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
        cluster = await find_cluster(ctx.client, metadata_only=True)
        if cluster is None or UnfinishedUpgrade.of(cluster) == of_plan(ctx):
            return
        values = {ANNOTATION_UNFINISHED_UPGRADE: of_plan(ctx).annotation()}
        await _annotate(ctx, cluster, values, event="unfinished upgrade recorded")
    except KubeError as error:
        # The error must not hold up the plan's end.
        log.warning("unfinished upgrade not recorded", error=str(error))


async def forget(ctx: ReconcileContext) -> None:
    """Remove the annotations of earlier plans after the upgrade of a single node; record what these plans owe before.

    A single node's upgrade begins without Rancher's cluster, and settles its ledger afterwards.
    """
    cluster = await find_cluster(ctx.client, metadata_only=True)
    if cluster is None:
        return
    left = left_entries.read(cluster)
    if left:
        ledger.put(ctx, left)
        await ctx.persist()
    keys = [key for key in _OF_EARLIER if key in objects.annotations_of(cluster)]
    if keys:
        await _annotate(ctx, cluster, dict.fromkeys(keys), event="upgrade finished")


async def _annotate(ctx: ReconcileContext, cluster: Object, values: Mapping[str, str | None], *, event: str) -> None:
    patch = MergePatch({"metadata": {"annotations": values}}).at(objects.resource_version(cluster))
    name, namespace = PROVISIONING_CLUSTER, FLEET_LOCAL
    await ctx.patch(PROVISIONING_CLUSTERS, name, patch, namespace=namespace, metadata_only=True, event=event)
