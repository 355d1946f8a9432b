from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.nodes.job_state import JobState, Progress


def job(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "j", "namespace": "harvester-system"},
        "status": {"conditions": list(conditions), **status},
    }


def true(type_: str, **more: str) -> dict[str, Any]:
    return {"type": type_, "status": "True", **more}


COMPLETE, FAILED = true("Complete"), true("Failed", reason="BackoffLimitExceeded", message="it was tried 3 times")


@pytest.mark.parametrize(
    ("raw", "progress"),
    [
        pytest.param({"metadata": {"name": "j"}}, Progress.RUNNING, id="no status at all"),
        pytest.param({"metadata": {"name": "j"}, "status": {"conditions": None}}, Progress.RUNNING, id="null"),
        pytest.param(job(), Progress.RUNNING, id="no conditions"),
        pytest.param(job(COMPLETE), Progress.COMPLETE, id="Complete"),
        pytest.param(job(FAILED), Progress.FAILED, id="Failed"),
        pytest.param(job(COMPLETE, FAILED), Progress.FAILED, id="Failed counts before Complete"),
        pytest.param(job(FAILED, COMPLETE), Progress.FAILED, id="in whatever order"),
        pytest.param(job(COMPLETE | {"status": "False"}), Progress.RUNNING, id="Complete that is False"),
        pytest.param(job(FAILED | {"status": "Unknown"}), Progress.RUNNING, id="Failed that is Unknown"),
        pytest.param(job(true("SuccessCriteriaMet")), Progress.RUNNING, id="SuccessCriteriaMet precedes Complete"),
        pytest.param(job(true("FailureTarget")), Progress.RUNNING, id="FailureTarget precedes Failed"),
        pytest.param(job(true("FailureTarget"), FAILED), Progress.FAILED, id="and stays beside it"),
        pytest.param(job(true("SuccessCriteriaMet"), COMPLETE), Progress.COMPLETE, id="as SuccessCriteriaMet does"),
        pytest.param(job(true("Suspended")), Progress.RUNNING, id="a suspended Job is no failed one"),
        pytest.param(job(failed=2, succeeded=1), Progress.RUNNING, id="counts alone decide nothing"),
    ],
)
def test_only_complete_and_failed_decide(raw: dict[str, Any], progress: Progress) -> None:
    assert JobState.of(raw).progress is progress


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


@pytest.mark.rule("workloads: a Job stuck at FailureTarget on a dead node is reported with the node")
@pytest.mark.parametrize(
    ("raw", "warning"),
    [
        pytest.param(job(), "", id="a Job that runs well"),
        pytest.param(job(failed=1), "1 failed attempt", id="one that retries"),
        pytest.param(job(COMPLETE, failed=2), "", id="one that made it in the end"),
        pytest.param(job(FAILED, failed=3), "", id="one that failed has a cause instead"),
        pytest.param(
            job(true("FailureTarget", reason="DeadlineExceeded"), failed=1),
            "failed (DeadlineExceeded), but its Pod has not terminated; check whether its node is down",
            id="one that is over but whose Pod is on a dead node",
        ),
    ],
)
def test_warning_of_a_running_job(raw: dict[str, Any], warning: str) -> None:
    assert JobState.of(raw).warning == warning


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
    ("raw", "failing"),
    [
        pytest.param(job(), False, id="it runs"),
        pytest.param(job(failed=2), False, id="it retries"),
        pytest.param(job(COMPLETE), False, id="it is complete"),
        pytest.param(job(FAILED), True, id="it has failed"),
        pytest.param(job(true("FailureTarget", reason="DeadlineExceeded")), True, id="it will, says the controller"),
    ],
)
def test_job_is_failing(raw: dict[str, Any], *, failing: bool) -> None:
    assert JobState.of(raw).is_failing is failing
