"""Settings of others: recorded, changed and reverted, again after every crash."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from hack.apiserver.crds import CRDS
from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.history import Row, rows_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import event_digest
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden, Invalid
from upgrade_manager.kube.resources import ADDONS, CONFIG_MAPS, LONGHORN_SETTINGS, Resource
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.events import PlanEvents
from upgrade_manager.pipeline.history import History
from upgrade_manager.pipeline.settings import overrides
from upgrade_manager.pipeline.settings.giving_back import give_back, report_restored

INTERVAL = "management.harvesterhci.io/replica-replenishment-wait-interval"
DESCHEDULER = "management.harvesterhci.io/descheduler-was-enabled"
BOTH = [INTERVAL, DESCHEDULER]
SINCE = "2026-01-01T00:00:00Z"


async def settings(cluster: Harvester, *, value: str | None = "600", enabled: bool | None = True) -> None:
    if value is not None:
        metadata = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
        await cluster.put(LONGHORN_SETTINGS, {"metadata": metadata, "value": value})
    if enabled is not None:
        metadata = {"name": "descheduler", "namespace": "kube-system"}
        spec = {"enabled": enabled, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
        await cluster.put(ADDONS, {"metadata": metadata, "spec": spec})


async def now(cluster: Harvester) -> tuple[Any, Any]:
    setting = await cluster.find(LONGHORN_SETTINGS, "replica-replenishment-wait-interval", "longhorn-system")
    addon = await cluster.find(ADDONS, "descheduler", "kube-system")
    return setting and setting["value"], addon and addon["spec"]["enabled"]


ENTRIES: dict[str, dict[str, Any]] = {
    INTERVAL: {
        "id": "Setting.longhorn-system.replica-replenishment-wait-interval.value",
        "kind": "Setting",
        "object": "Setting longhorn-system/replica-replenishment-wait-interval",
        "field": "value",
        "original": "600",
        "applied": "1800",
        "since": SINCE,
    },
    DESCHEDULER: {
        "id": "Setting.kube-system.descheduler.spec.enabled",
        "kind": "Setting",
        "object": "Addon kube-system/descheduler",
        "field": "spec.enabled",
        "original": True,
        "applied": False,
        "since": SINCE,
    },
}


async def rows_in(cluster: Harvester) -> list[Row]:
    """Return the rows of the history that is written."""
    return rows_of(objects.mapping(await cluster.find(CONFIG_MAPS, "up-history", HARVESTER_SYSTEM), "data"))


async def history_of(cluster: Harvester) -> list[str]:
    return [row.reason for row in await rows_in(cluster)]


def with_history(cluster: Harvester, ctx: ReconcileContext) -> ReconcileContext:
    """Let the history of the plan be written."""
    history = History(cluster.client, now=virtual_now)
    return replace(ctx, events=PlanEvents(cluster.recorder, now=virtual_now, history=history))


async def recorded(cluster: Harvester, *names: str) -> ReconcileContext:
    """Create a plan with these entries."""
    return cluster.context(await cluster.plan(status={"ledger": [ENTRIES[name] for name in names]}))


def single_node(ctx: ReconcileContext) -> ReconcileContext:
    """Let Rancher's cluster alone: tests/pipeline/settings/test_rancher.py."""
    ctx.status["singleNode"] = "n1"
    return ctx


@pytest.mark.rule(
    "api: replica-replenishment-wait-interval on the plan is Longhorn's original value",
    'api: descheduler-was-enabled on the plan is "true" if the addon was enabled',
    "nodes: the interval's original value is recorded on the plan",
    "nodes: an interval of 1800 or more is unchanged",
    "nodes: a non-numeric interval is unchanged",
    "nodes: the plan records that the descheduler was enabled, and nothing otherwise",
    "nodes: setting and addon may be absent",
)
@pytest.mark.parametrize(
    ("value", "enabled", "annotations"),
    [
        pytest.param("600", True, {INTERVAL: "600", DESCHEDULER: "true"}, id="both change"),
        pytest.param("0", True, {INTERVAL: "0", DESCHEDULER: "true"}, id="zero is a value"),
        pytest.param("1800", False, {}, id="our values already"),
        pytest.param("3600", None, {}, id="larger value"),
        pytest.param("soon", False, {}, id="not a number"),
        pytest.param('{"v1":"600"}', False, {}, id="JSON"),
        pytest.param("-1", False, {}, id="negative"),
        pytest.param("9" * 5000, False, {}, id="more digits than Python parses"),
        pytest.param(None, None, {}, id="neither exists"),
    ],
)
async def test_originals_are_recorded(
    cluster: Harvester, value: str | None, annotations: dict[str, str], *, enabled: bool | None
) -> None:
    await settings(cluster, value=value, enabled=enabled)
    ctx = single_node(cluster.context(await cluster.plan()))
    await overrides.record_originals(ctx)
    assert {e["object"]: e["original"] for e in ctx.status["ledger"] or []} == {
        ENTRIES[name]["object"]: value if name == INTERVAL else True for name in annotations
    }
    await overrides.apply_overrides(ctx)
    assert objects.annotations_of(ctx.raw) == annotations


