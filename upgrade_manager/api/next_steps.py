"""The next steps of a user after the end of a plan, in `status.nextSteps`, in the form of remedies.

pipeline/ending/failure.py and settlement.py find them, and pipeline/status.py writes those of a failure; the displays
show them under NEXT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import bounded_line, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Entries in the status.
MAX_STEPS = 30
#: The last entries, which stay: the log, the way by kubectl or the next plan, and the way without the manager.
LAST = 3
#: Nodes in one state that have an entry each; a further one is for all others.
MAX_NODES = 8
#: Characters of a command; a longer one is left out, because a command that is cut would be another one.
MAX_COMMAND = 2000


def step_entries(steps: Iterable[Remedy]) -> list[dict[str, str]]:
    """Return the raw entries of the steps, as many as the status may hold."""
    return fitting([_bounded(step).entry() for step in steps])


def with_reminders(known: list[dict[str, str]], steps: Iterable[Remedy]) -> list[dict[str, str]]:
    """Return the known entries with those of more steps, each once, after the first one, which has what to do.

    A full list stays as it is: an entry that was left out is not a new one.
    """
    added = [entry for entry in step_entries(steps) if entry not in known]
    return known if len(known) == MAX_STEPS else fitting([*known[:1], *added, *known[1:]])


def fitting(entries: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the entries; of too many, the first and the last ones, and the number of those between."""
    if len(entries) <= MAX_STEPS:
        return entries
    first = MAX_STEPS - LAST - 1
    left_out = {"text": f"And {len(entries) - first - LAST} more steps like these"}
    return [*entries[:first], left_out, *entries[-LAST:]]


def _bounded(step: Remedy) -> Remedy:
    command = one_line(step.command)
    return Remedy(bounded_line(step.text), command=command if len(command) <= MAX_COMMAND else "")
