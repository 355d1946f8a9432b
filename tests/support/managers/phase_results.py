"""Results of phases, for comparison."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from upgrade_manager.blockers.wait import ImageWait
from upgrade_manager.pipeline.outcome import PhaseResult, Waiting

_LATER = datetime(2100, 1, 1, tzinfo=UTC)
#: The waits of a phase that is not a real one; they never become overdue.
WAITS = (ImageWait(namespace="harvester-system", name="an-image", since=_LATER, imported=_LATER),)


def shown(result: PhaseResult | None) -> PhaseResult | None:
    """Return the result without its waits, which have tests beside the finders'."""
    return replace(result, waits=()) if isinstance(result, Waiting) else result
