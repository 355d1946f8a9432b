"""Rancher's provisioning cluster: the one patch that makes Rancher upgrade the nodes.

    1. the cluster's generation and upgradeStrategy are recorded on the plan (overrides.py)
    2. the cluster is patched: generation + 1, the release's Kubernetes, the hooks; JSON patch tests guard each change
    3. the new generation is recorded in the plan's status

After a crash between 2 and 3 the generation exceeds the recorded one and the strategy has the hooks, so the patch is
not repeated. Rancher's own writes to the cluster, such as its status, do not fail the tests.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.keys import (
    ANNOTATION_POST_HOOK,
    ANNOTATION_PRE_HOOK,
    ANNOTATION_UPGRADE_STRATEGY,
    FLEET_LOCAL,
    PROVISIONING_CLUSTER,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, Invalid
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS, SECRETS
from upgrade_manager.nodes import machine_plan
from upgrade_manager.pipeline.errors import MissingObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: A concurrency, which is a string in Rancher's API.
ONE = "1"
_HOOKS = {"preDrainHooks": ANNOTATION_PRE_HOOK, "postDrainHooks": ANNOTATION_POST_HOOK}
_KUBERNETES = "/spec/kubernetesVersion"
_RKE = "/spec/rkeConfig"
log = structlog.get_logger(__name__)


async def read_cluster(ctx: ReconcileContext) -> Object:
    """Return the provisioning cluster, read once per reconcile. Raises MissingObject."""
    if ctx.cluster is None:
        ctx.cluster = await ctx.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if ctx.cluster is None:
        raise MissingObject(
            f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} (provisioning.cattle.io) does not exist; Rancher needs it "
            "to upgrade the nodes. Run kubectl logs -n cattle-system deployment/rancher"
        )
    return ctx.cluster


async def start_upgrade(ctx: ReconcileContext) -> int:
    """Patch the cluster once; return the generation that was set. Raises Conflict, MissingObject."""
    cluster = await read_cluster(ctx)
    release = ctx.status["releaseMetadata"]["kubernetes"]
    # Hooks may be left from an earlier upgrade, and others raise the generation: all three conditions are needed.
    is_patched = has_hooks(cluster) and objects.spec(cluster).get("kubernetesVersion") == release
    if is_patched and generation(cluster) > recorded_cluster(ctx).get("provisionGeneration", 0):
        return generation(cluster)
    target = generation(cluster) + 1
    test = {"op": "test", "path": _KUBERNETES, "value": objects.spec(cluster).get("kubernetesVersion")}
    add = {"op": "add", "path": _KUBERNETES, "value": release}
    values = {"provisionGeneration": target, "upgradeStrategy": upgrade_strategy(rke_config(cluster))}
    await patch_rke_config(ctx, cluster, values, before=[test, add])
    return target


async def remove_acknowledgements(ctx: ReconcileContext, secrets: Iterable[Object]) -> None:
    """Remove acknowledgements of an earlier upgrade: Rancher sets the same hook values again, and would not wait."""
    for secret in secrets:
        stale = machine_plan.acknowledgements(secret)
        if stale:
            log.info("acknowledgements of an earlier upgrade removed", secret=objects.name(secret), annotations=stale)
            await annotate_secret(ctx, objects.name(secret), dict.fromkeys(stale))


async def annotate_secret(ctx: ReconcileContext, name: str, values: dict[str, str | None]) -> None:
    """Set or remove annotations of a machine-plan Secret."""
    await ctx.mark(SECRETS, name, {"annotations": values}, namespace=FLEET_LOCAL)


def record_cluster(cluster: Object, *, stale: list[str]) -> dict[str, str]:
    """Return the annotation that records the cluster before the patch, and the Secrets with a stale hook."""
    record = {"provisionGeneration": generation(cluster), "upgradeStrategy": rke_config(cluster).get("upgradeStrategy")}
    record |= {"leftOver": stale} if stale else {}
    return {ANNOTATION_UPGRADE_STRATEGY: json.dumps(record, separators=(",", ":"), sort_keys=True)}


def recorded_cluster(ctx: ReconcileContext) -> dict[str, Any]:
    """Return the cluster's record on the plan; empty if it is missing or invalid."""
    try:
        record = json.loads(objects.annotations_of(ctx.raw).get(ANNOTATION_UPGRADE_STRATEGY, "{}"))
    except ValueError:
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("provisionGeneration"), int) else {}


