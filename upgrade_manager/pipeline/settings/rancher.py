"""Rancher's provisioning cluster: the one patch that makes Rancher upgrade the nodes, and its reversion.

../node_upgrade/phase.py starts and checks it, giving_back.py ends it; hooks are acknowledged in
../node_upgrade/effects.py.

    1. the new generation and the original upgradeStrategy are recorded in the plan's status
    2. the cluster is patched: generation, the release's Kubernetes, the hooks, and annotations: the plan's uid and the
       original strategy, the release and the version before it; JSON patch tests guard each change
    3. at the end the original strategy is given back

After a crash the annotation shows whether the patch was made. It also lets the next plan find the original after a plan
that ended early: until every node runs the release's Kubernetes, the hooks hold the nodes that are not upgraded yet.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.keys import (
    ANNOTATION_LEDGER,
    ANNOTATION_ORIGINAL_STRATEGY,
    ANNOTATION_UNFINISHED_UPGRADE,
    FLEET_LOCAL,
    PROVISIONING_CLUSTER,
)
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts import drain_hooks, rancher_cluster
from upgrade_manager.facts.field_managers import last_manager
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid, KubeError, PreconditionFailed
from upgrade_manager.kube.patch import JsonPatch, annotation_path
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.nodes.gate import Closed, GateRow
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.selections import LOCAL_CLUSTER
from upgrade_manager.pipeline.settings import unfinished_upgrade, upgrade_strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

_KUBERNETES = "/spec/kubernetesVersion"
_RKE = "/spec/rkeConfig"
#: Member of the annotation: the attempt, and the generation of the Cluster without hooks, that were added again last.
_ADDED = "hooksAdded"
log = structlog.get_logger(__name__)


async def watched_cluster(ctx: ReconcileContext) -> Object:
    """Return the provisioning cluster. Raises MissingObject."""
    cluster = await observed_cluster(ctx)
    if cluster is None:
        raise MissingObject(f"{rancher_cluster.ABSENT}. {rancher_cluster.SHOW_LOG}")
    return cluster


async def observed_cluster(ctx: ReconcileContext) -> Object | None:
    """Return the provisioning cluster, if it exists."""
    return (await ctx.watch(LOCAL_CLUSTER)).get(PROVISIONING_CLUSTER, FLEET_LOCAL)


def next_generation(ctx: ReconcileContext, cluster: Object, *, has_started: bool) -> int | None:
    """Return the generation that starts the upgrade; None once Rancher has started the upgrade.

    An upgrade that has started a node is never started again, whatever the Cluster shows: a client that has set the
    Cluster back, such as a restore, closes the gate (`set_back`).
    """
    recorded = ctx.status["provisionGeneration"]
    if has_started or _record(cluster).get("uid") == ctx.owner.uid:
        return None
    if belongs_to_another(ctx, cluster):
        # The hooks belong to an earlier plan, with any generation.
        return generation(cluster) + 1
    is_patched = objects.spec(cluster).get("kubernetesVersion") == release(ctx)
    # A generation that another client has set lacks the hooks.
    is_known = drain_hooks.has_hooks(rke_config(cluster).get("upgradeStrategy"))
    if recorded is not None and generation(cluster) >= recorded and is_patched and is_known:
        # Another client has removed the annotation, perhaps with the hooks.
        return None
    return generation(cluster) + 1


async def start_upgrade(ctx: ReconcileContext, cluster: Object, *, original: Any) -> None:
    """Set the recorded generation and the hooks. Raises PreconditionFailed if the cluster has changed."""
    current = objects.spec(cluster).get("kubernetesVersion")
    strategy = rke_config(cluster).get("upgradeStrategy")
    values = {
        "provisionGeneration": ctx.status["provisionGeneration"],
        "upgradeStrategy": upgrade_strategy.with_hooks(strategy),
    }
    operations: list[Object] = [
        {"op": "test", "path": _KUBERNETES, "value": current},
        {"op": "add", "path": _KUBERNETES, "value": release(ctx)},
        *_annotate(cluster, {**_annotation(ctx, original), **_unfinished(ctx)}),
        *_without_ledger(cluster),
    ]
    await _patch_cluster(ctx, cluster, operations, values, event="node upgrade requested from Rancher")


async def add_hooks(ctx: ReconcileContext, cluster: Object, *, original: Any, is_contested: bool) -> None:
    """Add the hooks that other clients have removed, without a new generation.

    The patch records itself, because the event must not precede it: without the hooks Rancher may upgrade a node.
    A blocker reports a strategy that is contested, in place of an event for each removal.
    """
    generation_without = objects.value(cluster, "metadata", "generation")
    removal = None if is_contested else {"attempt": ctx.owner.attempt, "generation": generation_without}
    values = {"upgradeStrategy": upgrade_strategy.with_hooks(rke_config(cluster).get("upgradeStrategy"))}
    await _patch_cluster(ctx, cluster, _annotate(cluster, _annotation(ctx, original, removal=removal)), values)
    if removal is not None:
        _report_added(ctx, removal)


def report_added_hooks(ctx: ReconcileContext, cluster: Object) -> None:
    """Record the event of hooks that were added again, because the process that added them may not have done so."""
    record = _record(cluster)
    removal = record.get(_ADDED)
    if record.get("uid") == ctx.owner.uid and isinstance(removal, dict) and removal.get("attempt") == ctx.owner.attempt:
        _report_added(ctx, removal)


def _report_added(ctx: ReconcileContext, removal: Mapping[str, Any]) -> None:
    text = (
        f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER}: the upgrade manager's drain hooks were removed from "
        "spec.rkeConfig.upgradeStrategy and have been added again. Without them Rancher upgrades nodes that run VMs; "
        "find the client that removed them in the API server's audit log"
    )
    ctx.events.warning_once(ctx.raw, "DrainHooksAdded", text, about=f"generation {removal.get('generation')}")


async def keep_original(ctx: ReconcileContext, cluster: Object, entry: Mapping[str, Any] | None) -> bool:
    """Annotate the cluster again after another client's removal, because the next plan needs the original strategy.

    Return True if the annotation was there.
    """
    if entry is None or not (has_lost_original(cluster) or belongs_to_another(ctx, cluster)):
        return True
    try:
        await _patch_cluster(ctx, cluster, _annotate(cluster, _annotation(ctx, entry.get("original"))), {})
    except KubeError as error:
        # The error must hold up neither nodes nor the plan's end; the next reconcile tries again.
        log.warning("original strategy not annotated", error=str(error))
    return False


def read_strategy(cluster: Object) -> tuple[Any, Any]:
    """Return the strategy to give back at the end, and the one to apply."""
    return _original(cluster), upgrade_strategy.with_hooks(rke_config(cluster).get("upgradeStrategy"))


def has_lost_original(cluster: Object) -> bool:
    """Return True if the strategy has an earlier plan's hooks, and another client has removed the annotation."""
    has_hooks = drain_hooks.has_hooks(rke_config(cluster).get("upgradeStrategy"))
    return has_hooks and "upgradeStrategy" not in _record(cluster)


