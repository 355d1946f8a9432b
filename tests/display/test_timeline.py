"""The bars of phases and nodes over time."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.managers.displayed import START
from tests.support.managers.reported import running, steps, succeeded, upgraded
from upgrade_manager.display.report import Report
from upgrade_manager.display.timeline import ticks


def bars(report: Report, name: str) -> list[tuple[str, int, int, bool]]:
    """Return kind, begin, end and openness of a row's bars, in seconds from the start."""
    assert report.timeline is not None
    (row,) = [one for one in (*report.timeline.phases, *report.timeline.nodes) if one.name == name]
    return [
        (span.kind, int((span.begun - START).total_seconds()), int((span.ended - START).total_seconds()), span.is_open)
        for span in row.spans
    ]


@pytest.mark.rule("report: each phase and each step of a node is a bar from its begin to its end")
def test_steps_of_a_node_are_bars_up_to_the_next_one() -> None:
    report = succeeded()
    assert bars(report, "NodeUpgrade") == [("done", 4900, 10500, False)]
    assert bars(report, "node-1") == [
        ("draining", 6600, 7300, False),
        ("upgrading", 7300, 8000, False),
        ("rebooting", 8000, 8450, False),
    ]


@pytest.mark.rule("report: where events have expired, the Node's condition Ready shows when its upgrade ended")
def test_end_of_a_node_without_events_is_its_return() -> None:
    assert bars(succeeded(), "node-0") == [("unrecorded", 4900, 6590, False)]


def since_7000(**milestones: int) -> list[dict[str, Any]]:
    """Return the events of node-1, by seconds after its begin."""
    return steps("node-1", begin=7000, **milestones)


@pytest.mark.parametrize(
    ("state", "events", "expected"),
    [
        pytest.param("ImagePreloaded", [], [], id="not begun"),
        pytest.param("PreDraining", since_7000(NodeDraining=0), [("draining", 7000, 7500, True)], id="running"),
        pytest.param("UpgradePaused", since_7000(NodePaused=0), [("paused", 7000, 7500, True)], id="paused"),
        pytest.param(
            "PreDraining",
            since_7000(NodePaused=0, NodeResumed=90, NodeDraining=100),
            [("paused", 7000, 7090, False), ("draining", 7100, 7500, True)],
            id="resumed",
        ),
        pytest.param(
            "WaitingReboot",
            since_7000(NodeRebooting=0),
            [("unrecorded", 6800, 7000, False), ("rebooting", 7000, 7500, True)],
            id="only the last event is left",
        ),
        pytest.param(
            "PostDrained",
            since_7000(NodeDraining=0, NodeUpgrading=100, NodeUpgraded=200),
            [("draining", 7000, 7100, False), ("upgrading", 7100, 7200, False)],
            id="a reboot that passed unobserved",
        ),
        pytest.param("PostDrained", since_7000(NodeDraining=0), [], id="an end that is not known"),
    ],
)
def test_node_has_the_bars_of_its_milestones(
    state: str, events: list[dict[str, Any]], expected: list[tuple[str, int, int, bool]]
) -> None:
    report = running(events=[*upgraded("node-0", begin=4950), *events], node_0="PostDrained", node_1=state)
    assert bars(report, "node-1") == expected


def test_single_node_begins_with_its_operating_system() -> None:
    report = running(events=steps("node-0", begin=5000, NodeUpgrading=0), node_0="SingleNodeUpgrading")
    assert bars(report, "node-0") == [("upgrading", 5000, 7500, True)]


@pytest.mark.parametrize("seconds", [0.5, 7, 60, 3600, 86400, 40 * 86400, 9000 * 365 * 86400 // 2])
@pytest.mark.parametrize(
    "begun", [START, datetime(2030, 1, 1, 23, 59, 59, tzinfo=UTC), datetime.min.replace(tzinfo=UTC)]
)
def test_axis_has_at_most_eight_round_marks(begun: datetime, seconds: float) -> None:
    ended = begun + timedelta(seconds=seconds)
    marks = ticks(begun, ended)
    assert len(marks) <= 8
    assert all(begun <= mark <= ended for mark in marks)
    assert len({later - mark for mark, later in itertools.pairwise(marks)}) <= 1


def test_axis_of_three_hours_has_half_hours() -> None:
    assert [f"{mark:%H:%M}" for mark in ticks(START, START + timedelta(hours=3))][:3] == ["12:00", "12:30", "13:00"]
