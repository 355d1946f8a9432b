"""The settings of a plan that a manager without a ledger began: an earlier version, or the Go manager.

The reconciler calls it in the first reconcile of such a plan, whose status has no ledger; `overrides.py` then continues
with the entries. What those managers have changed stands in annotations of the plan. A value that an upgrade sets, and
that nothing records, becomes an entry without an original: ending/settlement.py names it at the end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.in_progress import is_in_progress
from upgrade_manager.api.keys import (
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_REPLENISHMENT_INTERVAL,
    ANNOTATION_UPGRADE_STRATEGY,
)
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.facts import drain_hooks, update_methods
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.plan_objects import find_cluster, skip_missing
from upgrade_manager.pipeline.settings import rancher, upgrade_strategy
from upgrade_manager.pipeline.settings.overrides import (
    COMPARED,
    DEPLOYED_METHODS,
    DESCHEDULER,
    INTERVAL,
    METHODS,
    RAISED_INTERVAL,
    STRATEGY,
    read_strategy,
    record_originals,
)

if TYPE_CHECKING:
    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.settings.overrides import Override

#: In the id of an entry without an original.
_UNRECORDED = "unrecorded"
log = structlog.get_logger(__name__)


async def adopt(ctx: ReconcileContext) -> None:
    """Read the settings that the earlier manager has changed into the ledger, and write it.

    Before the cluster upgrade nothing has changed. A plan that has ended may have given its settings back, and another
    plan may have changed these since: only what the plan itself records is read.
    """
    found: list[Entry] = []
    known = {entry["id"] for entry in ledger.entries(ctx)}
    if PhaseName.NODE_UPGRADE.active in ctx.status.recorded_phases() and await _is_alone(ctx):
        found += [] if INTERVAL.id in known else await _interval(ctx)
        found += [] if DESCHEDULER.id in known else await _descheduler(ctx)
        if ctx.status["singleNode"] is None and STRATEGY.id not in known:
            found += await _strategy(ctx)
    if PhaseName.CLUSTER_UPGRADE.active in ctx.status.recorded_phases() and not ctx.status.ended:
        found += [entry for entry in await _update_methods(ctx) if entry["id"] not in known]
    ledger.put(ctx, found)
    if _is_unbegun(ctx):
        # They are recorded as on entering the phase.
        await record_originals(ctx)
    await ctx.persist()
    if found:
        log.info("settings of an earlier version recorded", entries=[entry["id"] for entry in found])


def is_unrecorded(entry: Entry) -> bool:
    """Return True for an entry without an original."""
    return bool(entry["id"].split(".")[1:2] == [_UNRECORDED])


def _is_unbegun(ctx: ReconcileContext) -> bool:
    """Return True if no node has begun its upgrade, so that the settings may not have been changed yet."""
    states = map(ctx.status.node_state, ctx.status.known_nodes())
    is_begun = any(state is not None and state.group > NodeState.IMAGE_PRELOADED.group for state in states)
    is_active = ctx.status.phase == PhaseName.NODE_UPGRADE.active and not objects.is_deleting(ctx.raw)
    return is_active and not is_begun


async def _is_alone(ctx: ReconcileContext) -> bool:
    """Return True for a plan that runs, and for one that has ended while no other plan runs."""
    if not ctx.status.ended:
        return True
    plans = (await ctx.client.list(UPGRADE_PLANS)).items
    return not any(is_in_progress(objects.status(plan)) for plan in plans if objects.uid(plan) != ctx.owner.uid)


async def _interval(ctx: ReconcileContext) -> list[Entry]:
    setting = await _read(ctx, INTERVAL)
    if setting is None or setting.get("value") != RAISED_INTERVAL:
        return []
    original = objects.annotations_of(ctx.raw).get(ANNOTATION_REPLENISHMENT_INTERVAL, "")
    if original.isdecimal():
        return [INTERVAL.entry(ctx, original=original, applied=RAISED_INTERVAL)]
    return [] if ctx.status.ended else [_unrecorded(ctx, INTERVAL, RAISED_INTERVAL)]


async def _descheduler(ctx: ReconcileContext) -> list[Entry]:
    """Return the entry of the addon; one that is off without a record was off before."""
    addon = await _read(ctx, DESCHEDULER)
    was_enabled = objects.annotations_of(ctx.raw).get(ANNOTATION_DESCHEDULER_WAS_ENABLED) == "true"
    if addon is None or not was_enabled or objects.spec(addon).get("enabled") is not False:
        return []
    return [DESCHEDULER.entry(ctx, original=True, applied=False)]


async def _update_methods(ctx: ReconcileContext) -> list[Entry]:
    """Return the entries of KubeVirt's update methods, which the Go manager empties before the cluster upgrade.

    It records no original, and its clean-up sets the list that Harvester's installer sets (harvester/harvester v1.8.0
    pkg/controller/master/upgrade/upgrade_controller.go:1006).
    """
    chart, kubevirt = await _read(ctx, METHODS), await _read(ctx, DEPLOYED_METHODS)
    found: list[Entry] = []
    if chart is not None and update_methods.of_chart(chart) == []:
        original, applied = METHODS.read(chart)
        found.append(METHODS.entry(ctx, original=original or None, applied=applied))
    if chart is not None:
        entries = update_methods.compared(chart)
        if (others := update_methods.without_pointer(entries)) != entries:
            found.append(COMPARED.entry(ctx, original=others or None, applied=entries))
    if kubevirt is not None and update_methods.of_kubevirt(kubevirt) == []:
        found.append(DEPLOYED_METHODS.entry(ctx, original=[*update_methods.INSTALLED], applied=[]))
    return found


async def _strategy(ctx: ReconcileContext) -> list[Entry]:
    """Return the entry of Rancher's strategy, and one without an original if no plan has recorded it."""
    cluster = await find_cluster(ctx.client)
    if cluster is None or rancher.belongs_to_another(ctx, cluster):
        return []
    now = rancher.rke_config(cluster).get("upgradeStrategy")
    if not drain_hooks.has_hooks(now):
        return []
    record = _recorded_cluster(ctx)
    _resume(ctx, cluster, record)
    if "upgradeStrategy" in record:
        original = upgrade_strategy.without_hooks(record["upgradeStrategy"])
        return [STRATEGY.entry(ctx, original=original, applied=_applied(original, now))]
    if ctx.status.ended and rancher.has_lost_original(cluster):
        return []
    original, _ = await read_strategy(ctx, cluster)
    if not rancher.has_lost_original(cluster) or original != upgrade_strategy.without_hooks(now):
        return [STRATEGY.entry(ctx, original=original, applied=_applied(original, now))]
    # The hooks go, and the drain options stay.
    return [STRATEGY.entry(ctx, original=original, applied=now), _unrecorded(ctx, STRATEGY, original)]


