from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from upgrade_manager.api.blockers import MAX_BLOCKERS, Blocker, BlockerReason, entries_of, merge_blockers, read_blockers
from upgrade_manager.api.remedy import Remedy

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD = Blocker(
    reason=BlockerReason.POD_PENDING,
    kind="Pod",
    namespace="harvester-system",
    name="p",
    node="n1",
    message="Pod harvester-system/p: it does not start",
    remedies=(Remedy("Show its events", command="kubectl describe pod -n harvester-system p"),),
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


def test_text_of_the_remedies_is_that_of_the_list() -> None:
    scale = Remedy("Start it", command="kubectl scale --replicas=1", undo="kubectl scale --replicas=0")
    entry = replace(POD, remedies=(scale, Remedy("Wait"))).entry()
    assert entry["remedies"] == [
        {"text": "Start it", "command": "kubectl scale --replicas=1", "undo": "kubectl scale --replicas=0"},
        {"text": "Wait"},
    ]
    assert entry["remedy"] == (
        "(1) Start it: kubectl scale --replicas=1 (2) Undo it after the upgrade: kubectl scale --replicas=0 (3) Wait"
    )


def test_entry_of_an_earlier_version_has_its_text_alone() -> None:
    entry = POD.entry()
    del entry["remedies"]
    (found,) = read_blockers([entry])
    assert found.remedies == (Remedy(entry["remedy"]),)
    assert found.remedy == entry["remedy"]
    (bare,) = read_blockers([{key: value for key, value in entry.items() if key != "remedy"}])
    assert bare.remedies == ()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        pytest.param({"text": "a", "command": "b", "undo": "c"}, [Remedy("a", command="b", undo="c")], id="whole"),
        pytest.param({"text": "a", "command": 1, "later": "x"}, [Remedy("a")], id="wrong type"),
        pytest.param({"command": "b"}, [Remedy("t")], id="no text"),
        pytest.param("x", [Remedy("t")], id="no entry"),
    ],
)
def test_remedies_of_another_version_are_read(raw: object, found: list[Remedy]) -> None:
    (blocker,) = read_blockers([POD.entry() | {"remedies": [raw], "remedy": "t"}])
    assert list(blocker.remedies) == found


def test_remedy_that_does_not_fit_is_left_out_whole() -> None:
    long = [Remedy(letter, command=letter * 400) for letter in "abc"]
    assert read_blockers([replace(POD, remedies=(*long,)).entry()])[0].remedies == (*long[:2],)
    many = tuple(Remedy(str(number)) for number in range(20))
    assert read_blockers([replace(POD, remedies=many).entry()])[0].remedies == many[:10]


def test_command_that_is_too_long_is_not_cut() -> None:
    entry = replace(POD, remedies=(Remedy("a" * 2000, command="b" * 1001),)).entry()
    assert entry["remedies"] == [{"text": "a" * 1000}]


@pytest.mark.parametrize("letter", ["m", "é", "漢", "🙂"])
@pytest.mark.parametrize("length", [10, 253])
def test_fifty_blockers_with_long_texts_stay_small(letter: str, length: int) -> None:
    text, name = letter * 1_000_000, "n" * length
    long = replace(POD, name=name, node=name, namespace="s" * 63, message=text, remedies=(Remedy(text, command=text),))
    found = entries_of([long] * (MAX_BLOCKERS + 5))
    assert len(json.dumps(found, ensure_ascii=False).encode()) < 96 * 1024
    assert 8 <= len(found) <= MAX_BLOCKERS


def test_fifty_usual_blockers_are_all_entries() -> None:
    assert (
        len(entries_of([replace(POD, message="m" * 300, remedies=(Remedy("r" * 200, command="c" * 200),))] * 60))
        == MAX_BLOCKERS
    )


@pytest.mark.parametrize("reason", BlockerReason)
def test_only_a_choice_of_the_user_does_not_stall(reason: BlockerReason) -> None:
    assert reason.stalls is (reason != "NodePaused")
