"""The command `upgrade-manager steps`."""

from __future__ import annotations

import pytest

from upgrade_manager.cli.steps import steps
from upgrade_manager.cli.user_options import StepsOptions
from upgrade_manager.release.migrations import generic, v1_8_to_v1_9
from upgrade_manager.release.migrations.pairs import rows_between
from upgrade_manager.release.migrations.row import Place


def test_each_row_is_printed_under_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert steps(StepsOptions(current="v1.7.1", target="v1.8.0")) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    places = [line.partition("  ")[0] for line in lines if line.partition("  ")[0] in {place.value for place in Place}]
    assert places == list(dict.fromkeys(row.place.value for row in rows_between("v1.7.1", "v1.8.0")))
    for row in rows_between("v1.7.1", "v1.8.0"):
        scope = "every upgrade" if row in generic.ROWS else "these releases"
        at = lines.index(f"  {row.id} ({scope})")
        assert lines[at + 1] == f"    {row.step}"
        assert lines[at + 2 : at + 2 + len(row.changes)] == [f"    changes  {change}" for change in row.changes]
        assert lines[at + 2 + len(row.changes)] == f"    by       {row.carried_out}"
        assert f"    done if  {row.done_if}" in lines[at:]
        assert f"    undo     {row.undo}" in lines[at:]
        assert all(f"    source   {source}" in lines[at:] for source in row.sources)


@pytest.mark.parametrize(
    ("current", "target", "words", "of_pair"),
    [
        ("v1.6.1", "v1.7.1", "the step from v1.6 to v1.7 is not supported", 0),
        ("v1.8.0", "v1.9.0", "the steps from v1.8 to v1.9 are provisional", len(v1_8_to_v1_9.ROWS)),
        ("v1.7.1", "newest", "newest is not a release", 0),
    ],
)
def test_refused_pair_has_the_rows_that_are_known(
    capsys: pytest.CaptureFixture[str], current: str, target: str, words: str, of_pair: int
) -> None:
    assert steps(StepsOptions(current=current, target=target)) == 1
    out, err = capsys.readouterr()
    assert err.startswith(f"upgrade-manager: {words}")
    assert out.count("(every upgrade)") == len(generic.ROWS)
    assert out.count("(these releases)") == of_pair


def test_upgrade_within_a_minor_release_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert steps(StepsOptions(current="v1.8.0", target="v1.8.1")) == 0
    assert "(these releases)" not in capsys.readouterr().out
