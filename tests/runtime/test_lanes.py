from __future__ import annotations

import pytest

from upgrade_manager.runtime.lanes import Lanes, Priority


@pytest.mark.parametrize(("number", "priority"), [(-100, "LOW"), (-1, "LOW"), (0, "NORMAL"), (7, "NORMAL")])
def test_any_number_has_its_class(number: int, priority: str) -> None:
    assert Priority.of(number).name == priority


def test_nothing_comes_out_of_empty_lanes() -> None:
    with pytest.raises(LookupError, match="no key is ready"):
        Lanes[str](aging=1).pop()


def test_a_low_key_comes_before_what_is_added_after_it_has_aged() -> None:
    lanes: Lanes[str] = Lanes(aging=10)
    lanes.push("low", priority=Priority.LOW, now=0)
    lanes.push("before", priority=Priority.NORMAL, now=9)
    lanes.push("same", priority=Priority.NORMAL, now=10)
    lanes.push("after", priority=Priority.NORMAL, now=11)
    assert [lanes.pop()[0] for _ in range(4)] == ["before", "same", "low", "after"]


def test_a_promoted_key_keeps_the_time_it_has_waited_since() -> None:
    lanes: Lanes[str] = Lanes(aging=10)
    lanes.push("a", priority=Priority.LOW, now=0)
    assert lanes.oldest() == 0
    assert lanes.promote("a", now=5)
    assert not lanes.promote("a", now=6)
    assert "a" in lanes
    key, priority, place = lanes.pop()
    assert (key, priority, place.since, place.turn) == ("a", Priority.NORMAL, 0, 5)
    assert "a" not in lanes
