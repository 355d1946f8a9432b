"""The command `upgrade-manager steps`: the changes that an upgrade of two releases makes beside its components.

user_commands.py starts it; release/migrations has the table, which the Jobs carry out.
"""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from upgrade_manager.release.migrations import generic
from upgrade_manager.release.migrations.pairs import refusal, rows_between
from upgrade_manager.release.migrations.row import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.cli.user_options import StepsOptions
    from upgrade_manager.release.migrations.row import Row

_WIDTH = 8
_NOT_ALL = (
    "Harvester's toolkit may make further changes in its Jobs, and not all of these, by its release. docs/releases.md "
    "says what has been shown of them."
)


def steps(options: StepsOptions) -> int:
    """Print the rows and return the exit status: 1 for releases between which an upgrade is refused."""
    sys.stdout.writelines(f"{line}\n" for line in _lines(options.current, options.target))
    refused = refusal(options.current, options.target)
    if refused:
        sys.stderr.write(f"upgrade-manager: {refused}\n")
    return 1 if refused else 0


def _lines(current: str, target: str) -> Iterator[str]:
    yield f"Changes of an upgrade from {current} to {target}, beside the new versions of its components:"
    for place, rows in groupby(rows_between(current, target), key=lambda row: row.place):
        yield ""
        yield f"{place.value}  {PLACES[place]}"
        for row in rows:
            yield from _row(row)
    yield ""
    yield _NOT_ALL


def _row(row: Row) -> Iterator[str]:
    scope = "every upgrade" if row in generic.ROWS else "these releases"
    yield f"  {row.id} ({scope})"
    yield f"    {row.step}"
    for name, values in (
        ("changes", row.changes),
        ("by", (row.carried_out,)),
        ("done if", (row.done_if,)),
        ("undo", (row.undo,)),
        ("source", row.sources),
    ):
        yield from (f"    {name:<{_WIDTH}} {value}" for value in values)
