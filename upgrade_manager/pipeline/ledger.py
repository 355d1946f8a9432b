"""The plan's ledger during a reconcile: phases and the end of a plan read, add and settle entries by these functions.

The caller writes the status before the change that an entry records, and again once entries are settled.
api/ledger.py has the entries; settings/overrides.py the ones of settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api import ledger
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.api.ledger import Entry, LedgerKind
    from upgrade_manager.pipeline.context import ReconcileContext

_FIELDS = ("ledger", "originals")


def entries(ctx: ReconcileContext, *kinds: LedgerKind) -> list[Entry]:
    """Return the entries of the ledger, or those of these kinds."""
    found = ledger.recorded_entries({field: ctx.status[field] for field in (*_FIELDS, "phaseTransitionTimestamps")})
    return ledger.of_kind(found, *kinds) if kinds else found


def put(ctx: ReconcileContext, added: Iterable[Entry]) -> None:
    """Record the entries; an entry of the same id is replaced. `originals` of an earlier version are moved, too."""
    _write(ctx, ledger.merged(entries(ctx), added))


def settle(ctx: ReconcileContext, settled: Iterable[str]) -> None:
    """Remove the entries of these ids."""
    ids = frozenset(settled)
    found = entries(ctx)
    left = [entry for entry in found if entry["id"] not in ids]
    if len(left) < len(found):
        _write(ctx, left)


def now(ctx: ReconcileContext) -> str:
    """Return the time of an entry that is recorded now."""
    return format_time(ctx.now())


def _write(ctx: ReconcileContext, found: list[Entry]) -> None:
    # An empty ledger shows that no record of an earlier version is left to read.
    ctx.status["ledger"] = found
    if ctx.status["originals"] is not None:
        ctx.status["originals"] = None
