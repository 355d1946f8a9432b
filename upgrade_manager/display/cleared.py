"""The end of warnings: which of them report a blocker that is over; view.py marks them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from upgrade_manager.display.model import EventRow

#: The message of pipeline/events.py at the end of a blocker; the name may have a namespace before it.
_CLEARED = re.compile(r"\S+ (?:\S+/)?(?P<name>[^/\s]+): (?P<reason>\w+) is cleared$")


def marked(rows: Iterable[EventRow]) -> tuple[EventRow, ...]:
    """Return the events, in their order, each Warning with the time at which its blocker has cleared."""
    listed = [*rows]
    ends = [*_ends(listed)]
    return tuple(_with_end(row, ends) if row.type == "Warning" else row for row in listed)


def _ends(rows: Iterable[EventRow]) -> Iterator[tuple[str, str, EventRow]]:
    """Yield the reason and the name of each blocker that has cleared, with the event that says so."""
    for row in rows:
        found = _CLEARED.match(row.message) if row.reason == "BlockerCleared" else None
        if found is not None:
            yield found["reason"], found["name"], row


def _with_end(row: EventRow, ends: Sequence[tuple[str, str, EventRow]]) -> EventRow:
    for reason, name, end in ends:
        is_about = reason == row.reason and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", row.message)
        # The blocker may have come back since.
        if is_about and row.time is not None and end.time is not None and row.time <= end.time:
            return replace(row, cleared=end.time)
    return row
