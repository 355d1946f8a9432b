"""The ledger during a reconcile."""

from __future__ import annotations

from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.pipeline import ledger

SINCE = "2026-01-01T00:00:00Z"
TAINT = new_entry(LedgerKind.TAINT, "n1", object_="Node n1", since=SINCE)
LEFT = new_entry(LedgerKind.NODE_LEFT, "n2", object_="Node n2", since=SINCE)
ORIGINAL = {"object": "Setting a/b", "field": "value", "original": "600", "applied": "1800"}


async def test_entries_are_recorded_and_settled(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan())
    ledger.put(ctx, [TAINT, LEFT])
    assert ctx.status["ledger"] == ledger.entries(ctx) == [TAINT, LEFT]
    assert ledger.entries(ctx, LedgerKind.NODE_LEFT) == [LEFT]
    ledger.settle(ctx, ["other"])
    ledger.settle(ctx, [TAINT["id"]])
    assert ctx.status["ledger"] == [LEFT]
    ledger.settle(ctx, [LEFT["id"]])
    assert ctx.status["ledger"] == []


async def test_originals_of_version_0_1_are_moved(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"originals": [ORIGINAL]}))
    ledger.put(ctx, [])
    await ctx.persist()
    moved = {**ORIGINAL, "id": "Setting.a.b.value", "kind": "Setting", "since": "1970-01-01T00:00:00Z"}
    assert (ctx.raw["status"]["ledger"], "originals" in ctx.raw["status"]) == ([moved], False)
    ledger.put(ctx, [])
    assert not await ctx.persist()


async def test_settled_original_of_version_0_1_is_removed(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"originals": [ORIGINAL]}))
    ledger.settle(ctx, ["Setting.a.b.value"])
    assert (ctx.status["ledger"], ctx.status["originals"]) == ([], None)
