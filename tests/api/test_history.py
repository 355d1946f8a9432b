"""The rows of a history as lines of text."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.managers.displayed import START
from upgrade_manager.api.history import (
    NODE,
    UPGRADE,
    WARNINGS,
    Row,
    blockers_in,
    counted_id,
    node_key,
    rows_of,
    versions_in,
)

FIRST = Row(
    id="13.n20-0123456789abcdef",
    first=START,
    last=START,
    count=1,
    type="Normal",
    reason="NodeDraining",
    message="Node node-0: draining begins",
    node="node-0",
)
REPEATED = replace(
    FIRST, id="u-0123", last=START + timedelta(minutes=20), count=3, type="Warning", reason="DrainFailing", node=""
)


@pytest.mark.parametrize(
    ("row", "key", "line"),
    [
        (
            FIRST,
            "node.node-0",
            "2030-01-01T12:00:00Z Normal NodeDraining 13.n20-0123456789abcdef Node node-0: draining begins",
        ),
        (replace(FIRST, node=""), UPGRADE, ""),
        (
            REPEATED,
            WARNINGS,
            "2030-01-01T12:00:00Z/2030-01-01T12:20:00Z*3 Warning DrainFailing u-0123 Node node-0: draining begins",
        ),
        (replace(FIRST, id="", message=""), "node.node-0", "2030-01-01T12:00:00Z NodeDraining"),
        (replace(FIRST, message=""), "node.node-0", ""),
    ],
)
def test_row_is_read_as_it_was_written(row: Row, key: str, line: str) -> None:
    assert row.key == key
    assert row.line().startswith(line)
    assert rows_of({key: f"{row.line()}\n"}) == [row]


def test_only_rows_without_a_unique_name_are_counted() -> None:
    same = counted_id("u", "Warning", "DrainFailing", "m")
    assert replace(REPEATED, id=same).is_counted
    assert not FIRST.is_counted
    assert same != counted_id("u", "Normal", "DrainFailing", "m")


def test_text_of_a_row_is_one_line() -> None:
    (row,) = rows_of({UPGRADE: replace(FIRST, node="", message="a\nb\x1b[0m").line()})
    assert row.message == "a b [0m"


@pytest.mark.parametrize(
    "text",
    ["", "x", "2030-01-01T12:00:00Z", "2030-99-01T12:00:00Z Normal A b c", "yesterdayZ Normal A b c", 7, None, ["a"]],
)
def test_what_is_not_a_row_is_left_out(text: Any) -> None:
    assert rows_of({UPGRADE: text, "other": FIRST.line()}) == []


def test_rows_are_in_the_order_of_their_begins() -> None:
    later = replace(FIRST, first=START + timedelta(seconds=1), node="node-1")
    second = replace(FIRST, id="13.n30-0123456789abcdef")
    data = {"node.node-1": later.line(), "node.node-0": f"{second.line()}\n{FIRST.line()}"}
    assert [row.id for row in rows_of(data)] == [FIRST.id, second.id, FIRST.id]


@pytest.mark.parametrize(("length", "is_alone"), [(248, True), (249, False)])
def test_key_of_a_node_is_a_valid_one(length: int, *, is_alone: bool) -> None:
    key = node_key("n" * length)
    assert key == (NODE + "n" * length if is_alone else "")
    assert len(replace(FIRST, node="n" * length).key) <= 253


def test_json_lines_of_others_are_left_out() -> None:
    data = {"blockers": '{"reason":"A"}\n[1]\nx\n', "versions": '{"os":"a","nodes":["n",1]}\n{"nodes":"n"}\n'}
    assert blockers_in(data) == [{"reason": "A"}]
    assert versions_in(data) == {"n": ("a", "")}
