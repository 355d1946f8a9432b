"""The end of blockers as events report it: view.py marks the warnings that are over, holdups.py shows for how long."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.history import BLOCKER_CLEARED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.display.model import EventRow

#: The text of `cleared_text`.
_CLEARED = re.compile(r"(?P<object>.+): (?P<reason>\w+) is cleared$")


class Cleared(NamedTuple):
    """The blocker that an event reports as cleared."""

    reason: str
    #: Such as `PodDisruptionBudget default/shop`.
    object: str

    @property
    def name(self) -> str:
        """The object's name without kind and namespace."""
        return re.split("[ /]", self.object)[-1]


def cleared_by(row: EventRow) -> Cleared | None:
    """Return the blocker that the event reports as cleared; None for another event."""
    found = _CLEARED.match(row.message) if row.reason == BLOCKER_CLEARED else None
    return Cleared(reason=found["reason"], object=found["object"]) if found is not None else None


def marked(rows: Iterable[EventRow]) -> tuple[EventRow, ...]:
    """Return the events, in their order, each Warning with the time at which its blocker has cleared."""
    listed = [*rows]
    ends = [(found, row) for row in listed if (found := cleared_by(row)) is not None]
    return tuple(_with_end(row, ends) if row.type == "Warning" else row for row in listed)


def _with_end(row: EventRow, ends: Sequence[tuple[Cleared, EventRow]]) -> EventRow:
    for blocker, end in ends:
        name = re.escape(blocker.name)
        is_about = blocker.reason == row.reason and re.search(rf"(?<![\w.-]){name}(?![\w-])", row.message)
        # The blocker may have come back since.
        if is_about and row.time is not None and end.time is not None and row.time <= end.time:
            return replace(row, cleared=end.time)
    return row
