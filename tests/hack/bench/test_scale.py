from __future__ import annotations

import pytest

from hack.bench.real_cluster import Step, Usage
from hack.bench.scale import Listed, Measurement, figures


def step(processor: float) -> Step:
    return Step(at=0.0, wall=2 * processor, processor=processor)


def test_manager_without_streaming_lists_has_its_own_figures() -> None:
    found = Measurement(
        synced=1.0,
        nodes=2,
        before=Usage(requests=10, processor=1.0),
        after=Usage(requests=20, processor=1.5),
        memory=100.0,
        steps=[step(0.03), step(0.01)],
        listed=Listed(memory=200.0, steps=[step(0.02), step(0.06)]),
    )
    by_name = {figure.name.removeprefix("1,000 nodes"): figure for figure in figures(found)}
    assert by_name[": longest step in processor time"].value == pytest.approx(30)
    assert by_name[" without streaming lists: longest step"].value == pytest.approx(60)
    assert not by_name[" without streaming lists: longest step"].met
    assert by_name[" without streaming lists: most memory"].value == pytest.approx(2 * by_name[": most memory"].value)
