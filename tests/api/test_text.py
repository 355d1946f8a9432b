from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.text import (
    MAX_NAMES,
    MESSAGE_LIMIT,
    bounded_line,
    name_list,
    namespaced_name,
    success_message,
    success_remarks,
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("all is well", "all is well", id="a sentence stays"),
        pytest.param("", "", id="nothing stays nothing"),
        pytest.param("one\r\ntwo\n", "one two", id="lines become one"),
        pytest.param("one\u2028two\u2029three\x85four", "one two three four", id="whatever separates them"),
        pytest.param("\x1b[31mred\x1b[0m", "[31mred [0m", id="no command for a terminal"),
        pytest.param("a\x00b\x7fc", "a b c", id="no control characters"),
        pytest.param("left\u202etfel", "left tfel", id="nothing that turns the direction"),
        pytest.param("a\ud800b", "a b", id="nothing that cannot be encoded"),
        pytest.param("größer 日本 🚀", "größer 日本 🚀", id="every script is welcome"),
        pytest.param("x" * 1000, "x" * 1000, id="as long as may be"),
        pytest.param("x" * 1001, "x" * 999 + "…", id="a longer one is cut"),
    ],
)
def test_text_becomes_one_line(text: str, line: str) -> None:
    assert bounded_line(text) == line


def test_limit_may_be_raised() -> None:
    assert bounded_line("x" * 1001, limit=2000) == "x" * 1001
    assert bounded_line("x" * 2001, limit=2000) == "x" * 1999 + "…"


@given(st.text(st.characters(exclude_categories=()), max_size=2500))
def test_line_is_printable_bounded_and_idempotent(text: str) -> None:
    line = bounded_line(text)
    assert line.isprintable()
    assert len(line) <= MESSAGE_LIMIT
    assert line.encode().decode() == line
    assert bounded_line(line) == line


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (2, "n0, n1"), (10, "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9"), (12, " n8, n9 and 2 more")],
)
def test_list_of_names_is_short(count: int, text: str) -> None:
    found = name_list([f"n{number}" for number in range(count)])
    assert found.endswith(text)
    assert found.count(",") == max(0, min(count, MAX_NAMES) - 1)


@pytest.mark.parametrize(
    ("nodes", "remarks", "text"),
    [
        (1, "", "Upgraded in 2 s (1 node)"),
        (3, "Node n1 left. VMs (2) are off", "Upgraded in 2 s (3 nodes). Node n1 left. VMs (2) are off"),
    ],
)
def test_success_has_its_remarks_after_the_nodes(nodes: int, remarks: str, text: str) -> None:
    assert success_message("Upgraded in 2 s", nodes=nodes, remarks=remarks) == text
    assert success_remarks(text) == remarks


@pytest.mark.parametrize(
    ("namespace", "name", "text"),
    [
        pytest.param("shop", "db", "shop/db", id="both"),
        pytest.param("", "node-1", "node-1", id="no namespace"),
        pytest.param("shop", "", "shop", id="no name"),
    ],
)
def test_name_follows_its_namespace(namespace: str, name: str, text: str) -> None:
    assert namespaced_name(namespace, name) == text
