from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.job_state import SUSPENDED, JobState, Progress


def job(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "j", "namespace": "harvester-system"},
        "status": {"conditions": list(conditions), **status},
    }


def true(type_: str, **more: str) -> dict[str, Any]:
    return {"type": type_, "status": "True", **more}


COMPLETE, FAILED = true("Complete"), true("Failed", reason="BackoffLimitExceeded", message="it was tried 3 times")
FAILURE_TARGET = true("FailureTarget", reason="DeadlineExceeded")
STUCK = "failed (DeadlineExceeded), but its Pod does not end; check that its node is up"


@pytest.mark.rule("workloads: a Job stuck at FailureTarget on a dead node is reported with the node")
@pytest.mark.parametrize(
    ("raw", "progress", "warning"),
    [
        pytest.param({"metadata": {"name": "j"}}, Progress.RUNNING, "", id="no status"),
        pytest.param({"metadata": {"name": "j"}, "status": {"conditions": None}}, Progress.RUNNING, "", id="null"),
        pytest.param(job(), Progress.RUNNING, "", id="no conditions"),
        pytest.param(job(COMPLETE), Progress.COMPLETE, "", id="Complete"),
        pytest.param(job(COMPLETE, failed=2), Progress.COMPLETE, "", id="Complete after retries"),
        pytest.param(job(FAILED), Progress.FAILED, "", id="Failed"),
        pytest.param(job(FAILED, failed=3), Progress.FAILED, "", id="Failed after retries: a cause, no warning"),
        pytest.param(job(COMPLETE, FAILED), Progress.FAILED, "", id="Failed counts before Complete"),
        pytest.param(job(FAILED, COMPLETE), Progress.FAILED, "", id="in any order"),
        pytest.param(job(COMPLETE | {"status": "False"}), Progress.RUNNING, "", id="Complete that is False"),
        pytest.param(job(FAILED | {"status": "Unknown"}), Progress.RUNNING, "", id="Failed that is Unknown"),
        pytest.param(job(true("SuccessCriteriaMet")), Progress.RUNNING, "", id="SuccessCriteriaMet precedes Complete"),
        pytest.param(job(true("SuccessCriteriaMet"), COMPLETE), Progress.COMPLETE, "", id="and stays beside it"),
        pytest.param(job(FAILURE_TARGET, failed=1), Progress.RUNNING, STUCK, id="FailureTarget precedes Failed"),
        pytest.param(job(FAILURE_TARGET, FAILED), Progress.FAILED, "", id="as FailureTarget does"),
        pytest.param(job(true("Suspended")), Progress.RUNNING, "", id="suspended"),
        pytest.param(job(failed=1), Progress.RUNNING, "1 failed attempt", id="retried"),
        pytest.param(job(failed=2, succeeded=1), Progress.RUNNING, "2 failed attempts", id="counts decide nothing"),
    ],
)
def test_only_complete_and_failed_decide(raw: dict[str, Any], progress: Progress, warning: str) -> None:
    state = JobState.of(raw)
    assert (state.progress, state.warning) == (progress, warning)
    assert state.is_failing is (progress is Progress.FAILED or warning == STUCK)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, "", id="never suspended"),
        pytest.param({"status": "True", "lastTransitionTime": "t1"}, "", id="suspended"),
        pytest.param({"status": "False", "lastTransitionTime": "t2"}, "t2", id="resumed"),
    ],
)
def test_time_of_resumption_is_that_of_the_condition(status: dict[str, str], expected: str) -> None:
    state = JobState.of(job({"type": "Suspended", **status}, startTime="t0"))
    assert (state.started, state.resumed) == ("t0", expected)


@pytest.mark.rule("nodes: CAUSE is the message of the Job's condition")
@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        pytest.param(FAILED, "Job harvester-system/j failed: BackoffLimitExceeded: it was tried 3 times", id="both"),
        pytest.param(true("Failed", reason="X"), "Job harvester-system/j failed: X", id="a reason only"),
        pytest.param(true("Failed", message="why"), "Job harvester-system/j failed: why", id="a message only"),
        pytest.param(true("Failed"), "Job harvester-system/j failed", id="neither"),
    ],
)
def test_cause_has_the_failed_condition(condition: dict[str, Any], cause: str) -> None:
    assert JobState.of(job(condition)).cause == cause


@pytest.mark.parametrize(
    ("spec", "conditions", "suspended"),
    [
        pytest.param({"suspend": True}, [], True, id="it is to wait"),
        pytest.param({"suspend": True}, [true("Suspended")], True, id="and the controller has seen it"),
        pytest.param({"suspend": False}, [true("Suspended")], False, id="resumed, not seen by the controller yet"),
        pytest.param({}, [], False, id="nothing is said of it"),
        pytest.param({"suspend": True}, [COMPLETE], False, id="it has ended before"),
        pytest.param({"suspend": True}, [FAILED], False, id="it has failed before"),
    ],
)
def test_suspended_is_read_from_the_spec(
    spec: dict[str, Any], conditions: list[dict[str, Any]], *, suspended: bool
) -> None:
    assert JobState.of({**job(*conditions), "spec": spec}).suspended is suspended


@pytest.mark.parametrize(
    ("annotation", "attempt"),
    [
        pytest.param(None, "attempt 1 of 7", id="none"),
        pytest.param("3/9 stop-vms", "attempt 1 of 7, step 3/9 stop-vms", id="of-our-command"),
        pytest.param("3/9 stop\nvms", "attempt 1 of 7", id="two-lines"),
        pytest.param("3/9 " + "x" * 61, "attempt 1 of 7", id="too-long"),
        pytest.param({"a": 1}, "attempt 1 of 7", id="not-a-text"),
    ],
)
def test_attempt_names_the_step_that_the_command_reports(annotation: object, attempt: str) -> None:
    annotations = {"management.harvesterhci.io/progress": annotation} if annotation is not None else None
    raw = job()
    raw["metadata"]["annotations"] = annotations
    assert JobState.of(raw).attempt == attempt


RESUME = """Resume it: kubectl patch job -n harvester-system j -p '{"spec":{"suspend":false}}'"""


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(job(), "attempt 1 of 7", id="running"),
        pytest.param(job(failed=1), "attempt 2 of 7", id="retried"),
        pytest.param(job(FAILURE_TARGET, failed=1), STUCK, id="FailureTarget"),
        pytest.param(job() | {"spec": {"suspend": True}}, f"{SUSPENDED}. {RESUME}", id="suspended"),
    ],
)
def test_running_job_is_described_by_its_problem_or_attempt(raw: dict[str, Any], text: str) -> None:
    assert JobState.of(raw).describe() == text
