"""The ledger at the end of a plan: the entries that nothing settles any more are named, and then removed.

reconciler.py calls it in the reconcile that ends the plan; settings/overrides.py gives settings back before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.settings import overrides
from upgrade_manager.pipeline.settings.earlier_records import is_unrecorded
from upgrade_manager.pipeline.write_log import describe

if TYPE_CHECKING:
    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import Waiting


async def settle(ctx: ReconcileContext) -> Waiting | None:
    """Settle what can be settled before the success; return the wait for what is left.

    Settings are left where an earlier version, which gave them back later, has completed the node upgrade.
    """
    if overrides.pending_reverts(ctx, keep_strategy=False):
        await overrides.give_back(ctx, keep_strategy=False)
        await ctx.persist()
    return None


def name_unrecorded(ctx: ReconcileContext) -> str:
    """Name the settings without a recorded original in events; remove their entries, and return the sentences.

    The caller adds the sentences to the final condition, and writes the status.
    """
    found = [entry for entry in ledger.entries(ctx, LedgerKind.SETTING) if is_unrecorded(entry)]
    for entry in found:
        ctx.events.warning(ctx.raw, "SettingNotRestored", _unrecorded(entry), about=entry["id"])
    ledger.settle(ctx, [entry["id"] for entry in found])
    return ". ".join(_unrecorded(entry) for entry in found)


def _unrecorded(entry: Entry) -> str:
    value, field = describe(entry.get("applied")), entry.get("field")
    return (
        f"{entry['object']}: {field} is {value}, as an upgrade sets it, and no record has its value before. Set it to "
        "the value that you want"
    )