async def revert_strategy(ctx: ReconcileContext, override: object, entry: Mapping[str, Any]) -> bool:
    """Give the original strategy back, except parts that other clients have changed; return True without such parts."""
    cluster = await _latest(ctx)
    if cluster is None or belongs_to_another(ctx, cluster):
        return False
    original, now = entry.get("original"), rke_config(cluster).get("upgradeStrategy")
    if not drain_hooks.has_hooks(now) and not _record(cluster):
        # The strategy was not applied, or is reverted.
        reverted = now
    else:
        reverted = upgrade_strategy.merge(original, entry.get("applied"), now)
    ended = [ANNOTATION_UNFINISHED_UPGRADE] if unfinished_upgrade.has_ended(ctx) else []
    operations = _annotate(cluster, dict.fromkeys([ANNOTATION_ORIGINAL_STRATEGY, *ended]))
    if operations or reverted != now:
        values = {} if reverted == now else {"upgradeStrategy": reverted}
        await _patch_cluster(ctx, cluster, operations, values, event="setting given back")
    if reverted != original:
        text = (
            f"{override}: parts of spec.rkeConfig.upgradeStrategy were changed during the upgrade and keep their new "
            f"values; it was {json.dumps(original)} before"
        )
        ctx.events.warning(ctx.raw, "SettingNotRestored", text, about=str(override))
    return bool(reverted == original)


