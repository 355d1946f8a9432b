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
#: Characters of a command; a longer one is left out, because a command that is cut would be another one.
MAX_COMMAND = 2000


def step_entries(steps: Iterable[Remedy]) -> list[dict[str, str]]:
    """Return the raw entries of the steps, as many as the status may hold."""
    return [_bounded(step).entry() for step in steps][:MAX_STEPS]


def _bounded(step: Remedy) -> Remedy:
    command = one_line(step.command)
    return Remedy(bounded_line(step.text), command=command if len(command) <= MAX_COMMAND else "")
