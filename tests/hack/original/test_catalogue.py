"""The comparison with Harvester's own upgrade, against the listings: what it says of a write is shown there."""

from __future__ import annotations

import re

import pytest

from hack.original.catalogue import CATALOGUE, WRITES, Entry, listings, shown_in, tables
from upgrade_manager.release.migrations.pairs import rows_between
from upgrade_manager.release.migrations.row import Source

ENTRIES = CATALOGUE.entries
#: Reasons without content.
STUB = re.compile(r"\b(?:todo|tbd|n/a|see above|not needed|as above|unknown)\b", re.IGNORECASE)
MIN_WORDS = 6


def writes() -> list[str]:
    """Return the lines of the listings of net writes."""
    found = [lines for name, lines in listings().items() if name.startswith(WRITES.partition("/")[0])]
    return [line for lines in found for line in lines if not line.startswith("#")]


def is_reason(text: str) -> bool:
    """Report whether a text is a sentence that says something."""
    return text.endswith(".") and len(text.split()) >= MIN_WORDS and STUB.search(text) is None


@pytest.mark.parametrize("entry", [one for one in ENTRIES if one.shown], ids=lambda one: one.what)
def test_write_that_is_made_is_shown(entry: Entry) -> None:
    assert shown_in(entry.shown)


@pytest.mark.parametrize("entry", [one for one in ENTRIES if one.never], ids=lambda one: one.what)
def test_write_that_is_left_out_is_never_shown(entry: Entry) -> None:
    assert not shown_in(entry.never)


def test_each_entry_is_shown_or_left_out_for_a_reason() -> None:
    assert [one.what for one in ENTRIES if bool(one.shown) is bool(one.never)] == []
    reasons = {one.what: one.because for one in ENTRIES if one.verdict != "the same"}
    assert {what: text for what, text in reasons.items() if not is_reason(text)} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("The file stays where it is for ever.", True), ("It is not needed here at all.", False), ("Too short.", False)],
)
def test_reason_is_a_sentence_with_content(text: str, expected: bool) -> None:  # noqa: FBT001  # a column
    assert is_reason(text) is expected


def test_each_entry_stands_once_in_its_part() -> None:
    for part in CATALOGUE.parts:
        names = [entry.what for entry in part.entries]
        assert len(set(names)) == len(names), part.title


def test_each_source_of_a_row_is_compared() -> None:
    sources = [one for row in rows_between("v1.7.1", "v1.8.0") for one in row.sources if isinstance(one, Source)]
    files = [one for one in sources if one.repository == "harvester/harvester" and "deploy/charts" not in one.path]
    compared = {one.where for one in ENTRIES}
    assert {str(one) for one in files if f"{one.path.rpartition('/')[2]}:{one.line}" not in compared} == set()


def test_each_net_write_is_explained() -> None:
    known = [re.compile(one.shown) for one in ENTRIES if one.shown]
    classes = [re.compile(one.lines) for one in CATALOGUE.extra]
    rest = [line for line in writes() if not any(one.search(line) for one in known)]
    assert [line for line in rest if not any(one.search(line) for one in classes)] == []
    assert [one.pattern for one in classes if not any(map(one.search, rest))] == []
    assert [one.what for one in CATALOGUE.extra if not is_reason(one.because)] == []


def test_page_has_a_table_for_each_part_and_the_numbers() -> None:
    text = tables()["writes of Harvester's own upgrade"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [part.title for part in CATALOGUE.parts]
    assert text.startswith(f"{len(ENTRIES)} entries: ")
    row = "| this Plan: ten nodes at once | upgrade_manifests.sh:1232 | the same | [manager-one-node]("
    assert row in text
