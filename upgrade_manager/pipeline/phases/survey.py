"""The survey of all nodes before the cluster is changed: the second Plan of ImagePreload.

image_preload.py calls it. With our toolkit each Pod reports what would make its node's upgrade fail
(survey_reports.py); with Harvester's, which has no such command, a Pod that starts shows that its node has the image
(survey_images.py). The preload shows that, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import CATTLE_SYSTEM, Component
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.blockers.known_wait import UnreadReportWait
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.suc_nodes import labelled_nodes
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.plan_jobs import (
    PlanJob,
    Work,
    colliding_nodes,
    create_plan,
    follow_plan,
    long_name_message,
    plan_progress,
    remove_to_repeat,
)
from upgrade_manager.pipeline.phases.survey_images import all_have_image, image_waits
from upgrade_manager.pipeline.phases.survey_reports import collect, failures, findings_text, nodes_with_findings
from upgrade_manager.pipeline.selections import suc_jobs, suc_plans, survey_pods
from upgrade_manager.resources.suc_plan import survey_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

WORK = Work("node survey", done="Survey done")
FINDINGS = "NodeSurveyFindings"
SKIPPED = "NodeSurveySkipped"
#: Seconds after which the survey is repeated for a node without a readable report. A Job that has expired is repeated
#: at once.
_REPEAT = 300.0
#: Seconds in which the last reports arrive, before spec.force goes on without them.
_ARRIVAL = 30.0
_NO_REPORT = "its survey ended without a report that the manager can read"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """Implements NodeRecord without node states: the survey changes nothing on a node."""

    done: frozenset[str]
    jobs: Mapping[str, PlanJob]

    def record(self, ctx: ReconcileContext, node: str, progress: Progress, *, message: str = "") -> None:
        """See NodeRecord."""
        _ = (ctx, node, progress, message)

    def shows(self, ctx: ReconcileContext, node: str, progress: Progress) -> bool:
        """See NodeRecord."""
        _ = ctx
        if progress is Progress.COMPLETE:
            return node in self.done
        return node not in self.done and node in self.jobs and self.jobs[node].state.progress is progress


async def survey(ctx: ReconcileContext, nodes: Sequence[Object], *, is_preloaded: bool) -> PhaseResult:
    """Create the Plan once, then follow it to its end; `is_preloaded` is True after a preload on the nodes."""
    name, reports = ctx.owner.name_of(Component.SURVEY), _reports(ctx)
    plans = await ctx.watch(suc_plans(ctx.owner))
    plan = plans.get(name, CATTLE_SYSTEM)
    if plan is not None and ctx.owner.owns(plan):
        return await _follow(ctx, plan, nodes)
    if not reports and (is_preloaded or await all_have_image(ctx)):
        return Completed()
    long_name = long_name_message(nodes)
    if long_name:
        return await _go_on(ctx, SKIPPED, f"{long_name}; node survey skipped")
    at_once = 1 if colliding_nodes(nodes) else len(nodes)
    manifest = survey_plan(ctx.owner, ctx.plan_settings, concurrency=at_once, reports=reports)
    return await create_plan(ctx, manifest, nodes, work=WORK)


def _reports(ctx: ReconcileContext) -> bool:
    """Return True for our toolkit."""
    return is_own(ctx.status["toolkitImage"])


async def _follow(ctx: ReconcileContext, plan: Object, nodes: Sequence[Object]) -> PhaseResult:
    store, pods = await ctx.watch_all(suc_jobs(ctx.owner), survey_pods(ctx.owner))
    jobs = plan_progress(plan, store.derive(PlanJob.of)).jobs
    entries = await collect(ctx, plan, jobs.values(), pods.list(), nodes=nodes)
    done = entries if _reports(ctx) else labelled_nodes(objects.name(plan), nodes)
    progress = _Progress(done=frozenset(done), jobs=jobs)
    result = await follow_plan(ctx, plan, store, states=progress, work=WORK)
    if isinstance(result, Waiting):
        return _explained(result, entries, image_waits(ctx, jobs, pods.list()))
    missing = sorted(set(map(objects.name, nodes)) - entries.keys()) if _reports(ctx) else []
    if isinstance(result, Completed) and missing:
        reasons = failures(jobs, pods.list())
        unread = {node: reasons.get(node, "").rstrip(".") for node in missing}
        return await _await_reports(ctx, plan, jobs, unread, findings=findings_text(entries))
    return await _decided(ctx, result, findings_text(entries))


def _explained(waiting: Waiting, entries: Mapping[str, Any], images: Mapping[str, Wait]) -> Waiting:
    """Add what is known before all nodes have reported: findings, and images that nodes cannot pull."""
    found = sorted(nodes_with_findings(entries))
    message = waiting.message + (f"; findings on {name_list(found)}" if found else "")
    others = (wait for wait in waiting.waits if wait.name not in images)
    return replace(waiting, message=message, waits=(*images.values(), *others))


async def _decided(ctx: ReconcileContext, result: PhaseResult, findings: str) -> PhaseResult:
    """Fail the upgrade for findings, and for a survey that has failed; with spec.force, report both and go on."""
    found = f"the node survey found problems: {findings}" if findings else ""
    failed = result if isinstance(result, Failed) else None
    if not found and not failed:
        return result
    if ctx.plan.spec.force:
        text = ". ".join(filter(None, (found, failed.message if failed else "")))
        return await _go_on(ctx, FINDINGS, f"The upgrade goes on, because of spec.force, although {text}")
    hint = f"{found}; spec.force: true skips this check" if found else ""
    cause = ". ".join(filter(None, (hint, failed.cause if failed else "")))
    return Failed(cause=cause, log=failed.log if failed else "")


async def _go_on(ctx: ReconcileContext, reason: str, message: str) -> Completed:
    """Complete the phase with a warning, which is sent before: later phases do not repeat it."""
    ctx.events.warning(ctx.raw, reason, message)
    await ctx.events.sent(ctx.raw)
    return Completed()


async def _await_reports(
    ctx: ReconcileContext, plan: Object, jobs: Mapping[str, PlanJob], unread: Mapping[str, str], *, findings: str
) -> PhaseResult:
    """Wait for reports of nodes whose Jobs have ended, then repeat the survey: without a report nothing is known.

    `unread` has the reason of each of these nodes, or an empty one.
    """
    times = [parse_time(jobs[node].state.completed) for node in unread if node in jobs]
    ended = max((time for time in times if time is not None), default=ctx.now())
    # A Job that has expired may have had a report: the survey is repeated at once, also with spec.force.
    is_expired = len(times) < len(unread)
    elapsed = _REPEAT if is_expired else seconds_between(ended, ctx.now())
    message = f"{WORK.name} ended without a readable report of {name_list(list(unread))}"
    if ctx.plan.spec.force and elapsed >= _ARRIVAL and not is_expired:
        return await _decided(ctx, Failed(cause=message), findings)
    named, left = f"Plan {CATTLE_SYSTEM}/{objects.name(plan)}: {message}", _REPEAT - elapsed
    waiting = Waiting(message=named, waits=_report_waits(ctx, jobs, unread), after=max(left, 1.0))
    if left > 0 or not await remove_to_repeat(ctx, plan):
        return waiting
    return replace(waiting, message=f"{named}; it is repeated")


def _report_waits(
    ctx: ReconcileContext, jobs: Mapping[str, PlanJob], unread: Mapping[str, str]
) -> tuple[UnreadReportWait, ...]:
    return tuple(
        UnreadReportWait(
            name=node,
            node=node,
            since=first_seen(ctx, UnreadReportWait, node),
            detail=f"{reason or _NO_REPORT}; it is repeated every {_REPEAT / 60:.0f} minutes",
            remedies=_show(jobs.get(node)),
        )
        for node, reason in unread.items()
    )


def _show(job: PlanJob | None) -> tuple[Remedy, ...]:
    log = () if job is None else (f"kubectl logs -n {job.state.namespace} job/{job.state.name}",)
    return (
        *(Remedy("Show its log", command=command) for command in log),
        Remedy("Check that the toolkit image is of the manager's version", command="upgrade-manager preflight"),
        Remedy("To go on without the survey, set spec.force: true"),
    )
