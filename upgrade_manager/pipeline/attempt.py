"""A new attempt of a plan that has failed: it goes on with the phase and the nodes that failed.

acceptance.py calls it for a plan whose `spec.attempt` was raised, once the failed attempt has given everything back.
What is done stays done: the image, the repository, preloaded images, upgraded components and nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import requested_attempt, with_begun
from upgrade_manager.api.in_progress import blocks_next_plan, is_in_progress
from upgrade_manager.api.node_states import resumed_entry
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

#: The fields that describe a failure.
_OF_FAILURE = ("nextSteps", "cleanupPending")


def held_by(others: Iterable[Object]) -> Waiting | None:
    """Return the wait for another plan that runs, or that gives its settings back."""
    for plan in others:
        if is_in_progress(objects.status(plan)) or blocks_next_plan(objects.status(plan)):
            return Waiting(message=f"The next attempt waits for UpgradePlan {objects.name(plan)} to end", waits=())
    return None


def begin(ctx: ReconcileContext) -> None:
    """Record the begin of the attempt, which the caller writes: nothing was created for it before."""
    status, now = ctx.status, ctx.now()
    entries = [one for one in status["phaseTransitionTimestamps"] or [] if one.get("phase") != FAILED]
    attempt = requested_attempt(objects.spec(ctx.raw))
    status["attempts"] = with_begun(objects.status(ctx.raw), attempt=attempt, now=now)
    status["attempt"] = attempt
    status["phaseTransitionTimestamps"] = entries
    status["currentPhase"] = entries[-1]["phase"] if entries else PhaseName.INITIALIZE.active
    for field in _OF_FAILURE:
        status[field] = None
    nodes = status["nodeUpgradeStatuses"]
    if nodes:
        status["nodeUpgradeStatuses"] = {name: resumed_entry(entry, now=now) for name, entry in nodes.items()}
    status.upgrading(ctx.target)
    status.waiting(f"Attempt {attempt} begins")
    status.healthy()
