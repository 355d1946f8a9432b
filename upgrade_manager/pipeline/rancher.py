"""The one change that makes Rancher upgrade the nodes, made exactly once, and its undoing.

    1. the cluster's generation and strategy are noted on the plan
    2. the cluster is patched, if what is changed is as it was read: generation + 1, the release, our hooks
    3. the new generation is recorded in the plan's status

A crash after 2 shows: the generation is beyond the noted one and the strategy asks us. So nothing is patched twice. A
write of Rancher's to the same object, such as its status, is no obstacle to 2 and to the undoing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import ANNOTATION_UPGRADE_STRATEGY, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, Invalid
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.nodes.upgrade_strategy import asks_us, generation, rke_config, upgrade_strategy, without_our_hooks
from upgrade_manager.pipeline.errors import MissingObject

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

_KUBERNETES = "/spec/kubernetesVersion"
_RKE = "/spec/rkeConfig"


async def read_cluster(ctx: ReconcileContext) -> Object:
    """The provisioning cluster, read once in this reconcile. Raises MissingObject."""
    if ctx.cluster is None:
        ctx.cluster = await ctx.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if ctx.cluster is None:
        raise MissingObject(
            f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} (provisioning.cattle.io) does not exist; without it Rancher "
            "cannot upgrade the nodes: repair Rancher's installation"
        )
    return ctx.cluster


def original(cluster: Object, *, asking: list[str]) -> dict[str, str]:
    """What is to be noted before the change; `asking` are the Secrets with a question of an earlier upgrade."""
    note = {"provisionGeneration": generation(cluster), "upgradeStrategy": rke_config(cluster).get("upgradeStrategy")}
    note |= {"leftOver": asking} if asking else {}
    return {ANNOTATION_UPGRADE_STRATEGY: json.dumps(note, separators=(",", ":"), sort_keys=True)}


def left_over(ctx: ReconcileContext) -> frozenset[str]:
    """Names of the Secrets that had a question before Rancher was asked for anything."""
    names = _note(ctx).get("leftOver")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


async def start(ctx: ReconcileContext) -> int:
    """Make the change unless it is made; the generation that it set. Raises Conflict, MissingObject."""
    cluster = await read_cluster(ctx)
    release = ctx.status["releaseMetadata"]["kubernetes"]
    # Hooks of an earlier upgrade may have been left, and others raise the generation too: only all three are proof.
    is_made = asks_us(cluster) and objects.spec(cluster).get("kubernetesVersion") == release
    if is_made and generation(cluster) > _note(ctx).get("provisionGeneration", 0):
        return generation(cluster)
    wanted = generation(cluster) + 1
    rke = {"provisionGeneration": wanted, "upgradeStrategy": upgrade_strategy(rke_config(cluster))}
    old = {"op": "test", "path": _KUBERNETES, "value": objects.spec(cluster).get("kubernetesVersion")}
    await _change(ctx, cluster, [old, {**old, "op": "add", "value": release}, *_swaps(cluster, rke)])
    return wanted


async def restore(ctx: ReconcileContext) -> None:
    """Give the cluster its old strategy back, where ours is still in it."""
    note = _note(ctx)
    if not note:
        return
    cluster = await ctx.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if cluster is None or not asks_us(cluster):
        return
    # Hooks of ours in the old one were left behind, and nobody would answer them.
    old = without_our_hooks(note.get("upgradeStrategy"))
    await _change(ctx, cluster, _swaps(cluster, {"upgradeStrategy": old}))


def _swaps(cluster: Object, values: dict[str, Any]) -> list[Object]:
    """Operations that set, or where it is None remove, members of the RKE configuration if they are as they were."""
    was = objects.spec(cluster).get("rkeConfig")
    if not was:
        return [{"op": "test", "path": _RKE, "value": was}, {"op": "add", "path": _RKE, "value": values}]
    ops: list[Object] = []
    for name, value in values.items():
        place = {"path": f"{_RKE}/{name}"}
        ops.append({"op": "test", "value": was.get(name), **place})
        ops.append({"op": "remove", **place} if value is None else {"op": "add", "value": value, **place})
    return ops


async def _change(ctx: ReconcileContext, cluster: Object, ops: list[Object]) -> None:
    """Raises Conflict where somebody has changed the same meanwhile; a refusal for another reason stays what it is."""
    try:
        await ctx.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, JsonPatch(ops), namespace=FLEET_LOCAL)
    except Invalid as error:
        now = await ctx.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
        if now is not None and objects.spec(now) == objects.spec(cluster):
            raise
        raise Conflict(f"someone else changes Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} as well: {error}") from error


def _note(ctx: ReconcileContext) -> dict[str, Any]:
    """The note on the plan; nothing where there is none or someone has broken it."""
    try:
        note = json.loads(objects.annotations_of(ctx.raw).get(ANNOTATION_UPGRADE_STRATEGY, "{}"))
    except ValueError:
        return {}
    return note if isinstance(note, dict) and isinstance(note.get("provisionGeneration"), int) else {}
