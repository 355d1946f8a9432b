from __future__ import annotations

import json

import pytest

from upgrade_manager.api.survey import MAX_BYTES, SurveyFinding, SurveyReport, decode, failed_survey

ROOM = SurveyFinding(check="state-partition", message="Its state partition has 900 MiB free: enlarge it.")


def many(count: int, *, message: str) -> tuple[SurveyFinding, ...]:
    return tuple(SurveyFinding(check=f"check-{number}", message=message) for number in range(count))


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(SurveyReport(node="node-1"), id="nothing found"),
        pytest.param(SurveyReport(node="node-1", findings=(ROOM,)), id="one finding"),
        pytest.param(SurveyReport(node="node-1", findings=(ROOM,), omitted=2), id="some omitted"),
    ],
)
def test_report_is_read_as_it_was_written(report: SurveyReport) -> None:
    assert decode(report.encode()) == report


def test_text_is_compact() -> None:
    assert SurveyReport(node="n", findings=(SurveyFinding(check="a", message="Ä."),)).encode() == (
        '{"node":"n","findings":[{"check":"a","message":"Ä."}],"omitted":0}'
    )


@pytest.mark.parametrize("message", ["a" * 300, "ä" * 150, "\U0001f600" * 75, '"\n' * 100])
def test_last_findings_are_counted_where_the_text_is_too_long(message: str) -> None:
    text = SurveyReport(node="node-1", findings=many(40, message=message), omitted=1).encode()
    report = decode(text)
    assert len(text.encode()) <= MAX_BYTES
    assert report is not None
    assert report.findings[0].check == "check-0"
    assert 5 < len(report.findings) < 40
    assert len(report.findings) + report.omitted == 41


@pytest.mark.parametrize("spare", range(4))
def test_text_uses_all_bytes_that_there_are(spare: int) -> None:
    empty = len(SurveyReport(node="n", findings=many(1, message="")).encode())
    whole = SurveyReport(node="n", findings=many(1, message="a" * (MAX_BYTES - empty - spare)))
    assert decode(whole.encode()) == whole


def test_finding_that_is_too_long_alone_is_counted() -> None:
    report = SurveyReport(node="n", findings=many(1, message="a" * MAX_BYTES))
    assert decode(report.encode()) == SurveyReport(node="n", omitted=1)


def test_name_that_is_too_long_is_an_error() -> None:
    with pytest.raises(ValueError, match="longer than a termination message"):
        SurveyReport(node="n" * MAX_BYTES).encode()


def test_file_names_that_are_no_text_are_replaced() -> None:
    report = decode(SurveyReport(node="n", findings=many(1, message="/oem/\udcff.yaml")).encode())
    assert report is not None
    assert report.findings[0].message == "/oem/?.yaml"


def test_fields_of_other_versions_are_ignored() -> None:
    text = json.dumps({"node": "n", "findings": [{"check": "a", "message": "b", "severity": 3}], "version": 2})
    assert decode(text) == SurveyReport(node="n", findings=(SurveyFinding(check="a", message="b"),))


def test_strings_are_one_printable_line() -> None:
    text = json.dumps({"node": "n\n", "findings": [{"check": "a", "message": "b\x1b\ud800\u202e c\n"}]})
    assert decode(text) == SurveyReport(node="n", findings=(SurveyFinding(check="a", message="b c"),))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("node survey: step failed", id="last line of a failure"),
        pytest.param("[" * 100_000, id="nested"),
        pytest.param("[]", id="list"),
        pytest.param("3", id="number"),
        pytest.param("null", id="null"),
        pytest.param("{}", id="without a node"),
        pytest.param('{"node":"n"}', id="without findings"),
        pytest.param('{"node":1,"findings":[]}', id="node is a number"),
        pytest.param('{"node":"n","findings":{}}', id="findings are no list"),
        pytest.param('{"node":"n","findings":["a"]}', id="finding is a string"),
        pytest.param('{"node":"n","findings":[{"check":"a"}]}', id="finding without a message"),
        pytest.param('{"node":"n","findings":[{"check":"a","message":1}]}', id="message is a number"),
        pytest.param('{"node":"n","findings":[],"omitted":"1"}', id="omitted is a string"),
        pytest.param('{"node":"n","findings":[],"omitted":true}', id="omitted is a boolean"),
        pytest.param('{"node":"n","findings":[],"omitted":-1}', id="omitted is negative"),
        pytest.param('{"node":"n","findings":[]', id="cut off"),
    ],
)
def test_other_texts_are_no_report(text: str) -> None:
    assert decode(text) is None


def test_survey_that_could_not_be_made_is_a_finding() -> None:
    report = failed_survey(node="n", cause="node survey: out of memory.")
    (finding,) = report.findings
    assert report.failure == finding.message
    assert not SurveyReport(node="n").failure
    assert finding == SurveyFinding(
        check="survey",
        message="The node was not surveyed: node survey: out of memory. Look for the cause in the log of the Pod.",
    )
