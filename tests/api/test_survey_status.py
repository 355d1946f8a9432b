"""The record of the nodes' reports in the status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from upgrade_manager.api.status import UpgradePlanStatus
from upgrade_manager.api.survey import SurveyFinding, SurveyReport
from upgrade_manager.api.survey_status import MAX_BYTES, MAX_FINDINGS, MAX_TEXT, record_reports, recorded_nodes

row = pytest.param


def finding(text: str = "wrong", *, check: str = "check") -> SurveyFinding:
    return SurveyFinding(check=check, message=text)


def report(*findings: SurveyFinding, omitted: int = 0) -> SurveyReport:
    return SurveyReport(node="n", findings=findings, omitted=omitted)


WRONG = {"check": "check", "message": "wrong"}


@pytest.mark.rule("api: survey has the result of each node that has reported, with findings of bounded size")
@pytest.mark.parametrize(
    ("given", "entry"),
    [
        row(report(), {"ok": True}, id="all checks passed"),
        row(report(finding()), {"ok": False, "findings": [WRONG]}, id="a finding"),
        row(report(omitted=2), {"ok": False, "omitted": 2}, id="only omitted ones"),
        row(report(finding(), omitted=3), {"ok": False, "findings": [WRONG], "omitted": 3}, id="one and others"),
        row(
            report(*[finding()] * (MAX_FINDINGS + 2), omitted=1),
            {"ok": False, "findings": [WRONG] * MAX_FINDINGS, "omitted": 3},
            id="too many",
        ),
        row(
            report(finding("x" * 1000, check="c" * 100)),
            {"ok": False, "findings": [{"check": "c" * 62 + "…", "message": "x" * (MAX_TEXT - 1) + "…"}]},
            id="too long",
        ),
    ],
)
def test_report_is_recorded(given: SurveyReport, entry: dict[str, Any]) -> None:
    survey = record_reports(None, {"n1": given}, plan="p")
    assert survey == {"plan": "p", "nodes": {"n1": entry}}
    status = UpgradePlanStatus.model_validate({"survey": survey})
    assert status.survey.nodes["n1"].ok == entry["ok"]


def test_first_report_of_a_node_stays() -> None:
    known = record_reports(None, {"n1": report(finding())}, plan="p")
    again = record_reports(known, {"n1": report(), "n2": report()}, plan="p")
    assert again["nodes"] == {"n1": {"ok": False, "findings": [WRONG]}, "n2": {"ok": True}}
    assert known["nodes"].keys() == {"n1"}


@pytest.mark.parametrize("known", [None, {}, "text", {"plan": "earlier", "nodes": {"n1": {}}}, {"plan": "p"}])
def test_other_records_do_not_count(known: object) -> None:
    assert recorded_nodes(known, plan="p") == {}
    assert record_reports(known, {"n2": report()}, plan="p")["nodes"] == {"n2": {"ok": True}}


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_record_of_a_thousand_nodes_is_bounded(*, at_once: bool) -> None:
    full = report(*[finding(f"{number} ü" + "x" * 390) for number in range(9)])
    reports = {f"node-{number:04}": full for number in range(1000)}
    survey: object = None
    if at_once:
        survey = record_reports(None, reports, plan="p")
    else:
        for node, one in reports.items():
            survey = record_reports(survey, {node: one}, plan="p")
    nodes = recorded_nodes(survey, plan="p")
    assert len(nodes) == 1000
    assert all(len(entry.get("findings", ())) + entry["omitted"] == 9 for entry in nodes.values())
    assert len(json.dumps(survey, ensure_ascii=False).encode()) < MAX_BYTES + 60_000
