from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING

import pytest

from hack.bench.loop_steps import MIN_STEP, StepSelector

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeTime:
    """A clock that advances by hand, and while a selector waits."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0

    def spend(self, wall: float, processor: float) -> None:
        self.wall += wall
        self.processor += processor


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    clock = FakeTime()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.wall)
    monkeypatch.setattr(time, "thread_time", lambda: clock.processor)

    def wait(*_: object) -> list[object]:
        clock.spend(100, 0)
        return []

    monkeypatch.setattr(selectors.DefaultSelector, "select", wait)
    return clock


@pytest.fixture
def selector(fake_time: FakeTime) -> Iterator[StepSelector]:
    _ = fake_time
    selector = StepSelector()
    yield selector
    selector.close()


def test_long_steps_are_recorded_and_waits_are_not(selector: StepSelector, fake_time: FakeTime) -> None:
    selector.select(None)
    fake_time.spend(MIN_STEP / 2, MIN_STEP / 2)
    selector.select(None)
    fake_time.spend(3, 2)
    selector.select(None)
    ((at, wall, processor),) = selector.steps
    assert at == pytest.approx(200 + MIN_STEP / 2)
    assert (wall, processor) == pytest.approx((3, 2))
