from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.endpoint_slices import ready_endpoints


@pytest.mark.parametrize(
    ("endpoints", "ready"),
    [
        ([{"conditions": {"ready": True}}, {"conditions": {"ready": False}}], 1),
        ([{}, {"conditions": None}, {"conditions": {"ready": None}}], 3),
        ([], 0),
        (None, 0),
    ],
    ids=["one of two", "unknown", "none", "null"],
)
def test_endpoints_are_ready_unless_the_slice_reports_otherwise(endpoints: Any, ready: int) -> None:
    assert ready_endpoints({"endpoints": endpoints}) == ready
