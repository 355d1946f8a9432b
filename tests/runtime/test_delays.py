from __future__ import annotations

from upgrade_manager.runtime.delays import Delays
from upgrade_manager.runtime.lanes import Priority


def test_keys_come_out_when_due_and_in_order() -> None:
    delays: Delays[str] = Delays()
    for key, due in (("b", 2), ("a", 1), ("c", 3), ("b2", 2)):
        delays.put(key, due=due, priority=Priority.NORMAL)
    assert [key for key, _ in delays.pop_due(2)] == ["a", "b", "b2"]
    assert delays.next_due() == 3
    assert list(delays.pop_due(2.9)) == []
    assert len(delays) == 1


def test_an_entry_keeps_the_earlier_time_and_the_higher_priority() -> None:
    delays: Delays[str] = Delays()
    delays.put("a", due=5, priority=Priority.NORMAL)
    delays.put("a", due=3, priority=Priority.LOW)
    delays.put("a", due=9, priority=Priority.LOW)
    assert list(delays.pop_due(3)) == [("a", Priority.NORMAL)]
    assert delays.next_due() is None


def test_a_discarded_key_never_comes_out() -> None:
    delays: Delays[str] = Delays()
    delays.put("a", due=1, priority=Priority.LOW)
    assert "a" in delays
    assert delays.discard("a") is Priority.LOW
    assert delays.discard("a") is None
    assert delays.next_due() is None


def test_replaced_entries_do_not_pile_up() -> None:
    delays: Delays[int] = Delays()
    for due in range(10_000, 0, -1):
        delays.put(due % 10, due=due, priority=Priority.NORMAL)
    assert len(delays) == 10
    assert len(delays._heap) <= 2 * 10 + 65
    assert [key for key, _ in delays.pop_due(10)] == [*range(1, 10), 0]
