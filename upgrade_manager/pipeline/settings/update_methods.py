"""The list of KubeVirt's workload update methods, which is empty from before Rancher's upgrade to the last node's.

overrides.py has the table; phases/vm_updates.py applies it before the Job of the cluster upgrade. Else KubeVirt would
migrate every VM to a new launcher, after its own upgrade, while nodes are drained.

The manager changes the value of Harvester's ManagedChart alone, and Fleet the KubeVirt object: it refuses to deploy
what another client has written there. A toolkit of Harvester may write KubeVirt nevertheless, with an exception in the
chart's comparePatches. That is undone as Harvester's own controller undoes it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.keys import ANNOTATION_UPDATE_METHODS, FLEET_LOCAL
from upgrade_manager.facts import update_methods as facts
from upgrade_manager.facts.managed_charts import pause_hint
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid, NotFound, PreconditionFailed
from upgrade_manager.kube.patch import JsonPatch, annotation_path
from upgrade_manager.kube.resources import MANAGED_CHARTS
from upgrade_manager.pipeline.selections import HARVESTER_CHART
from upgrade_manager.pipeline.write_log import describe

if TYPE_CHECKING:
    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.settings.overrides import Override

_EMPTY: list[str] = []
log = structlog.get_logger(__name__)


def read_chart(chart: Object) -> tuple[Any, Any]:
    """Return the original, None for a chart without the list, and the empty list."""
    now = facts.of_chart(chart)
    if now == _EMPTY and ANNOTATION_UPDATE_METHODS in objects.annotations_of(chart):
        return _left_by_toolkit(chart), _EMPTY
    return now, _EMPTY


def read_compared(chart: Object) -> tuple[Any, Any]:
    """Return the chart's comparePatches, and the same with the exception that Harvester's upgrade adds."""
    now = objects.value(chart, "spec", "diff", "comparePatches")
    entries = facts.compared(chart)
    wanted = facts.with_pointer(entries)
    return now, now if wanted == entries else wanted


def read_kubevirt(kubevirt: Object) -> tuple[Any, Any]:
    """Return KubeVirt's own list, and the empty one."""
    return facts.of_kubevirt(kubevirt), _EMPTY


async def empty_chart(ctx: ReconcileContext, override: Override, entry: Entry) -> None:
    """Empty the list in the chart's values, if it still has its original."""
    chart = (await ctx.watch(HARVESTER_CHART)).get(override.name, override.namespace)
    if chart is not None and facts.of_chart(chart) == entry.get("original"):
        await _patch(ctx, override, chart, _set_value(chart, entry.get("applied")), event="setting changed")


async def revert_chart(ctx: ReconcileContext, override: Override, entry: Entry) -> bool:
    """Give the original back, unless another client has set the list; return True if the chart has it."""
    chart = await _find(ctx, override)
    if chart is None:
        return False
    now, original, applied = facts.of_chart(chart), entry.get("original"), entry.get("applied")
    operations = _set_value(chart, original) if now == applied else []
    if ANNOTATION_UPDATE_METHODS in objects.annotations_of(chart):
        operations.append({"op": "remove", "path": annotation_path(ANNOTATION_UPDATE_METHODS)})
    await _patch(ctx, override, chart, operations, event="setting given back")
    if now not in [applied, original]:
        text = override.kept(now=describe(now), original=describe(original))
        ctx.events.warning(ctx.raw, "SettingNotRestored", text, about=str(override))
        return False
    if objects.is_true(chart, "spec", "paused"):
        text = f"{override}: Fleet deploys the restored {override.field} later{pause_hint(chart)}"
        ctx.events.warning(ctx.raw, "SettingNotRestored", text, about=str(override))
    return True


async def revert_compared(ctx: ReconcileContext, override: Override, entry: Entry) -> bool:
    """Remove the exception that Harvester's upgrade has added to comparePatches; return True if it was there."""
    chart = await _find(ctx, override)
    if chart is None:
        return False
    before = facts.compared(chart)
    after = facts.without_pointer(before)
    if after == before:
        return False
    diff = {**objects.mapping(chart, "spec", "diff"), "comparePatches": after}
    if not after and entry.get("original") is None:
        del diff["comparePatches"]
    spec = {**objects.spec(chart), "diff": diff or None}
    operations = _operations(objects.spec(chart), spec, ("diff", "comparePatches"))
    await _patch(ctx, override, chart, operations, event="setting given back")
    return True


async def revert_kubevirt(ctx: ReconcileContext, override: Override, entry: Entry) -> bool:
    """Fill KubeVirt's list if another client than Fleet has emptied it; return True if this call did so.

    The chart's value is the right one, if it has one: Fleet would refuse to deploy another.
    """
    kubevirt = await _find(ctx, override)
    if kubevirt is None or facts.of_kubevirt(kubevirt) != entry.get("applied") or not facts.other_writer(kubevirt):
        return False
    chart = await ctx.client.find(MANAGED_CHARTS, facts.CHART, namespace=FLEET_LOCAL)
    strategy = {**objects.mapping(kubevirt, "spec", facts.PATH[0]), facts.PATH[1]: facts.of_chart(chart or {})}
    if not strategy[facts.PATH[1]]:
        strategy[facts.PATH[1]] = entry.get("original")
    spec = {**objects.spec(kubevirt), facts.PATH[0]: strategy}
    operations = _operations(objects.spec(kubevirt), spec, facts.PATH)
    await _patch(ctx, override, kubevirt, operations, event="setting given back")
    return True


def _left_by_toolkit(chart: Object) -> list[str] | None:
    """Return the list that a toolkit of version 0.1 has recorded and not restored; None if the chart had none."""
    try:
        found = json.loads(objects.annotations_of(chart)[ANNOTATION_UPDATE_METHODS])
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def _set_value(chart: Object, methods: Any) -> list[Object]:
    spec = objects.spec(chart)
    values = facts.with_methods(dict(objects.mapping(chart, "spec", "values")), methods)
    return _operations(spec, {**spec, "values": values or None}, facts.VALUE_PATH)


def _operations(before: Object, after: Object, path: tuple[str, ...]) -> list[Object]:
    """Return the change of the spec at the first member of the path that one of both lacks, after a test of it."""
    old: Any = before
    new: Any = after
    pointer = "/spec"
    for key in path:
        old, new, pointer = old.get(key), new.get(key), f"{pointer}/{key}"
        if not isinstance(old, dict) or not isinstance(new, dict):
            break
    test = {"op": "test", "path": pointer, "value": old}
    return [test, {"op": "remove", "path": pointer} if new is None else {"op": "add", "path": pointer, "value": new}]


async def _find(ctx: ReconcileContext, override: Override) -> Object | None:
    return await ctx.client.find(override.resource, override.name, namespace=override.namespace)


async def _patch(
    ctx: ReconcileContext, override: Override, before: Object, operations: list[Object], *, event: str
) -> None:
    """Apply the operations. Raises PreconditionFailed if another client has changed the object meanwhile."""
    if not operations:
        return
    try:
        patch = JsonPatch(operations)
        await ctx.patch(override.resource, override.name, patch, namespace=override.namespace, event=event)
    except NotFound:
        log.info("object not found, setting not changed", object=str(override))
    except Invalid as error:
        now = await _find(ctx, override)
        if now is not None and objects.spec(now) == objects.spec(before):
            raise
        raise PreconditionFailed(f"{override} was changed concurrently: {error}") from error
