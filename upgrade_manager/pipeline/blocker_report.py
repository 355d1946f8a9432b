"""Turns the waits of a phase into status.blockers, the Stalled condition, and events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from upgrade_manager.api.advised import with_advised
from upgrade_manager.api.blockers import MAX_TEXT, BlockerReason, continues, entries_of, merge_blockers, read_blockers
from upgrade_manager.api.status import ToolkitImageStatus
from upgrade_manager.api.toolkit_image import origin
from upgrade_manager.blockers.deadlines import earliest
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.jobs import new_job_wait
from upgrade_manager.blockers.object_view import NotSynced, Unreadable
from upgrade_manager.blockers.shared_cause import combine
from upgrade_manager.blockers.table import FINDERS
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.pipeline.events import REPEAT_WINDOW
from upgrade_manager.pipeline.informers import InformerSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.facts.job_state import JobState
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.informers import PlanInformers

#: The reasons of a toolkit image that cannot be pulled.
_UNPULLED = frozenset({BlockerReason.IMAGE_MISSING, BlockerReason.IMAGE_PULL_FAILED})
_REFUSED = frozenset({BlockerReason.WRITE_REFUSED, BlockerReason.CLEANUP_REFUSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerView:
    """Implements View by the plan's informers, which stop when no finder reads them any more."""

    informers: PlanInformers
    now: datetime

    @property
    def is_current(self) -> bool:
        """See View."""
        return self.informers.are_current

    def objects(self, selection: Selection) -> Sequence[Object]:
        """See View."""
        return self._store(selection).list()

    def objects_by(self, selection: Selection, function: Callable[[Object], str], value: str) -> Sequence[Object]:
        """See View."""
        return self._store(selection).list_by(function, value)

    def _store(self, selection: Selection) -> Store:
        spec = InformerSpec(
            resource=selection.resource,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            metadata_only=selection.metadata_only,
            is_whole=True,
        )
        store = self.informers.peek(spec)
        if store is not None:
            return store
        problem = self.informers.problem(spec)
        raise Unreadable(problem) if problem else NotSynced


def report(ctx: ReconcileContext, waits: Sequence[Wait], *, keeps_refused: bool = False) -> float | None:
    """Report the blockers of these waits; return the seconds until another wait may become overdue.

    Finders run only once a deadline has passed, or while the status has blockers, to clear these. `keeps_refused` is
    True while a write is still refused, whose blocker `report_refused` updates.
    """
    left = earliest(FINDERS, waits, now=ctx.now())
    if not ctx.status["blockers"] and (left is None or left > 0):
        return left
    known = known_blockers(ctx)
    view = InformerView(informers=ctx.informers, now=ctx.now())
    findings = find_blockers(FINDERS, view, waits, known)
    found = [_with_origin(ctx, blocker) for blocker in findings.blockers]
    found += [one for one in known if keeps_refused and one.reason in _REFUSED]
    _record(ctx, known, merge_blockers(known, combine(found, known)))
    times = [] if findings.after is None else [findings.after]
    # The event of a lasting blocker is counted again after this window.
    return min([*times, REPEAT_WINDOW.total_seconds()] if findings.blockers else times, default=None)


def _with_origin(ctx: ReconcileContext, blocker: Blocker) -> Blocker:
    """Return the blocker of a toolkit image that cannot be pulled, with the sources of its repository and tag."""
    recorded = ToolkitImageStatus.read(ctx.status["toolkitImage"])
    if blocker.reason not in _UNPULLED or not _names(blocker, recorded.repository):
        return blocker
    remark = f"; toolkit image: {origin(recorded, ctx.plan.spec, ctx.settings.toolkit)}"
    # A blocker that was recorded before a restart already has the remark.
    message = blocker.message.removesuffix(remark)[: MAX_TEXT - len(remark)]
    return replace(blocker, message=message + remark)


