"""The Grafana dashboard as a document; tests/deploy/test_monitoring.py runs its queries."""

from __future__ import annotations

import re
from itertools import combinations

from tests.support.programs.dashboard import DASHBOARD, PANELS, all_expressions
from tests.support.programs.kustomize import DEPLOY

VARIABLES = {"__rate_interval": "1m", "__range": "1h", "plan": "up", "job": "manager"}
_METRIC = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+)\{")
_SERIES_OF_HISTOGRAMS = re.compile(r"_(?:bucket|sum|count)$")
_OF_THE_LIBRARY = {"process_resident_memory_bytes"}


def test_panels_query_documented_metrics() -> None:
    text = (DEPLOY.parent / "docs/metrics.md").read_text()
    queried = {name for _, expression in all_expressions(**VARIABLES) for name in _METRIC.findall(expression)}
    assert len(queried) > 20
    names = {_SERIES_OF_HISTOGRAMS.sub("", name) for name in queried}
    assert {name for name in names - _OF_THE_LIBRARY if f"`{name}`" not in text} == set()


def test_panels_neither_overlap_nor_share_a_name() -> None:
    panels = DASHBOARD["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    assert len(PANELS) == len([one for one in panels if one["type"] != "row"])
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] >= other["x"] + other["w"] or other["x"] >= one["x"] + one["w"]
        assert beside or one["y"] >= other["y"] + other["h"] or other["y"] >= one["y"] + one["h"]