def _resume(ctx: ReconcileContext, cluster: Object, record: Object) -> None:
    """Record the generation of a patch whose response that manager did not record, and the hooks before the patch."""
    before, version = record.get("provisionGeneration"), objects.spec(cluster).get("kubernetesVersion")
    is_patched = isinstance(before, int) and rancher.generation(cluster) > before and version == rancher.release(ctx)
    if ctx.status["provisionGeneration"] is None and is_patched:
        ctx.status["provisionGeneration"] = rancher.generation(cluster)
    left = record.get("leftOver")
    if isinstance(left, list) and ctx.status["staleHooks"] is None:
        ctx.status["staleHooks"] = [name for name in left if isinstance(name, str)] or None


def _applied(original: Any, now: Any) -> Any:
    """Return the strategy that the earlier manager has set; it may have set another grace period than this one."""
    wanted = upgrade_strategy.with_hooks(original)
    for role, options in wanted.items():
        found = now.get(role)
        if isinstance(options, dict) and isinstance(found, dict):
            period = {"gracePeriod": found["gracePeriod"]} if "gracePeriod" in found else {}
            wanted[role] = {**{key: value for key, value in options.items() if key != "gracePeriod"}, **period}
    return wanted


def _recorded_cluster(ctx: ReconcileContext) -> Object:
    """Return the plan's record of the cluster before the patch; empty if it is missing or invalid."""
    try:
        record = json.loads(objects.annotations_of(ctx.raw).get(ANNOTATION_UPGRADE_STRATEGY, "{}"))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _unrecorded(ctx: ReconcileContext, override: Override, value: Any) -> Entry:
    names = (_UNRECORDED, override.namespace, override.name, override.field)
    fields = {"object_": str(override), "field": override.field, "applied": value, "since": ledger.now(ctx)}
    return new_entry(LedgerKind.SETTING, *names, **fields)


async def _read(ctx: ReconcileContext, override: Override) -> Object | None:
    read = ctx.client.find(override.resource, override.name, namespace=override.namespace)
    return await skip_missing(ctx.client, override.namespace, read)