@pytest.mark.rule(
    "nodes: Longhorn's replica-replenishment-wait-interval is raised to 1800",
    "nodes: an interval of 1800 or more is unchanged",
    "nodes: the descheduler addon is disabled if it was enabled",
    "nodes: setting and addon may be absent",
    "nodes: a crash neither loses an original value nor records the override as one",
)
@pytest.mark.parametrize(
    ("value", "enabled", "names", "after"),
    [
        pytest.param("600", True, BOTH, ("1800", False), id="both recorded"),
        pytest.param("600", True, [INTERVAL], ("1800", True), id="interval recorded"),
        pytest.param("600", True, [DESCHEDULER], ("600", False), id="descheduler recorded"),
        pytest.param("600", True, [], ("600", True), id="nothing recorded"),
        pytest.param("3600", True, BOTH, ("3600", False), id="raised by a user"),
        pytest.param("300", True, BOTH, ("300", False), id="lowered by a user"),
        pytest.param("1800", False, BOTH, ("1800", False), id="changed before a crash"),
        pytest.param(None, None, BOTH, (None, None), id="deleted"),
    ],
)
async def test_settings_that_still_have_the_recorded_value_change(
    cluster: Harvester, value: str | None, names: list[str], after: Any, *, enabled: bool | None
) -> None:
    await settings(cluster, value=value, enabled=enabled)
    ctx = await recorded(cluster, *names)
    for _ in range(2):
        await overrides.apply_overrides(ctx)
    assert await now(cluster) == after


@pytest.mark.parametrize("ledger", [None, [], "x", [7], [{}], [{"object": "x", "field": "y"}]])
async def test_missing_or_invalid_record_is_not_restored(cluster: Harvester, ledger: Any) -> None:
    await settings(cluster, value="1800", enabled=False)
    ctx = cluster.context(await cluster.plan())
    ctx.status["ledger"] = ledger
    await give_back(ctx, keep_strategy=False)
    assert await now(cluster) == ("1800", False)
    assert cluster.recorder.recorded == []


@pytest.mark.rule(
    "pipeline: Longhorn's replenishment interval is restored",
    "pipeline: the descheduler is restored",
    "pipeline: missing objects do not block deletion",
)
@pytest.mark.parametrize(
    ("value", "enabled", "after", "events"),
    [
        pytest.param("1800", False, ("600", True), 2, id="our values"),
        pytest.param("600", True, ("600", True), 2, id="reverted already"),
        pytest.param("900", False, ("900", True), 2, id="set by a user"),
        pytest.param("soon", False, ("soon", True), 2, id="set to text"),
        pytest.param('{"v1":"600"}', False, ('{"v1":"600"}', True), 2, id="set to JSON"),
        pytest.param(None, None, (None, None), 0, id="both deleted"),
    ],
)
async def test_our_values_are_reverted(
    cluster: Harvester, value: str | None, after: tuple[Any, Any], events: int, *, enabled: bool | None
) -> None:
    await settings(cluster, value=value, enabled=enabled)
    ctx = await recorded(cluster, *BOTH)
    for _ in range(2):
        ctx.status["ledger"] = [ENTRIES[name] for name in BOTH]
        await give_back(ctx, keep_strategy=False)
        assert ctx.status["ledger"] == []
    assert await now(cluster) == after
    assert len(set(cluster.recorder.names)) == events
    warned = event_digest(ctx.owner.uid, f"SettingNotRestored/{ENTRIES[INTERVAL]['object']}")
    pairs = zip(cluster.recorder.recorded, cluster.recorder.names, strict=True)
    assert all(name.endswith(warned) for (reason, _), name in pairs if reason == "SettingNotRestored")


@pytest.mark.rule("nodes: the kinds of setting and addon may be absent")
async def test_kinds_that_are_not_installed_are_skipped(cluster: Harvester) -> None:
    for name in ("settings.longhorn.io", "addons.harvesterhci.io"):
        await cluster.client.delete(CRDS, name)
    ctx = single_node(cluster.context(await cluster.plan()))
    await overrides.record_originals(ctx)
    assert not ctx.status["ledger"]
    ctx.status["ledger"] = [ENTRIES[name] for name in BOTH]
    await give_back(ctx, keep_strategy=False)


