"""The expected end from the phases of earlier upgrades."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.display.test_view import HOSTILE
from tests.support.managers.displayed import START, TIMED, at, plan, recorded, times
from tests.support.managers.reported import reached
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.display.expectation import Pace, pace_of
from upgrade_manager.display.view import build

#: Seconds of the phases that `reached` records; node by node for three nodes.
TOTAL, NODES, CLEANUP = 10900, 5600, 400

FAR = [
    {"phase": phase, "phaseTransitionTimestamp": f"{9999 if index % 2 else 1:04}-01-01T00:00:00Z"}
    for index, phase in enumerate(PHASE_VALUES)
]


def earlier(count: int = 16, *, nodes: int = 3) -> dict[str, Any]:
    states = {f"node-{index}": {"state": "ImageCleaned"} for index in range(nodes)}
    return plan(currentPhase="Succeeded", phaseTransitionTimestamps=reached(count), nodeUpgradeStatuses=states)


def expected(pace: Pace, *, reached: int, now: int, **status: Any) -> float | None:
    """Return the expected end, in seconds from the start, of a plan that reached phases a second apart."""
    times = recorded({value: index for index, value in enumerate(TIMED[:reached])})
    running = plan(currentPhase=TIMED[reached - 1], phaseTransitionTimestamps=times, **status)
    found = build(running, [], now=START + timedelta(seconds=now), pace=pace).estimated_completion
    return (found - START).total_seconds() if found is not None else None


def states(count: int, state: str = "ImagePreloaded") -> dict[str, Any]:
    return {f"node-{index}": {"state": state} for index in range(count)}


@pytest.mark.rule("status: the expected end follows from this upgrade's nodes, before them from earlier upgrades")
def test_phases_that_are_left_take_as_long_as_before() -> None:
    pace = pace_of([earlier()])
    assert expected(pace, reached=1, now=0) == TOTAL
    assert expected(pace, reached=1, now=30) == TOTAL
    assert expected(pace, reached=1, now=100) == TOTAL + 60
    assert expected(pace, reached=11, now=10) == pytest.approx(10 + TOTAL - 2500)


def test_skipped_phase_takes_no_time() -> None:
    pace, status = pace_of([earlier()]), {"currentPhase": "NodeUpgrading", "nodeUpgradeStatuses": states(3)}
    entries = [*times(*TIMED[:8]), *times(*TIMED[:13])[10:]]
    found = build(plan(**status, phaseTransitionTimestamps=entries), [], now=START, pace=pace).estimated_completion
    assert found is not None
    assert (found - START).total_seconds() == expected(pace, reached=13, now=0, nodeUpgradeStatuses=states(3))


def test_nodes_count_where_phases_work_node_by_node() -> None:
    pace = pace_of([earlier()])
    left = expected(pace, reached=13, now=12, nodeUpgradeStatuses=states(6))
    assert left == pytest.approx(12 + 2 * (NODES + CLEANUP))
    assert expected(pace, reached=15, now=14, nodeUpgradeStatuses=states(3)) == pytest.approx(14 + CLEANUP)


@pytest.mark.parametrize(
    ("done", "seconds", "left"),
    [
        pytest.param(0, NODES / 3 + 60, 2 * NODES / 3 + CLEANUP, id="first node takes longer"),
        pytest.param(1, NODES / 3 + 60, 2 * NODES / 3 - 60 + CLEANUP, id="second node has begun"),
        pytest.param(1, 60, 2 * NODES / 3 + CLEANUP, id="first node was faster"),
        pytest.param(3, NODES, CLEANUP, id="all nodes are done"),
        pytest.param(0, NODES + CLEANUP + 60, None, id="late by more than is left"),
    ],
)
def test_nodes_that_are_left_take_as_long_as_before(done: int, seconds: float, left: float | None) -> None:
    nodes = states(3) | states(done, "PostDrained")
    now = 12 + int(seconds)
    found = expected(pace_of([earlier()]), reached=13, now=now, nodeUpgradeStatuses=nodes)
    assert found == (None if left is None else pytest.approx(now + left, abs=1))


def test_late_phase_without_more_to_do_has_an_unknown_end() -> None:
    pace = pace_of([earlier()])
    assert expected(pace, reached=15, now=15 + CLEANUP, nodeUpgradeStatuses=states(3)) is None


def test_estimate_of_the_manager_takes_precedence() -> None:
    assert expected(pace_of([earlier()]), reached=13, now=12, estimatedCompletion=at(777)) == 777


@pytest.mark.parametrize(
    ("pace", "status"),
    [
        pytest.param(pace_of([]), {}, id="no earlier upgrade"),
        pytest.param(pace_of([plan(phaseTransitionTimestamps=FAR)]), {}, id="one with a wrong clock"),
        pytest.param(pace_of([earlier(13)]), {}, id="none that reached the last phases"),
        pytest.param(pace_of([earlier(nodes=0)]), {}, id="none with nodes"),
        pytest.param(pace_of([earlier()]), {"nodeUpgradeStatuses": states(3, "UpgradePaused")}, id="a paused node"),
        pytest.param(
            pace_of([earlier()]),
            {"estimatedCompletion": at(777), "conditions": [{"type": "Stalled", "status": "True"}]},
            id="stalled",
        ),
    ],
)
def test_unknown_end_is_not_guessed(pace: Pace, status: dict[str, Any]) -> None:
    assert expected(pace, reached=13, now=20, **status) is None


def test_median_of_earlier_upgrades_counts() -> None:
    slow = plan(phaseTransitionTimestamps=times(*PHASE_VALUES, step=100_000), nodeUpgradeStatuses=states(3))
    pace = pace_of([earlier(), earlier(), slow])
    assert pace.seconds["ISODownload"] == 1260
    assert pace.nodes == 3


def test_plan_that_has_ended_expects_no_end() -> None:
    assert build(earlier(), [], now=START, pace=pace_of([earlier()])).estimated_completion is None


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_invalid_plans_have_no_pace(value: Any) -> None:
    odd = [plan(phaseTransitionTimestamps=value, nodeUpgradeStatuses=value), {"status": value}]
    assert pace_of(odd).seconds == {}
