from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from upgrade_manager.api.blockers import MAX_BLOCKERS, Blocker, BlockerReason, entries_of, merge_blockers, read_blockers

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD = Blocker(
    reason=BlockerReason.POD_PENDING,
    kind="Pod",
    namespace="harvester-system",
    name="p",
    node="n1",
    message="Pod harvester-system/p: it does not start",
    remedy="kubectl describe pod -n harvester-system p",
    since=NOON,
)
SLOW = replace(POD, reason=BlockerReason.JOB_SLOW, kind="Job", name="j")


def test_entry_is_read_again() -> None:
    nowhere = replace(POD, namespace="", node="")
    assert read_blockers([POD.entry(), nowhere.entry()]) == [POD, nowhere]
    assert {"namespace", "node"}.isdisjoint(nowhere.entry())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"reason": "OfALaterRelease"}, id="unknown reason"),
        pytest.param({"reason": None}, id="no reason"),
        pytest.param({"since": "yesterday"}, id="no time"),
        pytest.param({"name": 1}, id="wrong type"),
    ],
)
def test_entry_that_cannot_be_read_is_left_out(change: dict[str, Any]) -> None:
    assert read_blockers([POD.entry() | change, SLOW.entry()]) == [SLOW]


@pytest.mark.parametrize("raw", [None, {}, "x", [None, 1, "x"]], ids=["absent", "object", "text", "entries"])
def test_status_of_another_type_has_no_blockers(raw: object) -> None:
    assert read_blockers(raw) == []


def test_known_blocker_keeps_its_time() -> None:
    later = replace(POD, since=NOON + timedelta(hours=1), message="other words")
    assert merge_blockers([POD], [later]) == [replace(later, since=NOON)]
    assert merge_blockers([SLOW], [later]) == [later]


def test_blockers_are_in_order_and_each_once() -> None:
    older = replace(POD, name="a", since=NOON - timedelta(hours=1))
    assert merge_blockers([], [SLOW, POD, older, POD]) == [older, POD, SLOW]


def test_remedy_is_cut_between_its_steps() -> None:
    steps = ["(1) " + "a" * 500, "(2) " + "b" * 400, "(3) " + "c" * 100]
    assert replace(POD, remedy=" ".join(steps[:2])).entry()["remedy"] == " ".join(steps[:2])
    assert replace(POD, remedy=" ".join(steps)).entry()["remedy"] == " ".join(steps[:2])
    assert replace(POD, remedy="x" * 1001).entry()["remedy"] == "x" * 1000


@pytest.mark.parametrize("letter", ["m", "é", "漢", "🙂"])
@pytest.mark.parametrize("length", [10, 253])
def test_fifty_blockers_with_long_texts_stay_small(letter: str, length: int) -> None:
    text, name = letter * 1_000_000, "n" * length
    long = replace(POD, name=name, node=name, namespace="s" * 63, message=text, remedy=text)
    found = entries_of([long] * (MAX_BLOCKERS + 5))
    assert len(json.dumps(found, ensure_ascii=False).encode()) < 64 * 1024
    assert 9 <= len(found) <= MAX_BLOCKERS


def test_fifty_usual_blockers_are_all_entries() -> None:
    assert len(entries_of([replace(POD, message="m" * 300, remedy="r" * 400)] * 60)) == MAX_BLOCKERS


@pytest.mark.parametrize("reason", BlockerReason)
def test_only_a_choice_of_the_user_does_not_stall(reason: BlockerReason) -> None:
    assert reason.stalls is (reason != "NodePaused")
