"""The settings that the upgrade overrides and later gives back, as a table.

node_upgrade/phase.py applies the overrides, update_methods.py those of the cluster upgrade; giving_back.py ends them.

    1. the original and the value to apply are recorded in status.ledger
    2. the value is applied, if the setting still has its original
    3. the original is given back, if the setting still has the applied value; the entry is removed

Each step is idempotent. A value that another client sets meanwhile is kept, and a refused write is retried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_REPLENISHMENT_INTERVAL,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    KUBE_SYSTEM,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    PROVISIONING_CLUSTER,
    ToolkitKind,
)
from upgrade_manager.api.ledger import STRATEGY_FIELD, LedgerKind, entry_id, new_entry, recorded_entries
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.status import ToolkitImageStatus
from upgrade_manager.facts import update_methods as facts
from upgrade_manager.facts.kubevirt import KUBEVIRT
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid, NotFound
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import (
    ADDONS,
    KUBEVIRTS,
    LONGHORN_SETTINGS,
    MANAGED_CHARTS,
    PROVISIONING_CLUSTERS,
    UPGRADE_PLANS,
)
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.events import SETTING_CHANGED
from upgrade_manager.pipeline.settings import rancher, update_methods, upgrade_strategy
from upgrade_manager.pipeline.write_log import describe
from upgrade_manager.release.migrations import generic
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from datetime import datetime

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.release.migrations.row import Row

#: Seconds that Longhorn waits for a node to return before it rebuilds its replicas elsewhere.
RAISED_INTERVAL = "1800"
#: Longer than any sensible number of seconds, and below Python's limit for int().
_MAX_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A setting that the upgrade changes and gives back."""

    kind: LedgerKind = LedgerKind.SETTING
    resource: Resource
    namespace: str
    name: str
    #: The field's path, such as spec.enabled.
    field: str
    #: Return the original and the value to apply, read from the object; equal values if no change is needed.
    read: Callable[[Object], tuple[Any, Any]]
    #: Apply the entry's value; None if `rancher.start_upgrade` or the toolkit applies it.
    apply: Callable[[ReconcileContext, Override, Entry], Awaitable[None]] | None
    #: Give the entry's original back; return True if the setting has the original afterwards.
    revert: Callable[[ReconcileContext, Override, Entry], Coroutine[Any, Any, bool]]
    #: The phase that changes the setting.
    phase: PhaseName = PhaseName.NODE_UPGRADE
    #: The row of release/migrations that the override carries out; None for what the manager itself needs.
    row: Row | None = None
    #: The toolkit whose Job changes the setting; None if the manager itself does, with either toolkit.
    changed_by: ToolkitKind | None = None

    def __str__(self) -> str:
        """Return kind and name of the object, in the form of the recorded entries."""
        return f"{self.resource.kind} {self.namespace}/{self.name}"

    @property
    def id(self) -> str:
        """The id of the setting's entry."""
        return entry_id(self.kind, self.namespace, self.name, self.field)

    def kept(self, *, now: object, original: object) -> str:
        """Return the sentence about a value that another client has set meanwhile."""
        return (
            f"{self}: {self.field} was set to {now} during the upgrade and keeps that value; it was {original} before"
        )

    def entry(self, ctx: ReconcileContext, *, original: Any, applied: Any) -> Entry:
        """Return the setting's entry."""
        names, since = (self.namespace, self.name, self.field), ledger.now(ctx)
        values = {"original": original, "applied": applied}
        return new_entry(self.kind, *names, object_=str(self), field=self.field, since=since, **values)


async def record_originals(ctx: ReconcileContext, phase: PhaseName = PhaseName.NODE_UPGRADE) -> None:
    """Record the originals of the settings to change, unless recorded; the caller writes the status before `apply`."""
    recorded = [override for override, _ in _by_override(ctx)]
    wanted = [one for one in OVERRIDES if one.phase is phase and one not in recorded and _is_wanted(ctx, one)]
    found: dict[Override, Entry] = {}

    async def read(*overrides: Override) -> None:
        """Read the settings of one object."""
        first = overrides[0]
        current = None
        if first is not STRATEGY:
            current = await ctx.client.find(first.resource, first.name, namespace=first.namespace)
        for override in overrides:
            if override is STRATEGY:
                original, applied = await read_strategy(ctx, await rancher.watched_cluster(ctx))
            else:
                original, applied = override.read(current) if current is not None else (None, None)
            if original != applied:
                found[override] = override.entry(ctx, original=original, applied=applied)

    groups = [[one for one in wanted if str(one) == name] for name in dict.fromkeys(map(str, wanted))]
    await run_all(*(read(*group) for group in groups))
    if found:
        ledger.put(ctx, [found[override] for override in wanted if override in found])