def stale_hooks(ctx: ReconcileContext) -> frozenset[str]:
    """Return the recorded names of Secrets with a hook of an earlier upgrade."""
    names = recorded_cluster(ctx).get("leftOver")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


async def patch_rke_config(
    ctx: ReconcileContext, cluster: Object, values: Mapping[str, Any], *, before: list[Object] | None = None
) -> None:
    """Set or remove (None) members of rkeConfig. Raises Conflict if they differ from `cluster`, or Invalid."""
    patch = JsonPatch([*(before or []), *_operations(cluster, values)])
    try:
        await ctx.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)
    except Invalid as error:
        now = await ctx.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
        if now is not None and objects.spec(now) == objects.spec(cluster):
            raise
        raise Conflict(f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} was changed concurrently: {error}") from error


def _operations(cluster: Object, values: Mapping[str, Any]) -> list[Object]:
    config = objects.spec(cluster).get("rkeConfig")
    if not config:
        return [{"op": "test", "path": _RKE, "value": config}, {"op": "add", "path": _RKE, "value": dict(values)}]
    operations: list[Object] = []
    for name, value in values.items():
        path = {"path": f"{_RKE}/{name}"}
        operations.append({"op": "test", "value": config.get(name), **path})
        operations.append({"op": "remove", **path} if value is None else {"op": "add", "value": value, **path})
    return operations


def rke_config(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return spec.rkeConfig, which may be null."""
    return (cluster.get("spec") or {}).get("rkeConfig") or {}


def generation(cluster: Mapping[str, Any]) -> int:
    """Return the provisionGeneration; absent counts as 0."""
    return int(rke_config(cluster).get("provisionGeneration") or 0)


def has_hooks(cluster: Mapping[str, Any]) -> bool:
    """Return True if the cluster's upgradeStrategy has the manager's pre-drain hook."""
    strategy = rke_config(cluster).get("upgradeStrategy") or {}
    hooks = (strategy.get("controlPlaneDrainOptions") or {}).get("preDrainHooks") or []
    return any(hook.get("annotation") == ANNOTATION_PRE_HOOK for hook in hooks)


def upgrade_strategy(rke: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strategy changed to drain one node at a time, with the manager's hooks."""
    old = rke.get("upgradeStrategy") or {}
    return {
        **old,
        "controlPlaneConcurrency": ONE,
        "workerConcurrency": ONE,
        "controlPlaneDrainOptions": _drain_options(old.get("controlPlaneDrainOptions") or {}),
        "workerDrainOptions": _drain_options(old.get("workerDrainOptions") or {}),
    }


def without_hooks(strategy: Any) -> dict[str, Any] | None:
    """Return the strategy without the manager's hooks; None if it is not an object."""
    if not isinstance(strategy, dict):
        return None
    return {name: _cleaned(value) if isinstance(value, dict) else value for name, value in strategy.items()}


def _drain_options(old: Mapping[str, Any]) -> dict[str, Any]:
    enabled = dict.fromkeys(("enabled", "force", "ignoreDaemonSets", "deleteEmptyDirData"), True)
    hooks = {
        name: [*_without(old.get(name) or [], annotation), {"annotation": annotation}]
        for name, annotation in _HOOKS.items()
    }
    return {**old, **enabled, **hooks}


def _cleaned(options: dict[str, Any]) -> dict[str, Any]:
    lists = {name: _without(options[name], key) for name, key in _HOOKS.items() if options.get(name)}
    return {name: lists.get(name, value) for name, value in options.items() if lists.get(name, True)}


def _without(hooks: list[dict[str, Any]], annotation: str) -> list[dict[str, Any]]:
    return [hook for hook in hooks if hook.get("annotation") != annotation]
