"""The report as a function of plan, events, nodes and time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.display.test_view import HOSTILE
from tests.support.managers.displayed import NOW, START, event, plan
from tests.support.managers.reported import failed, node, succeeded
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import SETTING_EVENTS, report
from upgrade_manager.pipeline.events import SETTING_CHANGED, SETTING_RESTORED


def test_durations_of_a_node_are_those_of_its_steps() -> None:
    first, second, _ = succeeded().nodes
    assert [second.seconds(kind) for kind in ("draining", "upgrading", "rebooting", "paused")] == [700, 700, 450, None]
    assert (second.begun, second.ended) == (START + timedelta(seconds=6600), START + timedelta(seconds=8450))
    assert (first.begun, first.ended) == (None, START + timedelta(seconds=6590))
    assert (second.os, second.kubernetes, second.is_upgraded) == ("Harvester v1.8.0", "v1.35.4+rke2r1", True)


@pytest.mark.rule("report: settings that are changed, and those given back, are shown with their values")
def test_settings_are_shown_with_their_values() -> None:
    (held,) = failed().held_settings
    assert (held.object, held.original, held.applied) == ("Cluster fleet-local/local", "not set", '{"a": "1"}')
    (restored,) = succeeded().setting_events
    assert restored.reason == SETTING_RESTORED
    assert {SETTING_CHANGED, SETTING_RESTORED} <= SETTING_EVENTS


@pytest.mark.rule("report: objects of any content have a page")
@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_invalid_objects_have_a_page(value: Any) -> None:
    fields = {"originals": value, "releaseMetadata": value, "nodeUpgradeStatuses": {"a": value}, "blockers": [value]}
    nodes = [{"metadata": value, "status": value}, node("a", ready=0), {"status": {"conditions": value}}]
    events = [event("Odd", "x", count=value, lastTimestamp=value), {"metadata": value}]
    for one in (plan(**fields), {"metadata": value, "spec": value, "status": value}):
        assert "<html" in to_html(report(one, events, nodes, [], now=NOW))


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_times_far_away_have_a_page(year: str) -> None:
    times = [{"phase": "Initializing", "phaseTransitionTimestamp": f"{year}-01-01T00:00:00Z"}]
    assert "<html" in to_html(report(plan(phaseTransitionTimestamps=times), [], [], [], now=NOW))
