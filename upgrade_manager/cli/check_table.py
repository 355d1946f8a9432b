"""The table of checks that `upgrade-manager preflight` and `check` print, and below it the commands.

preflight_view.py and check.py make the entries. Details are wrapped in their column on a terminal, and never in a file
or a pipe. A command stands alone on its line, which nothing but the terminal wraps.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Columns of details that are left on a terminal which is too narrow for the table.
_MIN_DETAILS = 20
_RESULT = 9
#: Outcomes in the order of the table: what needs the user comes last, which a low terminal still shows.
_ORDER = ("passed", "skipped", "warning", "unknown", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One check; its texts have no control characters."""

    name: str
    outcome: str
    #: Each begins a line.
    details: Sequence[str]
    #: Groups of lines to copy, comments among them.
    remedies: Sequence[Sequence[str]] = ()


def terminal_width() -> int | None:
    """Return the columns of standard output; None for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table_lines(entries: Sequence[Entry], *, width: int | None) -> Iterator[str]:
    """Yield the lines of the table, and of the remedies below it."""
    entries = sorted(entries, key=lambda one: _ORDER.index(one.outcome))
    column = max(len(one.name) for one in entries) + 2
    yield f"{'CHECK':<{column}}{'RESULT':<{_RESULT}}DETAILS"
    room = max(width - column - _RESULT, _MIN_DETAILS) if width else 0
    for entry in entries:
        name, outcome = entry.name, entry.outcome
        for detail in _wrapped(entry.details, room):
            yield f"{name:<{column}}{outcome:<{_RESULT}}{detail}".rstrip()
            name = outcome = ""
    remedies = [lines for entry in entries for lines in entry.remedies]
    if remedies:
        yield from ("", "REMEDIES")
    for lines in remedies:
        yield from lines


def _wrapped(details: Sequence[str], room: int) -> Iterator[str]:
    for detail in details or [""]:
        # A name or a URL that is broken could not be copied.
        wrapped = textwrap.wrap(detail, room, break_long_words=False, break_on_hyphens=False) if room else []
        yield from wrapped or [detail]
