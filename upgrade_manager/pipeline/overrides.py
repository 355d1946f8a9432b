"""The settings that the node upgrade overrides and later reverts, as a table.

The original is recorded once on the plan before the change, so that no crash loses it. A setting is reverted only if it
still has the manager's value; a value that was set meanwhile is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_REPLENISHMENT_INTERVAL,
    FLEET_LOCAL,
    KUBE_SYSTEM,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    PROVISIONING_CLUSTER,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid, NotFound
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS, PROVISIONING_CLUSTERS
from upgrade_manager.nodes import machine_plan
from upgrade_manager.pipeline import rancher
from upgrade_manager.pipeline.selections import MACHINE_PLANS
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds that Longhorn waits for a node to return before it rebuilds its replicas elsewhere.
RAISED_INTERVAL = "1800"
#: Longer than any sensible number of seconds, and below Python's limit for int().
_MAX_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A setting that the upgrade changes and reverts."""

    name: str
    namespace: str
    #: Return the annotations that record the original; none if the setting needs no change.
    read: Callable[[ReconcileContext], Awaitable[dict[str, str]]]
    #: Change the setting if it still has the recorded original; None if `rancher.start_upgrade` changes it.
    apply: Callable[[ReconcileContext], Awaitable[None]] | None
    #: Set the recorded original, if the setting still has the manager's value.
    revert: Callable[[ReconcileContext], Coroutine[Any, Any, None]]


async def record_originals(ctx: ReconcileContext) -> None:
    """Record the settings' originals on the plan, unless they are recorded; the settings are read concurrently."""
    found: dict[str, str] = {}

    async def read(override: Override) -> None:
        found.update(await override.read(ctx))

    await run_all(*(read(override) for override in OVERRIDES))
    present = objects.annotations_of(ctx.raw)
    missing = {key: value for key, value in found.items() if key not in present}
    if missing:
        await ctx.annotate(missing)


async def apply_overrides(ctx: ReconcileContext) -> None:
    """Change the settings whose originals are recorded."""
    for override in OVERRIDES:
        if override.apply is not None:
            await override.apply(ctx)


async def _read_interval(ctx: ReconcileContext) -> dict[str, str]:
    setting = await ctx.find(LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, namespace=LONGHORN_SYSTEM)
    if setting is None or not _is_lower(setting.get("value", "")):
        return {}
    return {ANNOTATION_REPLENISHMENT_INTERVAL: setting["value"]}


async def _raise_interval(ctx: ReconcileContext) -> None:
    original = ctx.plan.annotations.replenishment_interval
    if original is not None:
        await _replace(ctx, _INTERVAL, expected=original, value=RAISED_INTERVAL)


async def _revert_interval(ctx: ReconcileContext) -> None:
    original = ctx.plan.annotations.replenishment_interval
    if original is None or not _is_lower(original):
        return
    if await _replace(ctx, _INTERVAL, expected=RAISED_INTERVAL, value=original):
        return
    setting = await ctx.find(LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, namespace=LONGHORN_SYSTEM)
    value = (setting or {}).get("value", original)
    if value != original:
        name = LONGHORN_REPLENISHMENT_SETTING
        text = (
            f"Setting {LONGHORN_SYSTEM}/{name}: {value}, set during the upgrade, is kept. "
            f"To restore {original}: kubectl edit -n {LONGHORN_SYSTEM} settings.longhorn.io {name}"
        )
        ctx.events.warning(ctx.raw, "SettingNotRestored", text)


def _is_lower(value: str) -> bool:
    """Return True for a number of seconds below RAISED_INTERVAL."""
    return value.isdecimal() and len(value) < _MAX_DIGITS and int(value) < int(RAISED_INTERVAL)


async def _read_descheduler(ctx: ReconcileContext) -> dict[str, str]:
    addon = await ctx.find(ADDONS, ADDON_DESCHEDULER, namespace=KUBE_SYSTEM)
    enabled = addon is not None and objects.spec(addon).get("enabled")
    return {ANNOTATION_DESCHEDULER_WAS_ENABLED: "true"} if enabled else {}


async def _disable_descheduler(ctx: ReconcileContext) -> None:
    if ctx.plan.annotations.descheduler_was_enabled:
        await _replace(ctx, _DESCHEDULER, expected=True, value=False)


async def _revert_descheduler(ctx: ReconcileContext) -> None:
    if ctx.plan.annotations.descheduler_was_enabled:
        await _replace(ctx, _DESCHEDULER, expected=False, value=True)


async def _read_strategy(ctx: ReconcileContext) -> dict[str, str]:
    """Return nothing for a single node, which Rancher does not upgrade."""
    if ctx.status["singleNode"] is not None:
        return {}
    await run_all(rancher.read_cluster(ctx), ctx.watch(MACHINE_PLANS))
    stale = machine_plan.with_hooks((await ctx.watch(MACHINE_PLANS)).list())
    return rancher.record_cluster(await rancher.read_cluster(ctx), stale=stale)


async def _revert_strategy(ctx: ReconcileContext) -> None:
    recorded = rancher.recorded_cluster(ctx)
    if not recorded:
        return
    cluster = await ctx.find(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if cluster is None or not rancher.has_hooks(cluster):
        return
    # The original may have hooks of an earlier upgrade, which would never be acknowledged.
    original = rancher.without_hooks(recorded.get("upgradeStrategy"))
    await rancher.patch_rke_config(ctx, cluster, {"upgradeStrategy": original})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A field of an object."""

    resource: Resource
    namespace: str
    name: str
    path: str


_INTERVAL = _Field(
    resource=LONGHORN_SETTINGS, namespace=LONGHORN_SYSTEM, name=LONGHORN_REPLENISHMENT_SETTING, path="/value"
)
_DESCHEDULER = _Field(resource=ADDONS, namespace=KUBE_SYSTEM, name=ADDON_DESCHEDULER, path="/spec/enabled")


async def _replace(ctx: ReconcileContext, field: _Field, *, expected: str | bool, value: str | bool) -> bool:
    """Replace the expected value in one patch; False if the field has another value."""
    test = {"op": "test", "path": field.path, "value": expected}
    replace = {"op": "replace", "path": field.path, "value": value}
    try:
        await ctx.patch(field.resource, field.name, JsonPatch([test, replace]), namespace=field.namespace)
    except NotFound:
        return True
    except Invalid:
        return False
    return True


OVERRIDES = (
    Override(
        name="Rancher's upgradeStrategy",
        namespace=FLEET_LOCAL,
        read=_read_strategy,
        apply=None,
        revert=_revert_strategy,
    ),
    Override(
        name="Longhorn's replica-replenishment-wait-interval",
        namespace=LONGHORN_SYSTEM,
        read=_read_interval,
        apply=_raise_interval,
        revert=_revert_interval,
    ),
    Override(
        name="addon descheduler",
        namespace=KUBE_SYSTEM,
        read=_read_descheduler,
        apply=_disable_descheduler,
        revert=_revert_descheduler,
    ),
)
