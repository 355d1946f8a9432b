"""A new attempt of a plan that has failed: it goes on with the phase and the nodes that failed.

acceptance.py calls it for a plan whose `spec.attempt` was raised, once the failed attempt has given everything back.
What is done stays done: the image, the repository, preloaded images, upgraded components and nodes. An attempt that
cannot begin ends at once, and changes nothing: another plan may run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import requested_attempt, with_begun
from upgrade_manager.api.conditions import DEGRADED, find_condition
from upgrade_manager.api.holds import held_again
from upgrade_manager.api.in_progress import taken_over
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.node_states import resumed_entry
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.facts import image_import
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline import blocker_report
from upgrade_manager.pipeline.ending import failure
from upgrade_manager.pipeline.outcome import Completed, Failed

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.engine import Engine
    from upgrade_manager.pipeline.outcome import PhaseResult

#: The fields that describe a failure.
_OF_FAILURE = ("nextSteps", "cleanupPending")
_CREATE = "Create a new UpgradePlan"


def was_accepted(ctx: ReconcileContext) -> bool:
    """Return False for a plan that was refused in the queue, so that its upgrade has never begun."""
    return PhaseName.INITIALIZE.active in ctx.status.recorded_phases()


def superseded(ctx: ReconcileContext) -> Failed | None:
    """Return the failure of an attempt whose upgrade another plan has taken over."""
    cause = taken_over(objects.status(ctx.raw))
    return Failed(cause=cause, advice=_CREATE, is_final=True) if cause else None


async def check(ctx: ReconcileContext, engine: Engine) -> PhaseResult:
    """Return what holds the attempt up, or what ends it; the toolkit image is decided again if nothing does."""
    found = await _missing_image(ctx)
    if found is not None:
        return found
    before = ctx.status["toolkitImage"]
    result = await engine.check_again(ctx)
    if not isinstance(result, Completed):
        # The image belongs to the attempt, with whose begin it is written.
        ctx.status["toolkitImage"] = before
    return result


async def _missing_image(ctx: ReconcileContext) -> Failed | None:
    """Fail without the ISO's image, which the failure has kept: an import would be a second download.

    A plan that failed under an earlier version of the manager has kept nothing.
    """
    name = ctx.status["isoImageID"]
    if not name or PhaseName.ISO_DOWNLOAD.completed not in ctx.status.recorded_phases():
        return None
    image = await ctx.client.find(VIRTUAL_MACHINE_IMAGES, name, namespace=HARVESTER_SYSTEM, metadata_only=True)
    is_there = image is not None and not objects.is_deleting(image)
    if is_there and (ctx.plan.spec.image or ctx.owner.owns(image or {})):
        return None
    cause = f"{image_import.named(name)} {image_import.missing(name).why}, so that no attempt can go on with it"
    return Failed(cause=cause, advice=_CREATE, is_final=True)


def begin(ctx: ReconcileContext) -> None:
    """Record the begin of the attempt, which the caller writes: nothing was created for it before."""
    status = ctx.status
    _count(ctx)
    entries = status["phaseTransitionTimestamps"]
    status["currentPhase"] = entries[-1]["phase"] if entries else PhaseName.INITIALIZE.active
    for field in _OF_FAILURE:
        status[field] = None
    nodes = status["nodeUpgradeStatuses"]
    if nodes:
        status["nodeUpgradeStatuses"] = {
            name: held_again(resumed_entry(entry, now=ctx.now())) for name, entry in nodes.items()
        }
    blocker_report.clear(ctx)
    # Also a failure is Stalled.
    status.blocked([])
    status.upgrading(ctx.target)
    status.waiting(f"Attempt {status['attempt']} begins")
    status.healthy()


async def refuse(ctx: ReconcileContext, failed: Failed) -> None:
    """Record the end of an attempt that cannot begin; the caller writes it. The plan keeps what it has."""
    degraded = find_condition(ctx.status["conditions"], DEGRADED) if taken_over(objects.status(ctx.raw)) else None
    _count(ctx)
    await failure.record(ctx, replace(failed, is_refusal=True))
    # The attempt has created nothing.
    ctx.status.cleaned_up()
    if degraded is not None:
        # The other plan has the next steps.
        conditions = ctx.status["conditions"]
        ctx.status["conditions"] = [degraded if one["type"] == DEGRADED else one for one in conditions]
        ctx.status["nextSteps"] = None


def _count(ctx: ReconcileContext) -> None:
    """Record the attempt, and remove the failure of the one before from the phases; its time stays in the attempts."""
    status, attempt = ctx.status, requested_attempt(objects.spec(ctx.raw))
    entries = [one for one in status["phaseTransitionTimestamps"] or [] if one.get("phase") != FAILED]
    status["attempts"] = with_begun(objects.status(ctx.raw), attempt=attempt, now=ctx.now())
    status["attempt"] = attempt
    status["phaseTransitionTimestamps"] = entries
