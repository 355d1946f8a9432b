"""The report as a function of plan, events, nodes and time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.display.test_view import HOSTILE
from tests.support.managers.displayed import NOW, event, plan
from tests.support.managers.reported import failed, node, succeeded
from upgrade_manager.api import past_blockers
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import MAX_PAST, SETTING_EVENTS, report
from upgrade_manager.pipeline.events import SETTING_CHANGED, SETTING_RESTORED


def test_node_took_the_time_of_its_steps() -> None:
    first, second, _ = succeeded().nodes
    assert (first.took, second.took) == (1690, 1850)
    assert (second.os, second.kubernetes, second.is_upgraded) == ("Harvester v1.8.0", "v1.35.4+rke2r1", True)


@pytest.mark.rule("report: spec and annotations are shown")
def test_spec_and_annotations_are_those_of_the_user() -> None:
    shown = succeeded()
    fields = {"version": "v1.8.0", "restoreVM": "true", "nodeUpgradeOption.pauseNodes": '["node-2"]'}
    assert dict(shown.spec) == fields
    assert shown.annotations == (("management.harvesterhci.io/allow-deletion", "true"),)


@pytest.mark.parametrize(("count", "is_said"), [(MAX_PAST - 1, False), (MAX_PAST, True)])
def test_full_list_of_past_blockers_is_said(count: int, *, is_said: bool) -> None:
    assert MAX_PAST == past_blockers.MAX_PAST
    shown = report(plan(pastBlockers=[{}] * count), [], [], [], now=NOW)
    assert any("shorter ones may be missing" in gap for gap in shown.gaps) is is_said


@pytest.mark.parametrize("length", [900, 5000])
def test_long_cause_is_shown_whole(length: int) -> None:
    message = "x" * length
    failure = {"type": "Progressing", "status": "False", "message": message}
    shown = report(plan(currentPhase="Failed", conditions=[failure]), [], [], [], now=NOW)
    assert message in {shown.view.cause, shown.whole_cause}


def test_long_value_of_a_setting_is_shown_whole() -> None:
    entry = {"object": "Setting a/b", "field": "value", "original": "x" * 5000}
    (held,) = report(plan(originals=[entry]), [], [], [], now=NOW).held_settings
    assert held.original == "x" * 5000


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
    fields |= {"pastBlockers": [value, {"since": value, "until": value}], "nextSteps": [value]}
    nodes = [{"metadata": value, "status": value}, node("a", ready=0), {"status": {"conditions": value}}]
    events = [event("Odd", "x", count=value, lastTimestamp=value), {"metadata": value}]
    for one in (plan(**fields), {"metadata": value, "spec": value, "status": value}):
        assert "<html" in to_html(report(one, events, nodes, [], now=NOW))


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_times_far_away_have_a_page(year: str) -> None:
    times = [{"phase": "Initializing", "phaseTransitionTimestamp": f"{year}-01-01T00:00:00Z"}]
    assert "<html" in to_html(report(plan(phaseTransitionTimestamps=times), [], [], [], now=NOW))
