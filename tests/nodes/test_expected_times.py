from __future__ import annotations

import pytest

from upgrade_manager.nodes.expected_times import expected_seconds


@pytest.mark.rule("blockers: a Job is slow after its usual time, or three times the median of this plan's, if more")
@pytest.mark.parametrize(
    ("finished", "expected"),
    [
        pytest.param([], 1800, id="no Job has finished"),
        pytest.param([60, 60], 1800, id="fast nodes"),
        pytest.param([600], 1800, id="a third of the usual time"),
        pytest.param([1200], 3600, id="a slow node"),
        pytest.param([60, 1200, 9000], 3600, id="the median"),
        pytest.param([1000, 2000], 4500, id="the median of two"),
    ],
)
def test_slow_nodes_raise_the_expected_time(finished: list[float], expected: float) -> None:
    assert expected_seconds("pre-drain", finished) == expected
