"""Settings of others that a node upgrade changes for its time, and puts back: Longhorn's patience, the descheduler.

The value found is noted on the plan before the change is made. Putting back is done only where the value is still
ours: what someone else has set meanwhile stays, and is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_REPLENISHMENT_INTERVAL,
    KUBE_SYSTEM,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid, NotFound
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS
from upgrade_manager.pipeline.absence import where_present
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds for which Longhorn waits for a node to come back before it rebuilds its replicas elsewhere.
RAISED_INTERVAL = "1800"
#: Digits that Python reads without complaint, and more than any number of seconds has.
_DIGITS = 20


async def originals(ctx: ReconcileContext) -> dict[str, str]:
    """What is to be noted: the values that `change` is going to change."""
    notes: dict[str, str] = {}
    await run_all(_note_interval(ctx, notes), _note_descheduler(ctx, notes))
    return notes


async def _note_interval(ctx: ReconcileContext, notes: dict[str, str]) -> None:
    setting = await ctx.find(LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, namespace=LONGHORN_SYSTEM)
    if setting is not None and _lower(setting.get("value", "")):
        notes[ANNOTATION_REPLENISHMENT_INTERVAL] = setting["value"]


async def _note_descheduler(ctx: ReconcileContext, notes: dict[str, str]) -> None:
    addon = await ctx.find(ADDONS, ADDON_DESCHEDULER, namespace=KUBE_SYSTEM)
    if addon is not None and objects.spec(addon).get("enabled"):
        notes[ANNOTATION_DESCHEDULER_WAS_ENABLED] = "true"


async def change(ctx: ReconcileContext) -> None:
    """Change what is noted, and nothing else; what has another value than the noted one somebody has changed since."""
    notes = ctx.plan.annotations
    if notes.replenishment_interval is not None:
        await _swap(ctx, _INTERVAL, expected=notes.replenishment_interval, value=RAISED_INTERVAL)
    if notes.descheduler_was_enabled:
        await _swap(ctx, _DESCHEDULER, expected=True, value=False)


async def restore(ctx: ReconcileContext) -> None:
    """Put back what was noted, where it still has the value that we gave it."""
    notes = ctx.plan.annotations
    steps = []
    if notes.replenishment_interval is not None and _lower(notes.replenishment_interval):
        interval = _restore_interval(ctx, notes.replenishment_interval)
        steps.append(where_present(ctx, LONGHORN_SYSTEM, interval))
    if notes.descheduler_was_enabled:
        descheduler = _swap(ctx, _DESCHEDULER, expected=False, value=True)
        steps.append(where_present(ctx, KUBE_SYSTEM, descheduler))
    await run_all(*steps)


async def _restore_interval(ctx: ReconcileContext, original: str) -> bool:
    if await _swap(ctx, _INTERVAL, expected=RAISED_INTERVAL, value=original):
        return True
    setting = await ctx.find(LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, namespace=LONGHORN_SYSTEM)
    value = (setting or {}).get("value", original)
    if value != original:
        text = (
            f"Setting {LONGHORN_SYSTEM}/{LONGHORN_REPLENISHMENT_SETTING} was changed to {value} during the upgrade "
            f"and stays so; it was {original} before"
        )
        ctx.events.warning(ctx.raw, "SettingNotRestored", text)
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A value of someone else's object."""

    resource: Resource
    namespace: str
    name: str
    path: str


_INTERVAL = _Field(
    resource=LONGHORN_SETTINGS, namespace=LONGHORN_SYSTEM, name=LONGHORN_REPLENISHMENT_SETTING, path="/value"
)
_DESCHEDULER = _Field(resource=ADDONS, namespace=KUBE_SYSTEM, name=ADDON_DESCHEDULER, path="/spec/enabled")


async def _swap(ctx: ReconcileContext, place: _Field, *, expected: str | bool, value: str | bool) -> bool:
    """Replace the expected value, in one step; whether it was there, or is of no interest any more."""
    test = {"op": "test", "path": place.path, "value": expected}
    replace = {"op": "replace", "path": place.path, "value": value}
    try:
        await ctx.patch(place.resource, place.name, JsonPatch([test, replace]), namespace=place.namespace)
    except NotFound:
        return True
    except Invalid:
        return False
    return True


def _lower(value: str) -> bool:
    """Whether the interval is below ours; one that is no number, or one beyond all measure, is left alone."""
    return value.isdecimal() and len(value) < _DIGITS and int(value) < int(RAISED_INTERVAL)
