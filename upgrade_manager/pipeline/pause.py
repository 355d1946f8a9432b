"""The pause of a plan: where it holds, and the conditions and events about it.

engine.py asks `before` at the begin of a phase, nodes/gate.py has the row of the nodes, and reconciler.py calls the
others while a plan is paused, or was. `spec` is the user's: the manager never writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import requested_attempt
from upgrade_manager.api.attribution import last_changed_by
from upgrade_manager.api.conditions import (
    PAUSE_AFTER,
    PAUSE_BEFORE,
    PAUSED,
    PAUSING,
    TRUE,
    find_condition,
)
from upgrade_manager.api.history import UPGRADE_CONTINUED, UPGRADE_PAUSED
from upgrade_manager.api.holds import HoldPoint, continue_command, held_nodes, next_point
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.api.node_states import upgraded_nodes
from upgrade_manager.api.phases import PHASES, phase_of, recorded_phases
from upgrade_manager.api.text import one_line
from upgrade_manager.api.timestamps import format_clock, format_duration, format_time, parse_time, seconds_between
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.kube import objects
from upgrade_manager.pipeline import continuations, vm_recovery
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from upgrade_manager.api.phases import PhaseName
    from upgrade_manager.pipeline.context import ReconcileContext

#: The cause of a pause that no user has begun, by its reason.
_CAUSES = {
    PAUSE_AFTER: "Paused by spec.nodeUpgradeOption.pauseAfter",
    PAUSE_BEFORE: "Paused by spec.nodeUpgradeOption.pauseBefore",
}
#: Characters of a user's name.
_MAX_USER = 100
#: Seconds after a new pause is written until its event.
_EVENT = 1.0
#: The way out of the time without recovery of VMs.
_TODO = "Continue the upgrade, or watch the nodes"


def reason_of(ctx: ReconcileContext, *, done: int | None = None) -> str:
    """Return why the plan holds before what comes next; empty if it goes on, and in the last phase.

    `done` is the number of nodes that are done; None for those that the status shows.
    """
    spec = ctx.plan.spec
    after = spec.node_upgrade_option.pause_after
    if ctx.status.ended:
        # A canary holds nodes, not an attempt.
        return PAUSED if spec.paused else ""
    if phase_of(ctx.status.phase) is PHASES[-1]:
        return ""
    if spec.paused:
        return PAUSED
    if not after:
        return ""
    count = upgraded_nodes(ctx.status.fields) if done is None else done
    return PAUSE_AFTER if count >= after else ""


def before(ctx: ReconcileContext, phase: PhaseName) -> Waiting | None:
    """Return the wait of a paused plan before the phase."""
    if not reason_of(ctx):
        return None
    return Waiting(message=f"Paused before phase {phase}", waits=(), held=f"before phase {phase}")


async def observe(ctx: ReconcileContext) -> None:
    """Let nodes go on that users name, send the event of the recorded pause, and end a pause that users have ended.

    Nothing begins before these are written.
    """
    if ANNOTATION_CONTINUE in ctx.plan.annotations.raw:
        await continuations.take(ctx, user=user_of(ctx))
    if await ended(ctx):
        # The write conflicts if the plan is paused again meanwhile.
        await ctx.persist()


async def ended(ctx: ReconcileContext) -> bool:
    """Send the event of the recorded pause; return True if its cause is over, which the caller writes."""
    if _began(ctx) is None:
        is_over = bool(ctx.status["pausedSince"]) and not _reason(ctx)
        if is_over:
            await _end(ctx)
        return is_over
    recorded = _Recorded.of(ctx)
    cause = _cause(ctx, recorded.reason)
    ctx.events.once(ctx.raw, UPGRADE_PAUSED, cause, about=recorded.about, phase=recorded.phase, at=recorded.began)
    now = _reason(ctx)
    if now == recorded.reason:
        return False
    if now:
        # The pause of another cause begins, which has its own user.
        await ctx.events.sent(ctx.raw)
        _forget(ctx)
    else:
        await _end(ctx)
    return True


async def leave(ctx: ReconcileContext) -> None:
    """Remove what says that the upgrade holds: a node goes on while others hold. `report` ends the pause."""
    await ctx.events.sent(ctx.raw)
    _forget(ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """A pause as the API server has it, with what the names of its events are made from."""

    began: datetime | None
    #: Empty for a pause whose cause is over, and whose next cause is not recorded.
    reason: str
    phase: str
    #: The same in each process that sends the events again, and another one for each pause.
    about: str

    @classmethod
    def of(cls, ctx: ReconcileContext) -> _Recorded:
        """Read the condition; without it, the time since which the upgrade was paused."""
        status, condition = objects.status(ctx.raw), objects.condition(ctx.raw, PAUSED)
        reason = _reason_recorded(condition)
        time = objects.text(condition, "lastTransitionTime") if reason else objects.text(status, "pausedSince")
        # Earlier versions of the manager have not counted the pauses.
        number = str(objects.number(status, "pauses") or "")
        about = "/".join(filter(None, (time, reason, number)))
        return cls(began=parse_time(time), reason=reason, phase=_phase_at(status, time), about=about)


async def _end(ctx: ReconcileContext) -> None:
    """End the recorded pause, if there is one, after its event."""
    recorded = _Recorded.of(ctx)
    if recorded.began is not None:
        lasted = format_duration(seconds_between(recorded.began, ctx.now()))
        text = f"Continued after {lasted} (last change of the plan: {user_of(ctx)})"
        ctx.events.once(ctx.raw, UPGRADE_CONTINUED, text, about=recorded.about, phase=recorded.phase)
        # No field shows the pause afterwards.
        await ctx.events.sent(ctx.raw)
    end(ctx)


async def report(ctx: ReconcileContext, waiting: Waiting) -> Waiting:
    """Set the conditions of a paused plan; return its wait, which is not a blocker where nothing runs."""
    reason = _reason(ctx, may_hold=bool(waiting.held))
    if not reason:
        # Something of the upgrade runs again, or the next cause has ended before it was recorded.
        await _end(ctx)
        return waiting
    event = _event_due(ctx)
    _mark(ctx, waiting, reason=reason)
    # Earlier versions of the manager have not recorded it.
    since = parse_time(ctx.status["pausedSince"]) or _began(ctx) or ctx.now()
    ctx.status["pausedSince"] = format_time(since)
    recovery = await vm_recovery.report(ctx, since=since, todo=_TODO)
    after = min((seconds for seconds in (waiting.after, recovery, event) if seconds is not None), default=None)
    # Nothing is overdue while nothing runs.
    return replace(waiting, after=after, waits=(), detail="") if waiting.held else replace(waiting, after=after)


def hold_attempt(ctx: ReconcileContext) -> float | None:
    """Set the condition of a paused attempt that has not begun; return the seconds until the event, None if it is sent.

    Harvester recovers VMs meanwhile, because the plan has failed.
    """
    attempt, event = requested_attempt(objects.spec(ctx.raw)), _event_due(ctx)
    _mark(ctx, Waiting(message="", waits=(), held=f"before attempt {attempt}"), reason=PAUSED)
    return event


def _event_due(ctx: ReconcileContext) -> float | None:
    """Return the seconds until the event of a new pause, which follows its record; None for a recorded one."""
    return _EVENT if _began(ctx) is None else None


def _mark(ctx: ReconcileContext, waiting: Waiting, *, reason: str) -> None:
    """Set the condition Paused, and what of it is not text."""
    began = _began(ctx)
    if began is None:
        ctx.status["pauses"] = (ctx.status["pauses"] or 0) + 1
    ctx.status["pausedBy"] = ctx.status["pausedBy"] or user_of(ctx)
    ctx.status["holds"] = waiting.held or None
    ctx.status["estimatedCompletion"] = None
    shown = PAUSING if reason == PAUSED and not waiting.held else reason
    ctx.status.mark(PAUSED, shown, _message(ctx, waiting, began or ctx.now(), reason=reason))


def _reason(ctx: ReconcileContext, *, may_hold: bool = True) -> str:
    """Return why the plan or a node holds; a node counts only if it `may_hold` up the plan. Empty if it goes on."""
    return reason_of(ctx) or (PAUSE_BEFORE if may_hold and _is_node_held(ctx) else "")


def _reason_recorded(condition: Mapping[str, Any]) -> str:
    """Return the reason of a recorded pause, whether something of the upgrade still runs or not."""
    reason = objects.text(condition, "reason")
    return PAUSED if reason == PAUSING else reason


def _is_node_held(ctx: ReconcileContext) -> bool:
    """Return True if a node holds by pauseBefore as it is now; none holds up an attempt that has not begun."""
    if ctx.status.ended:
        return False
    held = held_nodes(ctx.status.fields)
    return not set(ctx.plan.spec.node_upgrade_option.pause_before).isdisjoint(held.values())


def end(ctx: ReconcileContext) -> None:
    """Remove what describes a pause."""
    _forget(ctx)
    ctx.status["pausedSince"] = None
    vm_recovery.clear(ctx)


def _forget(ctx: ReconcileContext) -> None:
    ctx.status["pausedBy"] = ctx.status["holds"] = None
    ctx.status.unmark(PAUSED)


def user_of(ctx: ReconcileContext) -> str:
    """Return the user of the last change of the plan, for messages."""
    name = one_line(last_changed_by(ctx.plan.spec, ctx.plan.annotations.raw))
    return name if len(name) <= _MAX_USER else f"{name[:_MAX_USER]}…"


def _message(ctx: ReconcileContext, waiting: Waiting, began: datetime, *, reason: str) -> str:
    """Return since when and by whom, where it holds and what runs, with the command at the end."""
    begun = f"{_cause(ctx, reason)} at {format_clock(began)}"
    held = held_nodes(ctx.status.fields)
    node = next(iter(held)) if reason == PAUSE_BEFORE and held else ""
    command = continue_command(ctx.owner.name, node)
    if not waiting.held:
        until = f"Until then {phase_of(ctx.status.phase)} runs: {waiting.message}"
        where = f"The upgrade will hold {next_point(ctx.status.fields)}. {until}"
    elif ctx.status.ended:
        where = f"The upgrade holds {waiting.held}. A Job of the failed one that still runs is finished"
    else:
        where = f"The upgrade holds {waiting.held}{_early(ctx, held)}, and nothing of it runs"
    return f"{begun}. {where}. To continue: {command}"


def _early(ctx: ReconcileContext, held: Mapping[str, str]) -> str:
    """Return where a node holds before its reboot if its Job cannot hold; empty for others."""
    if HoldPoint.REBOOT not in held.values() or is_own(ctx.status["toolkitImage"]):
        return ""
    return " (with Harvester's toolkit already before the Job that upgrades its system)"


def _cause(ctx: ReconcileContext, reason: str) -> str:
    by, cause = ctx.status["pausedBy"], _CAUSES.get(reason)
    return f"{cause} (last change of the plan: {by})" if cause else f"Paused by {by}"


def _began(ctx: ReconcileContext) -> datetime | None:
    """Return the begin of the recorded pause; None without one."""
    found = find_condition(ctx.status["conditions"], PAUSED)
    return parse_time(found.get("lastTransitionTime")) if found and found.get("status") == TRUE else None


def _phase_at(status: Mapping[str, Any], moment: str) -> str:
    """Return the phase value at that time, which each process names that sends the events again."""
    entries = status.get("phaseTransitionTimestamps") or []
    earlier = [one["phase"] for one in entries if (one.get("phaseTransitionTimestamp") or "") < moment]
    return str(earlier[-1] if earlier else next(iter(recorded_phases(status)), ""))
