"""Records the toolkit image of a plan, and reports the image.

`api.toolkit_image` decides on the image; Initialize and the reconciler call this module before they create objects.
`ReconcileContext.toolkit` reads the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import BadAnnotation
from upgrade_manager.api.keys import ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
from upgrade_manager.api.migration_failure import refusal
from upgrade_manager.api.phases import FAILED, PhaseName
from upgrade_manager.api.status import ToolkitImageStatus
from upgrade_manager.api.toolkit_image import ToolkitRefusal, decide, decide_as_before, guess_message, read_choice
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.events import TOOLKIT_IMAGE_CHOSEN, TOOLKIT_TAG_GUESSED

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.pipeline.context import ReconcileContext

_INITIALIZING = PhaseName.INITIALIZE.active
_FIELD = "toolkitImage"
#: Characters of an annotation's value.
_MAX_SHOWN = 300


def record(ctx: ReconcileContext) -> tuple[str, ...]:
    """Decide on the image unless it is recorded; return the problems that prevent a decision."""
    if ctx.status[_FIELD]:
        return ()
    plan = ctx.plan
    decision = decide(plan.spec, plan.annotations, ctx.settings.toolkit)
    if isinstance(decision, ToolkitRefusal):
        return tuple(problem.message for problem in decision.problems)
    ctx.status[_FIELD] = decision.entry(plan.annotations)
    return ()


def record_again(ctx: ReconcileContext) -> tuple[str, ...]:
    """Decide on the image of a new attempt; return the problems, with which the recorded one stays."""
    before, ctx.status[_FIELD] = ctx.status[_FIELD], None
    problems = record(ctx)
    if problems:
        ctx.status[_FIELD] = before
    return problems


async def ensure(ctx: ReconcileContext) -> tuple[str, ...]:
    """Record, write and report the image, or return the problems that prevent a decision."""
    problems = record(ctx)
    if problems:
        return problems
    if _recorded(ctx) is None:
        await ctx.persist()
    report(ctx)
    return ()


def refused_waits(ctx: ReconcileContext) -> tuple[str, ...]:
    """Return what the plan requests for VMs whose migration fails, and its toolkit cannot do; nothing without one."""
    kind = objects.text(ctx.status[_FIELD], "kind")
    problem = refusal(ctx.plan.spec.node_upgrade_option.on_migration_failure, kind=kind) if kind else ""
    return (problem,) if problem else ()


def adopt(ctx: ReconcileContext) -> bool:
    """Record the image of an upgrade that version 0.1 of the manager began; return True if the record is new.

    Raises RetryError also for an annotation that this version refuses.
    """
    if ctx.status[_FIELD] or ctx.status.phase == _INITIALIZING:
        return False
    plan = ctx.plan
    choice = decide_as_before(plan.spec, plan.annotations, ctx.settings.toolkit, release=ctx.release)
    if isinstance(choice, BadAnnotation):
        raise RetryError(str(choice))
    ctx.status[_FIELD] = choice.entry(plan.annotations)
    return True


def report(ctx: ReconcileContext, *, at: datetime | None = None) -> None:
    """Record the events about the recorded image, each once; `at` is the time of the record."""
    recorded = _recorded(ctx)
    if recorded is None:
        return
    choice = read_choice(recorded, ctx.plan.spec, ctx.settings.toolkit)
    message = ". ".join((f"Toolkit image {choice.summary}", *choice.ignored, f"The plan was created by: {ctx.creator}"))
    events = {TOOLKIT_IMAGE_CHOSEN: message}
    if choice.guessed:
        events[TOOLKIT_TAG_GUESSED] = guess_message(choice.tag)
    for reason, text in events.items():
        ctx.events.once(ctx.raw, reason, text, about="", phase=_INITIALIZING, at=at)


def report_changes(ctx: ReconcileContext) -> None:
    """Warn of annotations that differ from those at the decision: once for each value, until the plan has failed.

    Warn also of an option that the decided toolkit cannot serve, and that no webhook has refused.
    """
    recorded = _recorded(ctx)
    if recorded is None or ctx.status.phase in {"", FAILED}:
        return
    known = {ANNOTATION_TOOLKIT_IMAGE: recorded.annotated_image, ANNOTATION_TOOLKIT_KIND: recorded.annotated_kind}
    for key, before in known.items():
        now = ctx.plan.annotations.raw.get(key, "")
        if now != before:
            change = f"changed from {before or 'unset'} to {now[:_MAX_SHOWN] or 'unset'}"
            text = (
                f"Annotation {key} was {change} after the toolkit image was decided. That has no effect on this "
                f"upgrade, which uses {ctx.toolkit}"
            )
            about = f"{key}={now}"
            ctx.events.warning(ctx.raw, "ToolkitChangeIgnored", text, about=about, first_phase=_INITIALIZING)
    for problem in refused_waits(ctx) if ctx.status.phase != _INITIALIZING else ():
        ctx.events.warning(ctx.raw, "OptionIgnored", problem, about=problem, first_phase=_INITIALIZING)


def _recorded(ctx: ReconcileContext) -> ToolkitImageStatus | None:
    """Return the record in the written status; None before the first write."""
    recorded = ToolkitImageStatus.read(objects.status(ctx.raw).get(_FIELD))
    return recorded if recorded.repository else None