def _names(blocker: Blocker, repository: str) -> bool:
    """Return True if the blocker is about an image of the repository, not about that of an importer's Pod."""
    return bool(repository) and (repository in blocker.message or repository in blocker.remedy)


def first_message(ctx: ReconcileContext, waiting: str) -> str:
    """Return the first blocker's addition to the message, in place of the phase's detail; empty without a blocker."""
    known = known_blockers(ctx)
    found = known[0].message if known and known[0].reason.stalls else ""
    _, _, problem = found.partition(": ")
    if (problem or found) in waiting:
        return ""
    # Such as the count of nodes, which the message has already.
    text, _, remark = found.rpartition(" (")
    return text if text and f" ({remark}" in waiting else found


def known_blockers(ctx: ReconcileContext) -> list[Blocker]:
    """Return the blockers in the plan's status, for this module and for node_upgrade/waits.py."""
    recorded = ctx.status["blockers"]
    return read_blockers(recorded) if recorded else []


def known_since(ctx: ReconcileContext, kind: type[Wait], name: str) -> datetime | None:
    """Return the time since which the status records a blocker of such a wait for the object; None without a record."""
    known = known_blockers(ctx)
    if not known:
        return None
    reasons = {reason for row in FINDERS if issubclass(kind, row.wait) for reason in row.reasons}
    return _since(known, reasons, kind.kind.object_kind, name)


def first_seen(ctx: ReconcileContext, kind: type[Wait], name: str) -> datetime:
    """Return the time since which the phase waits for the object, by this process or by the recorded status."""
    known = known_since(ctx, kind, name)
    return ctx.informers.first_seen.since((kind, name), now=ctx.now(), known=known)


def resumed_wait(ctx: ReconcileContext, job: JobState, *, work: str, node: str = "") -> tuple[JobWait, ...]:
    """Return the wait for a Job that the Job controller has not started again yet; nothing for another Job.

    No field shows since when such a Job is resumed, and it may have been suspended for hours (blockers/jobs.py).
    """
    if not job.is_resuming:
        return ()
    began = first_seen(ctx, JobWait, job.name)
    return (new_job_wait(job.namespace, job.name, work=work, now=began, node=node),)


def refused_since(ctx: ReconcileContext, kind: str, name: str) -> datetime | None:
    """Return the time since which the status records refused writes of the object; None without a record."""
    return _since(known_blockers(ctx), _REFUSED, kind, name)


def _since(known: Sequence[Blocker], reasons: Collection[BlockerReason], kind: str, name: str) -> datetime | None:
    return min(
        (one.since for one in known if one.reason in reasons and (one.kind, one.name) == (kind, name)), default=None
    )


def report_refused(ctx: ReconcileContext, refused: Sequence[Blocker]) -> None:
    """Report the writes that are refused after an error; the other recorded blockers stay."""
    known = known_blockers(ctx)
    others = [one for one in known if one.reason not in _REFUSED]
    _record(ctx, known, merge_blockers(known, [*others, *refused]))


def clear(ctx: ReconcileContext) -> None:
    """Report that nothing holds the upgrade up."""
    if ctx.status["blockers"]:
        _record(ctx, known_blockers(ctx), [])


def _record(ctx: ReconcileContext, known: Iterable[Blocker], found: Sequence[Blocker]) -> None:
    """Write the blockers to the status, and send an event for each entry.

    A paused node has its milestone event instead.
    """
    held = found[: len(entries_of(found))]
    before = list(known)
    for blocker in held:
        if blocker.reason.stalls:
            ctx.events.blocker(ctx.raw, blocker, is_known=any(continues(old, blocker) for old in before))
    for old in before:
        if old.reason.stalls and not any(continues(old, blocker) for blocker in found):
            ctx.events.blocker_cleared(ctx.raw, old)
    ctx.status.blocked(found)
    if any(one.changes for blocker in held for one in blocker.remedies):
        ctx.status["advised"] = with_advised(ctx.status["advised"], held)
