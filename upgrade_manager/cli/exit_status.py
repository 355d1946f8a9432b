"""The exit status by the state of a plan, for scripts.

wait.py returns it, and status.py with --exit-code.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from upgrade_manager.display.model import PlanState

if TYPE_CHECKING:
    from upgrade_manager.display.model import View


class ExitStatus(IntEnum):
    """The exit status of commands for scripts. 2 is a usage error."""

    #: The upgrade has succeeded, or goes on.
    SUCCEEDED = 0
    #: The plan has failed or was deleted.
    FAILED = 1
    STALLED = 3
    #: As of coreutils' timeout.
    TIMED_OUT = 124


def exit_status(view: View) -> ExitStatus:
    """Return the exit status of a plan's state."""
    if view.state is PlanState.FAILED:
        return ExitStatus.FAILED
    is_stalled = view.is_stalled and view.state is not PlanState.SUCCEEDED
    return ExitStatus.STALLED if is_stalled else ExitStatus.SUCCEEDED