async def _latest(ctx: ReconcileContext) -> Object | None:
    """Return the cluster from its cache if the node upgrade watches it; the tests of the patch detect a stale cache."""
    if LOCAL_CLUSTER in ctx.informers.specs:
        return await observed_cluster(ctx)
    return await ctx.client.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)


def set_back(ctx: ReconcileContext, cluster: Object) -> Closed | None:
    """Return the closed row while the Cluster requests an older state than this plan's; None otherwise.

    A higher generation stays: users raise it to let Rancher drain nodes again. A plan that another manager began may
    have no recorded generation.
    """
    requested, version = ctx.status["provisionGeneration"] or 0, release(ctx)
    spec: dict[str, Any] = {}
    found = []
    if version and objects.spec(cluster).get("kubernetesVersion") != version:
        spec["kubernetesVersion"] = version
        found.append(_changed(cluster, "kubernetesVersion", wanted=version))
    if generation(cluster) < requested:
        spec["rkeConfig"] = {"provisionGeneration": requested}
        found.append(_changed(cluster, "rkeConfig", "provisionGeneration", wanted=str(requested)))
    if not spec:
        return None
    patch = json.dumps({"spec": spec}, separators=(",", ":"))
    named = f"-n {FLEET_LOCAL} {PROVISIONING_CLUSTERS.name} {PROVISIONING_CLUSTER}"
    return Closed(
        row=GateRow.RANCHER,
        namespace=FLEET_LOCAL,
        name=PROVISIONING_CLUSTER,
        why="; ".join(found),
        ways_out=(
            Remedy("Stop the client that sets it back"),
            Remedy("Set it again", command=f"kubectl patch {named} --type=merge -p '{patch}'"),
        ),
    )


def _changed(cluster: Object, *path: str, wanted: str) -> str:
    now = objects.excerpt(str(objects.value(objects.spec(cluster), *path) or "nothing"))
    client = last_manager(cluster, "spec", *path)
    return f"its {path[-1]} is {now} instead of {wanted}" + (f", set by {client}" if client else "")


def belongs_to_another(ctx: ReconcileContext, cluster: Object) -> bool:
    """Return True if another plan has taken over the cluster, so that the hooks must stay."""
    return bool(_record(cluster).get("uid", ctx.owner.uid) != ctx.owner.uid)