def _is_wanted(ctx: ReconcileContext, override: Override) -> bool:
    """Return False for what this upgrade does not change.

    Rancher does not upgrade a single node, so that its strategy stays.
    """
    if override.changed_by is not None:
        return ToolkitImageStatus.read(ctx.status["toolkitImage"]).kind == override.changed_by
    return override is not STRATEGY or ctx.status["singleNode"] is None


async def apply_overrides(ctx: ReconcileContext, phase: PhaseName = PhaseName.NODE_UPGRADE) -> None:
    """Annotate the plan with the originals, for other tools, then apply the recorded values."""
    entries = of_phase(ctx, phase)
    present = objects.annotations_of(ctx.raw)
    annotations = {_ANNOTATIONS[o]: _text(e.get("original")) for o, e in entries if o in _ANNOTATIONS}
    missing = {key: value for key, value in annotations.items() if key not in present}
    if missing:
        await ctx.annotate(missing)
    for override, entry in entries:
        if override.apply is not None:
            await override.apply(ctx, override, entry)


def report_changed(ctx: ReconcileContext, phase: PhaseName = PhaseName.NODE_UPGRADE, *, began: datetime | None) -> None:
    """Record events of the settings that the manager has changed; an earlier process may have done so since `began`."""
    for override, entry in of_phase(ctx, phase):
        if override.changed_by is not None:
            continue
        old, new = describe(entry.get("original")), describe(entry.get("applied"))
        text = f"{override}: {override.field} changed from {old} to {new} for the upgrade"
        about, order = str((str(override), override.field)), OVERRIDES.index(override)
        ctx.events.once(ctx.raw, SETTING_CHANGED, text, about=about, phase=phase.active, order=order, at=began)


def pending_reverts(
    ctx: ReconcileContext, *, keep_strategy: bool, keep_methods: bool = False
) -> list[tuple[Override, Entry]]:
    """Return the settings to give back, with their entries."""
    kept = {LedgerKind.STRATEGY: keep_strategy, LedgerKind.UPDATE_METHODS: keep_methods}
    return [(one, entry) for one, entry in _by_override(ctx) if not kept.get(one.kind)]


def strategy_entry(ctx: ReconcileContext) -> Entry | None:
    """Return the entry of Rancher's strategy; None if the plan has not recorded it, or has given it back."""
    return dict(_by_override(ctx)).get(STRATEGY)


def refresh_strategy(ctx: ReconcileContext, cluster: Object) -> None:
    """Record the strategy again before the patch, because other clients may have changed it since the last record."""
    original, applied = STRATEGY.read(cluster)
    entry = strategy_entry(ctx)
    if entry is not None and rancher.has_lost_original(cluster):
        original = entry.get("original")
    _record_strategy(ctx, original, applied)


def changed_strategy(ctx: ReconcileContext, cluster: Object) -> Entry | None:
    """Record a strategy from which other clients have removed the hooks; return the entry, None with the hooks."""
    now = rancher.rke_config(cluster).get("upgradeStrategy")
    if upgrade_strategy.holds_nodes(now):
        return None
    old = strategy_entry(ctx) or {}
    original = upgrade_strategy.merge(old.get("original"), old.get("applied"), now)
    return _record_strategy(ctx, original, upgrade_strategy.with_hooks(now))


async def read_strategy(ctx: ReconcileContext, cluster: Object) -> tuple[Any, Any]:
    """Return original and applied strategy; a lost original comes from the newest plan that recorded an original."""
    original, applied = STRATEGY.read(cluster)
    if rancher.has_lost_original(cluster):
        plans = (await ctx.client.list(UPGRADE_PLANS)).items
        plans.sort(key=lambda plan: str(objects.metadata(plan).get("creationTimestamp")))
        for plan in plans:
            for entry in recorded_entries(objects.status(plan)):
                if entry["id"] == STRATEGY.id:
                    original = upgrade_strategy.without_hooks(entry.get("original"))
    return original, applied


def _record_strategy(ctx: ReconcileContext, original: Any, applied: Any) -> Entry:
    """Record the entry of the strategy in place of an earlier entry."""
    entry = STRATEGY.entry(ctx, original=original, applied=applied)
    known = strategy_entry(ctx)
    ledger.put(ctx, [entry if known is None else {**entry, "since": known["since"]}])
    return dict(_by_override(ctx))[STRATEGY]


def _by_override(ctx: ReconcileContext) -> list[tuple[Override, Entry]]:
    entries = {entry["id"]: entry for entry in ledger.entries(ctx)}
    return [(override, entries[override.id]) for override in OVERRIDES if override.id in entries]


def of_phase(ctx: ReconcileContext, phase: PhaseName) -> list[tuple[Override, Entry]]:
    """Return the settings that the phase changes, with their entries."""
    return [(override, entry) for override, entry in _by_override(ctx) if override.phase is phase]


def _text(value: Any) -> str:
    return "true" if value is True else str(value)


