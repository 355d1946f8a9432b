"""Undoes the changes of all hosts after a failure and before a deletion, for some minutes at most.

conclusion.py calls it before the clean-up, which removes all Plans. What is left passes to the next plan
(../ending/passing_on.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.api.remedy import as_line
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube import objects
from upgrade_manager.pipeline import host_changes
from upgrade_manager.pipeline.ending.passing_on import EVENT_REASON
from upgrade_manager.pipeline.phases import host_plans

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext

#: Seconds for all changes together, since the failure or since the request for deletion.
LIMIT = 600.0
#: Seconds between two looks at the Plans, in the first seconds, in which they usually end, and later.
SOON, LATER, EARLY = 2.0, 10.0, 30.0


async def undo(ctx: ReconcileContext) -> float | None:
    """Undo what has begun; return the seconds to the next attempt, None once all is undone or the time is over.

    Raises KubeError and RetryError, which the caller retries within the time.
    """
    if ctx.status.phase == SUCCEEDED or not _begun(ctx):
        return None
    left = _seconds_left(ctx)
    if left > 0:
        waiting = await host_plans.undo(ctx, succeeds=False)
        if waiting is not None:
            # No watch causes a reconcile of a plan that has ended.
            return min(left, SOON if LIMIT - left < EARLY else LATER)
    await _name(ctx)
    return None


def _begun(ctx: ReconcileContext) -> bool:
    return any(change.entry(ctx) is not None for change in host_changes.CHANGES)


def _seconds_left(ctx: ReconcileContext) -> float:
    deleted = parse_time(objects.metadata(ctx.raw).get("deletionTimestamp"))
    began = deleted or ctx.status.phase_began or ctx.now()
    return LIMIT - seconds_between(began, ctx.now())


async def _name(ctx: ReconcileContext) -> None:
    """Name what is left in an event, and in the next steps of a failure; passing_on.leave names it at a deletion."""
    steps = await host_changes.left(ctx)
    if steps and not objects.is_deleting(ctx.raw):
        ctx.events.warning(ctx.raw, EVENT_REASON, as_line(steps))
        ctx.status.remind(steps)
