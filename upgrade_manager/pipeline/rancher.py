"""The one change that makes Rancher upgrade the nodes, made exactly once, and its undoing.

    1. the cluster's generation and strategy are noted on the plan
    2. the cluster is patched, at the very version that was read: generation + 1, the release, our hooks
    3. the new generation is recorded in the plan's status

A crash after 2 shows: the generation is beyond the noted one and the strategy asks us. So nothing is patched twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, Invalid
from upgrade_manager.kube.kinds import PROVISIONING_CLUSTERS
from upgrade_manager.kube.patch import JsonPatch, MergePatch
from upgrade_manager.nodes.strategy import asks_us, generation, rke_config, upgrade_strategy
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.records import ANNOTATION_UPGRADE_STRATEGY

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.scope import Scope

_STRATEGY = "/spec/rkeConfig/upgradeStrategy"


async def read_cluster(scope: Scope) -> Object:
    """The provisioning cluster, read once in this reconcile. Raises MissingObject."""
    if scope.cluster is None:
        scope.cluster = await scope.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if scope.cluster is None:
        raise MissingObject(
            f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} (provisioning.cattle.io) does not exist; without it Rancher "
            "cannot upgrade the nodes: repair Rancher's installation"
        )
    return scope.cluster


def original(cluster: Object) -> dict[str, str]:
    """What is to be noted before the change."""
    note = {"provisionGeneration": generation(cluster), "upgradeStrategy": rke_config(cluster).get("upgradeStrategy")}
    return {ANNOTATION_UPGRADE_STRATEGY: json.dumps(note, separators=(",", ":"), sort_keys=True)}


async def start(scope: Scope) -> int:
    """Make the change unless it is made; the generation that it set. Raises Conflict, MissingObject."""
    cluster = await read_cluster(scope)
    release = scope.draft["releaseMetadata"]["kubernetes"]
    # Hooks of an earlier upgrade may have been left, and others raise the generation too: only all three are proof.
    is_made = asks_us(cluster) and objects.spec(cluster).get("kubernetesVersion") == release
    if is_made and generation(cluster) > _note(scope).get("provisionGeneration", 0):
        return generation(cluster)
    wanted = generation(cluster) + 1
    rke = {"provisionGeneration": wanted, "upgradeStrategy": upgrade_strategy(rke_config(cluster))}
    spec = {"kubernetesVersion": release, "rkeConfig": rke}
    patch = MergePatch({"spec": spec}).at(objects.resource_version(cluster))
    await scope.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)
    return wanted


async def restore(scope: Scope) -> None:
    """Give the cluster its old strategy back, where ours is still in it."""
    note = _note(scope)
    if not note:
        return
    cluster = await scope.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if cluster is None or not asks_us(cluster):
        return
    ours, old = rke_config(cluster)["upgradeStrategy"], note.get("upgradeStrategy")
    change: Object = {"op": "replace", "value": old} if isinstance(old, dict) else {"op": "remove"}
    # Rancher writes the status of this object often, so it is the strategy that must still be as it was read.
    patch = JsonPatch([{"op": "test", "path": _STRATEGY, "value": ours}, {**change, "path": _STRATEGY}])
    try:
        await scope.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)
    except Invalid as error:
        raise Conflict(f"someone else changes the upgrade strategy at the same time: {error}") from error


def _note(scope: Scope) -> dict[str, Any]:
    """The note on the plan; nothing where there is none or someone has broken it."""
    try:
        note = json.loads(objects.annotations_of(scope.raw).get(ANNOTATION_UPGRADE_STRATEGY, "{}"))
    except ValueError:
        return {}
    return note if isinstance(note, dict) and isinstance(note.get("provisionGeneration"), int) else {}