@pytest.mark.rule("nodes: a refusal is not a difference of values: it is raised and the record stays")
@pytest.mark.parametrize("error", [Invalid("refused"), Forbidden("refused")], ids=["400 or 422", "403"])
async def test_refused_write_is_raised_and_stays_recorded(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await settings(cluster, value="1800", enabled=False)
    ctx, patch = with_history(cluster, await recorded(cluster, *BOTH)), ReconcileContext.patch

    async def refuse(ctx: ReconcileContext, resource: Resource, *args: Any, **more: Any) -> None:
        if resource == ADDONS:
            raise error
        await patch(ctx, resource, *args, **more)

    monkeypatch.setattr(ReconcileContext, "patch", refuse)
    with pytest.raises(type(error), match="refused"):
        await give_back(ctx, keep_strategy=False)
    assert ctx.status["ledger"] == [ENTRIES[DESCHEDULER]]
    assert await now(cluster) == ("600", False)
    assert [reason for reason, _ in cluster.recorder.recorded] == ["SettingRestored"]
    # The caller writes the ledger without the entry, from which no process reads the row again.
    assert await history_of(cluster) == ["SettingRestored"]


SHOWN = [
    'Setting longhorn-system/replica-replenishment-wait-interval: value {} from "{}" to "{}"',
    "Addon kube-system/descheduler: spec.enabled {} from {} to {}",
]


def places(cluster: Harvester) -> list[str]:
    """Return the digit of each event's name by which kubectl sorts the plan's events of one second."""
    assert all(name.startswith("up.") for name in cluster.recorder.names)
    return [name.rpartition(".")[2].partition("-")[0][-1] for name in cluster.recorder.names]


@pytest.mark.parametrize(("minutes", "events"), [(0, 2), (60, 0)], ids=["now", "before the API server's retention"])
async def test_changes_are_reported_once_in_order(cluster: Harvester, minutes: int, events: int) -> None:
    ctx = await recorded(cluster, *BOTH)
    for _ in range(2):
        overrides.report_changed(ctx, began=virtual_now() - timedelta(minutes=minutes))
    texts = [SHOWN[0].format("changed", 600, 1800), SHOWN[1].format("changed", "true", "false")]
    assert cluster.recorder.recorded == [("SettingChanged", f"{text} for the upgrade") for text in texts][:events]
    assert places(cluster) == ["1", "2"][:events]


@pytest.mark.rule("pipeline: settings changed and given back are events with old and new value, once after any crash")
@pytest.mark.parametrize(
    ("phase", "attempts", "changed"),
    [
        pytest.param("NodeUpgraded", [], SINCE, id="first attempt"),
        pytest.param("Failed", ["2025-12-31T00:00:00Z", "2026-01-01T00:10:00Z"], "2026-01-01T00:10:00Z", id="second"),
        pytest.param("", [], "", id="phase not reached"),
    ],
)
async def test_change_of_a_dead_process_is_reported_before_its_end(
    cluster: Harvester, phase: str, attempts: list[str], changed: str
) -> None:
    await settings(cluster, value="1800", enabled=False)
    ctx = with_history(cluster, await recorded(cluster, INTERVAL))
    reached = ["NodeUpgrading", phase] if phase else []
    ctx.status["phaseTransitionTimestamps"] = [{"phase": value, "phaseTransitionTimestamp": SINCE} for value in reached]
    ctx.status["attempt"] = len(attempts) or None
    ctx.status["attempts"] = [{"attempt": number, "begin": at} for number, at in enumerate(attempts, 1)] or None
    await ctx.persist()
    await give_back(ctx, keep_strategy=False)
    rows = await rows_in(cluster)
    assert [format_time(row.first) for row in rows if row.reason == "SettingChanged"] == ([changed] if changed else [])
    assert [row.reason for row in rows].count("SettingRestored") == 1


async def test_restored_settings_are_reported_in_order(cluster: Harvester) -> None:
    ctx = await recorded(cluster, *BOTH)
    report_restored(ctx, [overrides.DESCHEDULER, overrides.INTERVAL])
    texts = [SHOWN[0].format("restored", 1800, 600), SHOWN[1].format("restored", "false", "true")]
    assert cluster.recorder.recorded == [("SettingRestored", text) for text in texts]
    assert places(cluster) == ["1", "2"]


async def test_log_names_the_purpose_of_each_write(cluster: Harvester) -> None:
    await settings(cluster)
    ctx = await recorded(cluster, *BOTH)
    with capture_logs() as logs:
        await overrides.apply_overrides(ctx)
        await give_back(ctx, keep_strategy=False)
    written = Counter(log["event"] for log in logs if log.get("kind") in {"Setting", "Addon"})
    assert written == {"setting changed": 2, "setting given back": 2}
