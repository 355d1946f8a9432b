from __future__ import annotations

import pytest

from upgrade_manager.release.migrations import generic, v1_7_to_v1_8, v1_8_to_v1_9
from upgrade_manager.release.migrations.pairs import PAIRS, rows_between
from upgrade_manager.release.migrations.row import PLACES, Discussion, Place, Row, Source

OF_PAIRS = [row for pair in PAIRS for row in pair.rows]
ROWS = [*generic.ROWS, *OF_PAIRS]
#: The parts of an upgrade before Harvester itself, whose Setting names the version before until then.
EARLY = (Place.BEFORE_RANCHER, Place.WITH_RANCHER, Place.AFTER_RANCHER)

NODES = (Place.BEFORE_RKE2, Place.BEFORE_OS, Place.BEFORE_REBOOT)


def test_ids_of_rows_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_says_what_it_changes_and_where_it_was_read(row: Row) -> None:
    assert row.changes
    assert row.sources
    assert row.step.endswith(".")
    assert row.undo.endswith(".")
    assert not row.done_if.endswith(".")
    assert all(map(_can_be_found, row.sources))


def _can_be_found(source: Source | Discussion) -> bool:
    if isinstance(source, Discussion):
        return source.number > 0
    return source.line > 0 and source.tag.startswith("v")


@pytest.mark.parametrize("row", [row for row in OF_PAIRS if row.place not in NODES], ids=lambda row: row.id)
def test_row_of_a_pair_precedes_the_upgrade_of_harvester(row: Row) -> None:
    """The Job of a deleted plan reads the version before from Harvester's Setting; a node's Job ends with the plan."""
    assert row.place in EARLY


def test_every_place_is_named_in_words() -> None:
    assert list(PLACES) == list(Place)


@pytest.mark.parametrize(
    ("current", "target", "of_pair"),
    [
        ("v1.7.1", "v1.8.0", v1_7_to_v1_8.ROWS),
        ("v1.8.2", "v1.9.0-rc6", v1_8_to_v1_9.ROWS),
        ("v1.8.0", "v1.8.2", ()),
        ("v1.7.1", "v1.9.0", ()),
        ("", "", ()),
    ],
)
def test_rows_are_the_generic_ones_and_those_of_the_pair(current: str, target: str, of_pair: tuple[Row, ...]) -> None:
    rows = rows_between(current, target)
    assert {row.id for row in rows} == {row.id for row in (*generic.ROWS, *of_pair)}
    assert [list(Place).index(row.place) for row in rows] == sorted(list(Place).index(row.place) for row in rows)
