"""The end of the overridden settings: they get their originals again, and their entries leave the ledger.

node_upgrade/phase.py calls it after the last node, conclusion.py at any other end, before ending/cleanup.py, and
ending/settlement.py where an earlier version has completed the node upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.events import SETTING_RESTORED
from upgrade_manager.pipeline.plan_objects import skip_missing
from upgrade_manager.pipeline.settings.overrides import OVERRIDES, pending_reverts, report_changed
from upgrade_manager.pipeline.write_log import describe
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Collection

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.settings.overrides import Override


async def give_back(ctx: ReconcileContext, *, keep_strategy: bool, keep_methods: bool = False) -> None:
    """Give the overridden settings back, and remove their entries from the status, which the caller writes.

    Entries of refused or failed writes stay, so that they are retried. Rancher's strategy is kept while it holds nodes,
    KubeVirt's update methods while a Job may write them.
    """
    _report_changed(ctx)
    pending = pending_reverts(ctx, keep_strategy=keep_strategy, keep_methods=keep_methods)
    done: list[Override] = []
    restored: list[Override] = []

    async def revert(override: Override, entry: Entry) -> None:
        if await skip_missing(ctx.client, override.namespace, override.revert(ctx, override, entry)):
            restored.append(override)
        done.append(override)

    try:
        await run_all(*(revert(*pair) for pair in pending))
    except KubeError:
        await _settle(ctx, done, restored)
        raise
    await _settle(ctx, done, restored)


async def _settle(ctx: ReconcileContext, done: Collection[Override], restored: Collection[Override]) -> None:
    report_restored(ctx, restored)
    ledger.settle(ctx, [override.id for override in done])
    if restored:
        # Without their entries, which the caller removes next, the events cannot be recorded again.
        await ctx.events.sent(ctx.raw)


def report_restored(ctx: ReconcileContext, restored: Collection[Override]) -> None:
    """Record events of the settings that have their originals again."""
    for override, entry in pending_reverts(ctx, keep_strategy=False):
        if override in restored and override.changed_by is None:
            old, new = describe(entry.get("applied")), describe(entry.get("original"))
            text = f"{override}: {override.field} restored from {old} to {new}"
            order = OVERRIDES.index(override)
            ctx.events.once(ctx.raw, SETTING_RESTORED, text, about=str((str(override), override.field)), order=order)


def _report_changed(ctx: ReconcileContext) -> None:
    """Record the changes again, because the process that has made them may have died before it wrote its history."""
    entries = ctx.status["phaseTransitionTimestamps"] or []
    reached = {one.get("phase"): parse_time(one.get("phaseTransitionTimestamp")) for one in entries}
    for phase in dict.fromkeys(override.phase for override, _ in pending_reverts(ctx, keep_strategy=False)):
        began = reached.get(phase.active)
        if began is not None:
            report_changed(ctx, phase, began=max(began, ctx.status.attempt_accepted or began))
