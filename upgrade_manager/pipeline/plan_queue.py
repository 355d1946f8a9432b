"""The queue of plans that wait for a holder of the cluster, in the order of their creation.

acceptance.py asks before a plan or an attempt starts; controller.py enqueues waiting plans once another one has ended.
holders.py has the other holders.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import UNKNOWN_TIME, is_requested
from upgrade_manager.api.conditions import (
    AVAILABLE,
    CLEANING_UP,
    CONCURRENT_UPGRADE_BLOCKED,
    DEGRADED,
    RECONCILE_ERROR,
    WAITING,
    find_condition,
)
from upgrade_manager.api.holds import continue_command
from upgrade_manager.api.keys import KIND
from upgrade_manager.api.remedy import Remedy, remedy_text
from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.facts import holders as rules
from upgrade_manager.facts.holders import Holder
from upgrade_manager.kube import objects
from upgrade_manager.kube.store import ChangeKind
from upgrade_manager.pipeline import vm_recovery
from upgrade_manager.pipeline.outcome import Failed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change
    from upgrade_manager.pipeline.context import ReconcileContext

#: The longest time in the queue: a user does not expect an upgrade that starts days later.
LONGEST = timedelta(hours=24)
#: Seconds between two looks at the caches, beside the changes that trigger a reconcile.
RETRY = 300.0
_STARTS = "this plan starts by itself once nothing holds the cluster"
_LATE = "Once nothing holds the cluster, create a new UpgradePlan, or raise spec.attempt of this one by one"


def waits(plan: Object) -> bool:
    """Return True for a plan, or for its next attempt, that has not started."""
    phase = objects.text(plan, "status", "currentPhase")
    return not objects.is_deleting(plan) and (not phase or is_requested(plan))


def frees(change: Change) -> bool:
    """Return True if the change of a plan may let another one start."""
    if change.kind is ChangeKind.DELETED:
        return _holds(change.obj)
    return change.old is not None and _holds(change.old) and not _holds(change.obj)


def _holds(plan: Object) -> bool:
    return waits(plan) or rules.plan(plan) is not None


def first(ctx: ReconcileContext, others: Iterable[Object], *, failing: Collection[str]) -> Holder | None:
    """Return the plan that holds this one back: one that runs, or the first one before it in the queue.

    A plan whose own start raises errors (`failing` has its uid) does not hold up those behind it.
    """
    others = sorted(others, key=_order)
    running = next((found for found in map(rules.plan, others) if found is not None), None)
    if running is not None:
        return running
    before = [one for one in others if waits(one) and not _is_paused(one) and _order(one) < _order(ctx.raw)]
    ahead = next((one for one in before if objects.uid(one) not in failing), None)
    if ahead is None:
        return None
    name = objects.name(ahead)
    return Holder(kind=KIND, name=name, why="was created before this one, and starts first", ways_out=())


def _is_paused(plan: Object) -> bool:
    """Return True for an attempt that begins only once its user continues the plan, which may be never."""
    return is_requested(plan) and objects.is_true(plan, "spec", "paused")


def _order(plan: Object) -> tuple[str, str]:
    return objects.text(plan, "metadata", "creationTimestamp"), objects.name(plan)


async def wait(ctx: ReconcileContext, holder: Holder) -> float:
    """Record that the plan waits for the holder; return the seconds until the next look."""
    since = _since(ctx)
    text = f"{holder}; {_STARTS}. {remedy_text(holder.ways_out)}"
    ctx.status.queue(text.rstrip(". "), since=format_time(since))
    if (find_condition(ctx.status["conditions"], DEGRADED) or {}).get("reason") == RECONCILE_ERROR:
        # This reconcile has succeeded. A record that another plan has taken over stays.
        ctx.status.unmark(DEGRADED)
    times = [RETRY, (since + LONGEST - ctx.now()).total_seconds()]
    if not ctx.status.phase:
        # An attempt that waits counts as failed until it starts, so that Harvester recovers VMs.
        todo = f"Delete the plan if it is not to start by itself until {format_time(since + LONGEST)}"
        left = await vm_recovery.report(ctx, since=since, todo=todo)
        times += [left] if left is not None else []
    return max(0.0, min(times))


def check(ctx: ReconcileContext, message: str) -> None:
    """Record that the checks before an attempt have not ended."""
    ctx.status.queue(message, since=format_time(_since(ctx)), reason=WAITING)


def await_clean_up(ctx: ReconcileContext) -> None:
    """Record that the attempt waits for the end of the failed one, which counts for no time in the queue."""
    text = "The next attempt waits for the end of the clean-up"
    ctx.status.queue(text, since=format_time(ctx.now()), reason=CLEANING_UP)


def pause(ctx: ReconcileContext) -> None:
    """Record that the attempt of a paused plan waits for its user, which counts for no time in the queue."""
    command = continue_command(ctx.owner.name)
    text = f"The next attempt waits, because spec.paused is true. To continue: {command}"
    ctx.status.queue(text, since=None, reason=WAITING)


def hold(other: ReconcileContext, starting: ReconcileContext) -> None:
    """Record that another plan starts. Each call changes the status, so that older writes of its start conflict."""
    began = starting.now().isoformat(timespec="microseconds")
    text = f"{KIND} {starting.owner.name} is in progress, begun at {began}; {_STARTS}"
    other.status.queue(text, since=format_time(_since(other)))


def _since(ctx: ReconcileContext) -> datetime:
    """Return the time since which the plan waits; a plan that an earlier version has blocked waits since then."""
    available = find_condition(ctx.status["conditions"], AVAILABLE) or {}
    if available.get("reason") == CLEANING_UP:
        return ctx.now()
    blocked = available.get("lastTransitionTime") if available.get("reason") == CONCURRENT_UPGRADE_BLOCKED else None
    return parse_time(ctx.status["queuedSince"]) or parse_time(blocked) or ctx.now()


def is_over(ctx: ReconcileContext) -> bool:
    """Return True once the plan has waited for too long."""
    return ctx.now() - _since(ctx) >= LONGEST


def leave(ctx: ReconcileContext) -> None:
    """Record that the plan does not wait any more."""
    ctx.status["queuedSince"] = None
    vm_recovery.clear(ctx)


def too_late(holder: Holder) -> Failed:
    """Return the failure of a plan, or of an attempt, that has waited for too long."""
    return Failed(cause=f"The plan waited for 24 h: {holder}", advice=_LATE)


def refuse(ctx: ReconcileContext, failed: Failed) -> None:
    """End a plan that was never accepted, without a clean-up: it has changed nothing."""
    began = format_time(_since(ctx))
    leave(ctx)
    status = ctx.status
    status.fail(failed.message, cause=failed.cause, todo=_LATE, steps=[Remedy(_LATE)])
    # A plan that no phase has reached began with its wait.
    status["attempts"] = [
        {**one, "begin": began} if one["begin"] == UNKNOWN_TIME else one for one in status["attempts"]
    ]
    status.cleaned_up()
