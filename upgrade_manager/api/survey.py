"""The findings of a node's survey: the termination message of its Job's container.

Commands of toolkit write it; pipeline/phases/survey_reports.py reads it for the message that names all nodes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from upgrade_manager.api.text import one_line

#: Bytes of the text: the kubelet cuts off longer termination messages.
MAX_BYTES = 4096
#: The check of a report about a survey that could not be made.
NOT_MADE = "survey"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyFinding:
    """One thing on a node that would make its upgrade fail."""

    #: Constant id of the check, such as "state-partition".
    check: str
    #: A sentence for users: what is wrong and what to do, without the node's name.
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyReport:
    """All findings of one node, the most serious ones first. A report without findings says that all checks passed."""

    node: str
    findings: tuple[SurveyFinding, ...] = ()
    #: The number of findings that did not fit into the text.
    omitted: int = 0

    @property
    def failure(self) -> str:
        """The reason why the survey could not be made, so that nothing is known of the node; empty if it was made."""
        return next((one.message for one in self.findings if one.check == NOT_MADE), "")

    def encode(self) -> str:
        """Return JSON of at most MAX_BYTES; it lacks the last findings that do not fit, and counts them."""
        report = self
        while len((text := _text(report)).encode()) > MAX_BYTES:
            if not report.findings:
                raise ValueError("the node's name is longer than a termination message")
            report = replace(report, findings=report.findings[:-1], omitted=report.omitted + 1)
        return text


def failed_survey(*, node: str, cause: str) -> SurveyReport:
    """Return the report of a survey that could not be made, whose Job must not fail either."""
    message = f"The node was not surveyed: {cause.rstrip('.')}. Look for the cause in the log of the Pod."
    return SurveyReport(node=node, findings=(SurveyFinding(check=NOT_MADE, message=message),))


def decode(text: str) -> SurveyReport | None:
    """Return the report that a text contains; None for any other text, such as the last lines of a log.

    Fields that another version of the toolkit adds are ignored; strings are one printable line each.
    """
    try:
        return _report(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _text(report: SurveyReport) -> str:
    # Surrogates, which file names of a host may contain, cannot be written as UTF-8.
    text = json.dumps(asdict(report), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def _report(fields: Any) -> SurveyReport:
    findings = fields["findings"]
    if not isinstance(findings, list):
        raise TypeError("not a list of findings")
    return SurveyReport(
        node=_string(fields["node"]),
        findings=tuple(_finding(finding) for finding in findings),
        omitted=_count(fields.get("omitted", 0)),
    )


def _finding(fields: Any) -> SurveyFinding:
    return SurveyFinding(check=_string(fields["check"]), message=_string(fields["message"]))


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    return one_line(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a number of findings")
    return value
