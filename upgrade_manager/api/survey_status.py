"""The reports of the nodes' survey in `status.survey`: the models, and the raw record of reports.

pipeline/phases/survey_reports.py records them before the Pods that carry them are removed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.text import bounded_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.api.survey import SurveyFinding, SurveyReport

#: Findings of one node, and characters of a finding's message, in the status; the others are counted.
MAX_FINDINGS = 5
MAX_TEXT = 400
_MAX_CHECK = 63
#: Bytes of all findings. A status holds an entry for each of 1,000 nodes, too.
MAX_BYTES = 60_000


class SurveyFindingStatus(ApiModel, json_schema_extra={"required": ["check", "message"]}):
    """Something on a node that would make its upgrade fail."""

    check: str = Field(default="", description="Constant name of the check.")
    message: str = Field(default="", description="What is wrong, and what to do.")


class NodeSurveyStatus(ApiModel, json_schema_extra={"required": ["ok"]}):
    """Result of the survey on one node."""

    ok: bool = Field(default=False, description="True if all checks of the node passed.")
    findings: list[SurveyFindingStatus] = Field(
        default_factory=list, description="What would make the node's upgrade fail, the most serious first."
    )
    omitted: int | None = Field(
        default=None,
        description="Number of further findings, which had no room here; absent without any.",
        json_schema_extra={"format": "int32"},
    )


class SurveyStatus(ApiModel):
    """Survey of the nodes before the upgrade changes anything."""

    plan: str = Field(
        default="", description="The uid of the system-upgrade-controller's Plan whose Pods have reported this."
    )
    nodes: dict[str, NodeSurveyStatus] = Field(
        default_factory=dict, description="Result of each node that has reported, by node name."
    )


def recorded_nodes(survey: object, *, plan: str) -> dict[str, Any]:
    """Return the raw entries by node that a Plan's Pods have reported; those of another Plan do not count."""
    if not isinstance(survey, dict) or survey.get("plan") != plan:
        return {}
    return dict(survey.get("nodes") or {})


def record_reports(survey: object, reports: Mapping[str, SurveyReport], *, plan: str) -> dict[str, Any]:
    """Return the raw `status.survey` with the reports of further nodes; the first report of a node stays."""
    nodes = recorded_nodes(survey, plan=plan)
    room = MAX_BYTES - sum(_size(entry) for entry in nodes.values())
    for node, report in sorted(reports.items()):
        if node not in nodes:
            nodes[node] = _entry(report, room=room)
            room -= _size(nodes[node])
    return {"plan": plan, "nodes": nodes}


def _entry(report: SurveyReport, *, room: int) -> dict[str, Any]:
    total = len(report.findings) + report.omitted
    if not total:
        return {"ok": True}
    kept = list(map(_finding, report.findings[:MAX_FINDINGS]))
    while kept and _bytes(kept) > room:
        kept.pop()
    omitted = total - len(kept)
    return {
        "ok": False,
        **({"findings": kept} if kept else {}),
        **({"omitted": omitted} if omitted else {}),
    }


def _finding(finding: SurveyFinding) -> dict[str, str]:
    return {
        "check": bounded_line(finding.check, limit=_MAX_CHECK),
        "message": bounded_line(finding.message, limit=MAX_TEXT),
    }


def _size(entry: Mapping[str, Any]) -> int:
    return _bytes(entry["findings"]) if entry.get("findings") else 0


def _bytes(findings: object) -> int:
    return len(json.dumps(findings, ensure_ascii=False).encode(errors="replace"))