def _read_interval(setting: Object) -> tuple[Any, Any]:
    value = setting.get("value")
    if not isinstance(value, str) or not value.isdecimal() or len(value) >= _MAX_DIGITS:
        return value, value
    return value, RAISED_INTERVAL if int(value) < int(RAISED_INTERVAL) else value


def _read_descheduler(addon: Object) -> tuple[Any, Any]:
    enabled = objects.spec(addon).get("enabled")
    return enabled, False if enabled else enabled


async def _apply(ctx: ReconcileContext, override: Override, entry: Entry) -> None:
    await _replace(ctx, override, expected=entry.get("original"), value=entry.get("applied"), event="setting changed")


async def _revert(ctx: ReconcileContext, override: Override, entry: Entry) -> bool:
    """Set the original in place of the applied value; report any other value, which is kept."""
    original = entry.get("original")
    now = await _replace(ctx, override, expected=entry.get("applied"), value=original, event="setting given back")
    if now not in {None, original}:
        text = override.kept(now=now, original=original)
        ctx.events.warning(ctx.raw, "SettingNotRestored", text, about=str(override))
    return bool(now == original)


async def _replace(ctx: ReconcileContext, override: Override, *, expected: Any, value: Any, event: str) -> Any:
    """Replace the expected value in one patch; return the field's value afterwards, None for a missing field.

    A refusal, for example by a webhook, is raised, and the field keeps the expected value.
    """
    path = "/" + override.field.replace(".", "/")
    test, replace = {"op": "test", "path": path, "value": expected}, {"op": "replace", "path": path, "value": value}
    patch = JsonPatch([test, replace])
    try:
        await ctx.patch(override.resource, override.name, patch, namespace=override.namespace, event=event)
    except NotFound:
        return None
    except Invalid:
        now: Any = await ctx.client.find(override.resource, override.name, namespace=override.namespace)
        for name in override.field.split("."):
            now = now.get(name) if isinstance(now, dict) else None
        if now == expected:
            raise
        return now
    return value


STRATEGY = Override(
    kind=LedgerKind.STRATEGY,
    resource=PROVISIONING_CLUSTERS,
    namespace=FLEET_LOCAL,
    name=PROVISIONING_CLUSTER,
    field=STRATEGY_FIELD,
    read=rancher.read_strategy,
    apply=None,
    revert=rancher.revert_strategy,
)
INTERVAL = Override(
    resource=LONGHORN_SETTINGS,
    namespace=LONGHORN_SYSTEM,
    name=LONGHORN_REPLENISHMENT_SETTING,
    field="value",
    read=_read_interval,
    apply=_apply,
    revert=_revert,
)
DESCHEDULER = Override(
    resource=ADDONS,
    namespace=KUBE_SYSTEM,
    name=ADDON_DESCHEDULER,
    field="spec.enabled",
    read=_read_descheduler,
    apply=_apply,
    revert=_revert,
)
METHODS = Override(
    kind=LedgerKind.UPDATE_METHODS,
    resource=MANAGED_CHARTS,
    namespace=FLEET_LOCAL,
    name=facts.CHART,
    field=".".join(("spec", *facts.VALUE_PATH)),
    read=update_methods.read_chart,
    apply=update_methods.empty_chart,
    revert=update_methods.revert_chart,
    phase=PhaseName.CLUSTER_UPGRADE,
    row=generic.UPDATE_METHODS,
)
#: Harvester's toolkit may write the next two beside the chart's value, as Harvester's own upgrade to v1.8.0 does.
COMPARED = Override(
    kind=LedgerKind.UPDATE_METHODS,
    resource=MANAGED_CHARTS,
    namespace=FLEET_LOCAL,
    name=facts.CHART,
    field="spec.diff.comparePatches",
    read=update_methods.read_compared,
    apply=None,
    revert=update_methods.revert_compared,
    phase=PhaseName.CLUSTER_UPGRADE,
    row=generic.UPDATE_METHODS,
    changed_by=ToolkitKind.HARVESTER,
)
DEPLOYED_METHODS = Override(
    kind=LedgerKind.UPDATE_METHODS,
    resource=KUBEVIRTS,
    namespace=HARVESTER_SYSTEM,
    name=KUBEVIRT,
    field=".".join(("spec", *facts.PATH)),
    read=update_methods.read_kubevirt,
    apply=None,
    revert=update_methods.revert_kubevirt,
    phase=PhaseName.CLUSTER_UPGRADE,
    row=generic.UPDATE_METHODS,
    changed_by=ToolkitKind.HARVESTER,
)
OVERRIDES = (STRATEGY, INTERVAL, DESCHEDULER, METHODS, COMPARED, DEPLOYED_METHODS)
_ANNOTATIONS = {INTERVAL: ANNOTATION_REPLENISHMENT_INTERVAL, DESCHEDULER: ANNOTATION_DESCHEDULER_WAS_ENABLED}
