"""The reports of the survey's Pods, and what they say together.

survey.py calls it; api/survey.py has the report of one Pod, api/survey_status.py what the status keeps of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.survey import decode
from upgrade_manager.api.survey_status import record_reports, recorded_nodes
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.phases.plan_jobs import colliding_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from upgrade_manager.api.survey import SurveyReport
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.plan_jobs import PlanJob

#: Characters of a message about all nodes.
_LIMIT = 8000


async def collect(
    ctx: ReconcileContext, plan: Object, jobs: Iterable[PlanJob], pods: Iterable[Object], *, nodes: Sequence[Object]
) -> dict[str, Any]:
    """Record the reports of this Plan's Pods, and return the recorded entries of the managed nodes by name.

    The system-upgrade-controller's Jobs expire after minutes, and their Pods with them.
    """
    uid, survey = objects.uid(plan), ctx.status["survey"]
    known = recorded_nodes(survey, plan=uid)
    reports = _reports(pods, {job.state.uid: job.node for job in jobs if job.owner == uid and job.node})
    found = {node: report for node, report in reports.items() if not report.failure}
    if found.keys() - known.keys():
        survey = ctx.status["survey"] = record_reports(survey, found, plan=uid)
        if colliding_nodes(nodes):
            # The next node's Job replaces this one, which has its name.
            await ctx.persist()
    managed = set(map(objects.name, nodes))
    return {node: entry for node, entry in recorded_nodes(survey, plan=uid).items() if node in managed}


def failures(jobs: Mapping[str, PlanJob], pods: Iterable[Object]) -> dict[str, str]:
    """Return the reasons of surveys that could not be made, by node; `jobs` are the Plan's."""
    reports = _reports(pods, {job.state.uid: node for node, job in jobs.items()})
    return {node: report.failure for node, report in reports.items() if report.failure}


def findings_text(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one sentence for each finding, with all its nodes; empty without findings."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node in sorted(nodes_with_findings(entries)):
        entry = entries[node]
        for finding in entry.get("findings") or ():
            nodes[f"{finding['message'].rstrip('.')} ({finding['check']})"].append(node)
        if omitted := entry.get("omitted"):
            more = "more " if entry.get("findings") else ""
            nodes[f"{omitted} {more}finding{'s' if omitted > 1 else ''}, see the log of its Job"].append(node)
    return _bounded([f"{name_list(names)}: {text}" for text, names in nodes.items()])


def nodes_with_findings(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the nodes on which the survey has found something."""
    return [node for node, entry in entries.items() if not entry.get("ok")]


def _reports(pods: Iterable[Object], nodes: Mapping[str, str]) -> dict[str, SurveyReport]:
    """Return the readable reports by node; `nodes` are the nodes of the Plan's Jobs, by the Job's uid."""
    found: dict[str, SurveyReport] = {}
    for pod in pods:
        node = nodes.get(objects.owner_uid(pod), "")
        if node and objects.text(pod, "status", "phase") == "Succeeded":
            report = decode(_termination_message(pod))
            if report is not None:
                found[node] = report
    return found


def _termination_message(pod: Object) -> str:
    containers = objects.items(pod, "status", "containerStatuses")
    return next((text for one in containers if (text := objects.text(one, "state", "terminated", "message"))), "")


def _bounded(parts: Sequence[str]) -> str:
    """Join as many parts as fit, and count the others."""
    kept, size = 0, 0
    for part in parts:
        size += len(part) + 2
        if kept and size > _LIMIT:
            break
        kept += 1
    more = len(parts) - kept
    return "; ".join(parts[:kept]) + (f"; and {more} more, see status.survey" if more else "")
