from __future__ import annotations

import pytest

from upgrade_manager.release.migrations import generic
from upgrade_manager.release.migrations.pairs import PAIRS, rows_between
from upgrade_manager.release.migrations.row import PLACES, Place, Row

OF_PAIRS = [row for pair in PAIRS for row in pair.rows]
ROWS = [*generic.ROWS, *OF_PAIRS]
#: The parts of an upgrade before Harvester itself, whose Setting names the version before until then.
EARLY = (Place.BEFORE_RANCHER, Place.WITH_RANCHER, Place.AFTER_RANCHER)


def test_ids_of_rows_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_says_what_it_changes_and_where_it_was_read(row: Row) -> None:
    assert row.changes
    assert row.sources
    assert row.step.endswith(".")
    assert row.undo.endswith(".")
    assert not row.done_if.endswith(".")
    assert all(source.line > 0 and source.tag.startswith("v") for source in row.sources)


@pytest.mark.parametrize("row", OF_PAIRS, ids=lambda row: row.id)
def test_row_of_a_pair_precedes_the_upgrade_of_harvester(row: Row) -> None:
    assert row.place in EARLY, "toolkit/iso/migration.py reads the version before from Harvester's Setting until then"


def test_every_place_is_named_in_words() -> None:
    assert list(PLACES) == list(Place)


@pytest.mark.parametrize(
    ("current", "target", "pair"),
    [("v1.7.1", "v1.8.0", True), ("v1.8.0", "v1.8.2", False), ("v1.7.1", "v1.9.0", False), ("", "", False)],
)
def test_rows_are_the_generic_ones_and_those_of_the_pair(current: str, target: str, *, pair: bool) -> None:
    rows = rows_between(current, target)
    assert {row.id for row in rows} == {row.id for row in (*generic.ROWS, *(OF_PAIRS if pair else ()))}
    assert [list(Place).index(row.place) for row in rows] == sorted(list(Place).index(row.place) for row in rows)
