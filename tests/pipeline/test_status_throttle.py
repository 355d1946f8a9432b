from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.pipeline.status import StatusPatch
from upgrade_manager.pipeline.status_throttle import (
    DETAIL_INTERVAL,
    MESSAGE_INTERVAL,
    StatusThrottle,
    only_details,
    only_informs,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
JOB = "waiting for a Job"


def new_patch(status: dict[str, Any] | None = None, *, generation: int = 3) -> StatusPatch:
    return StatusPatch({"metadata": {"generation": generation}, "status": status}, now=lambda: EPOCH)


def stored(*, generation: int = 3) -> StatusPatch:
    """Build an accepted plan that waits for a Job, as the next reconcile reads it."""
    patch = new_patch()
    patch.accept("Initializing", "v1.8.0")
    patch.waiting(JOB, "waiting for its Pod")
    return new_patch(patch.difference(), generation=generation)


@pytest.mark.parametrize("old", [None, {"conditions": None}, {"conditions": ["odd"]}], ids=["none", "null", "odd"])
def test_new_condition_is_not_a_detail(old: dict[str, Any] | None) -> None:
    patch = new_patch(old)
    patch.accept("Initializing", "v1.8.0")
    assert not only_details(patch, "")
    patch = new_patch(old)
    patch.healthy()
    assert not only_details(patch, "")


def test_new_generation_is_not_a_detail() -> None:
    patch = stored(generation=4)
    patch.waiting(JOB, "running")
    assert not only_details(patch, JOB)


@pytest.mark.parametrize(
    ("change", "message", "interval"),
    [
        pytest.param(lambda patch: patch.waiting(JOB, "running"), JOB, DETAIL_INTERVAL, id="detail"),
        pytest.param(lambda patch: patch.waiting(JOB, ""), JOB, DETAIL_INTERVAL, id="detail removed"),
        pytest.param(lambda patch: patch.waiting("1 of 3"), "1 of 3", MESSAGE_INTERVAL, id="message"),
        pytest.param(lambda patch: patch.move_node("n", NodeState.PRE_DRAINING), JOB, MESSAGE_INTERVAL, id="node"),
        pytest.param(lambda _: None, JOB, MESSAGE_INTERVAL, id="nothing"),
        pytest.param(lambda patch: patch.record("Initialized"), JOB, 0.0, id="phase"),
        pytest.param(lambda patch: patch.degraded("x"), JOB, 0.0, id="condition"),
        pytest.param(lambda patch: patch.fail("x", cause="x", todo="y"), JOB, 0.0, id="end"),
    ],
)
def test_throttle_delays_information_only(change: Callable[[StatusPatch], None], message: str, interval: float) -> None:
    time = 100.0
    throttle = StatusThrottle(now=lambda: time)
    patch = stored()
    change(patch)
    assert only_details(patch, message) is (interval == DETAIL_INTERVAL)
    assert only_informs(patch) is (interval > 0)
    assert throttle.delay(patch, message) == 0
    throttle.written()
    assert throttle.delay(patch, message) == interval
    time += interval / 2
    assert throttle.delay(patch, message) == interval / 2
    time += interval / 2
    assert throttle.delay(patch, message) == 0