def rke_config(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return spec.rkeConfig, which may be null."""
    return (cluster.get("spec") or {}).get("rkeConfig") or {}


def generation(cluster: Mapping[str, Any]) -> int:
    """Return the provisionGeneration; absent counts as 0."""
    return int(rke_config(cluster).get("provisionGeneration") or 0)


def release(ctx: ReconcileContext) -> str:
    """Return the release's version of Kubernetes."""
    return (ctx.status["releaseMetadata"] or {}).get("kubernetes") or ""


def _original(cluster: Object) -> Any:
    """Return the strategy before any upgrade, which a plan that ended early has recorded beside its hooks."""
    strategy = rke_config(cluster).get("upgradeStrategy")
    if not drain_hooks.has_hooks(strategy):
        return strategy
    record = _record(cluster)
    return upgrade_strategy.without_hooks(record.get("upgradeStrategy", strategy))


def _record(cluster: Object) -> dict[str, Any]:
    """Return the annotation of the plan that set the hooks; empty if it is missing or invalid."""
    try:
        record = json.loads(objects.annotations_of(cluster).get(ANNOTATION_ORIGINAL_STRATEGY, "{}"))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _annotation(
    ctx: ReconcileContext, original: Any, *, removal: Mapping[str, Any] | None = None
) -> dict[str, str | None]:
    record = {"plan": ctx.owner.name, "uid": ctx.owner.uid, "upgradeStrategy": original}
    if removal is not None:
        record[_ADDED] = removal
    return {ANNOTATION_ORIGINAL_STRATEGY: json.dumps(record, separators=(",", ":"))}


def _unfinished(ctx: ReconcileContext) -> dict[str, str | None]:
    return {ANNOTATION_UNFINISHED_UPGRADE: unfinished_upgrade.of_plan(ctx).annotation()}


def _annotate(cluster: Object, values: Mapping[str, str | None]) -> list[Object]:
    """Return the operations that set annotations, or remove those that are None; none if nothing changes."""
    present = objects.annotations_of(cluster)
    removed = [key for key, value in values.items() if value is None and key in present]
    added = {key: value for key, value in values.items() if value is not None}
    parent = _ADD_ANNOTATIONS if added and not objects.metadata(cluster).get("annotations") else []
    adds = [{"op": "add", "path": annotation_path(key), "value": value} for key, value in added.items()]
    return [*parent, *adds, *({"op": "remove", "path": annotation_path(key)} for key in removed)]


def _without_ledger(cluster: Object) -> list[Object]:
    """Return the operations that remove what an earlier plan has left, which this plan has recorded."""
    value, path = objects.annotations_of(cluster).get(ANNOTATION_LEDGER), annotation_path(ANNOTATION_LEDGER)
    return [] if value is None else [{"op": "test", "path": path, "value": value}, {"op": "remove", "path": path}]


_ADD_ANNOTATIONS: list[Object] = [
    {"op": "test", "path": "/metadata/annotations", "value": None},
    {"op": "add", "path": "/metadata/annotations", "value": {}},
]


async def _patch_cluster(
    ctx: ReconcileContext, cluster: Object, operations: list[Object], values: Mapping[str, Any], *, event: str = ""
) -> None:
    """Apply the operations, and set members of rkeConfig or remove those that are None.

    Raises PreconditionFailed if the members differ from `cluster` by now, and Invalid if the patch is refused.
    """
    patch = JsonPatch([*operations, *_set_members(cluster, values)])
    try:
        await ctx.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL, event=event)
    except Invalid as error:
        now = await ctx.client.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
        if now is not None and _patched_fields(now) == _patched_fields(cluster):
            raise
        text = f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} was changed concurrently: {error}"
        raise PreconditionFailed(text) from error


def _patched_fields(cluster: Object) -> tuple[Any, ...]:
    config = objects.spec(cluster).get("rkeConfig")
    members = [(config or {}).get(name) for name in ("provisionGeneration", "upgradeStrategy")]
    annotations = objects.annotations_of(cluster)
    keys = (ANNOTATION_ORIGINAL_STRATEGY, ANNOTATION_UNFINISHED_UPGRADE, ANNOTATION_LEDGER)
    own = [annotations.get(key) for key in keys]
    return objects.spec(cluster).get("kubernetesVersion"), bool(config), *members, bool(annotations), *own


def _set_members(cluster: Object, values: Mapping[str, Any]) -> list[Object]:
    if not values:
        return []
    config = objects.spec(cluster).get("rkeConfig")
    if not config:
        return [{"op": "test", "path": _RKE, "value": config}, {"op": "add", "path": _RKE, "value": dict(values)}]
    operations: list[Object] = []
    for name, value in values.items():
        path = {"path": f"{_RKE}/{name}"}
        operations.append({"op": "test", "value": config.get(name), **path})
        operations.append({"op": "remove", **path} if value is None else {"op": "add", "value": value, **path})
    return operations
