from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.keys import Component, JobType
from upgrade_manager.api.timestamps import format_clock
from upgrade_manager.blockers import known
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.jobs import FINDERS, job_wait
from upgrade_manager.facts.job_state import JobState

if TYPE_CHECKING:
    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
ABOUT = {"involvedObject": {"name": "j"}}
ALLOW = "Allow what the event reports, for example by a larger ResourceQuota"
CONTROLLER = (
    "Check the Job controller: kubectl -n kube-system logs -l component=kube-controller-manager --tail=20 --prefix"
)


def job(view: FakeView, *, age: float = 100, **status: Any) -> JobState:
    metadata = {"name": "j", "namespace": "ns", "uid": "u", "creationTimestamp": view.time(age)}
    return JobState.of({"metadata": metadata, "status": status})


def blockers(view: FakeView, found: JobState, *, work: str = JobType.PRE_DRAIN) -> list[Blocker]:
    return list(find_blockers(FINDERS, view, job_wait(found, work=work, node="n1"), []).blockers)


def pod(view: FakeView, name: str = "p", *, age: float = 90, phase: str = "Pending") -> dict[str, Any]:
    labels = {"batch.kubernetes.io/job-name": "j"}
    metadata = {"name": name, "namespace": "ns", "labels": labels, "creationTimestamp": view.time(age)}
    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    "status",
    [
        row({"conditions": [{"type": "Complete", "status": "True"}]}, id="complete"),
        row({"conditions": [{"type": "Failed", "status": "True"}]}, id="failed"),
    ],
)
def test_job_that_ends_is_not_waited_for(view: FakeView, status: dict[str, Any]) -> None:
    assert job_wait(job(view, **status), work=JobType.PRE_DRAIN) == ()


def test_suspended_job_is_named_with_the_patch(view: FakeView) -> None:
    (wait,) = job_wait(replace(job(view), suspended=True, suspended_at=view.time(90)), work=JobType.PRE_DRAIN)
    (found,) = find_blockers(known.FINDERS, view, [wait], []).blockers
    assert (found.reason, found.name, found.since) == ("JobSuspended", "j", view.ago(90))
    assert found.remedy == """Resume it: kubectl patch job -n ns j -p '{"spec":{"suspend":false}}'"""


@pytest.mark.rule("blockers: a Job that was resumed is waited for since then")
def test_resumed_job_is_waited_for_since_then(view: FakeView) -> None:
    """A node may be paused for hours."""
    (wait,) = job_wait(replace(job(view), resumed=view.time(1)), work=JobType.PRE_DRAIN)
    assert wait.since == view.ago(1)
    (old,) = job_wait(replace(job(view), resumed=""), work=JobType.PRE_DRAIN)
    assert old.since < wait.since


def test_unstored_job_is_not_waited_for(view: FakeView) -> None:
    assert job_wait(replace(job(view), created=""), work=JobType.PRE_DRAIN) == ()


@pytest.mark.parametrize(
    "status",
    [
        row({"ready": 1}, id="running"),
        row({"succeeded": 1}, id="succeeded"),
        row({"uncountedTerminatedPods": {"succeeded": ["u"]}}, id="just succeeded"),
    ],
)
def test_job_whose_pod_runs_costs_no_request(view: FakeView, status: dict[str, Any]) -> None:
    assert blockers(view, job(view, **status)) == []
    assert view.read == []


def test_newest_pod_is_named(view: FakeView) -> None:
    view.found["Pod"] = [pod(view, "old", age=95), pod(view, "new", age=80)]
    (found,) = blockers(view, job(view))
    assert (found.reason, found.name, found.node, found.since) == ("PodPending", "new", "n1", view.ago(80))
    assert [one.label_selector for one in view.read] == ["batch.kubernetes.io/job-name=j"]


@pytest.mark.parametrize(
    ("age", "phase"),
    [
        row(30, "Pending", id="young"),
        row(90, "Failed", id="failed, the next one follows"),
        row(90, "Running", id="runs"),
    ],
)
def test_pod_that_is_not_a_blocker(view: FakeView, age: float, phase: str) -> None:
    view.found["Pod"] = [pod(view, age=age, phase=phase)]
    assert blockers(view, job(view)) == []


def test_pod_that_starts_is_reported_at_its_own_deadline(view: FakeView) -> None:
    view.found["Pod"] = [pod(view, age=59)]
    waits = job_wait(job(view, age=60), work=JobType.PRE_DRAIN, node="n1")
    found = find_blockers(FINDERS, view, waits, [])
    assert (found.blockers, found.after) == ([], 1)


@pytest.mark.parametrize(
    ("containers", "age", "count"),
    [
        row([], 100, 1, id="for long"),
        row([70], 70, 1, id="a minute ago"),
        row([70, 30], 30, 0, id="a moment ago"),
    ],
)
def test_finished_pod_of_an_unfinished_job_is_named(
    view: FakeView, containers: list[float], age: float, count: int
) -> None:
    done = pod(view, age=90, phase="Succeeded")
    states = [{"state": {"terminated": {"finishedAt": view.time(seconds)}}} for seconds in containers]
    done["status"]["containerStatuses"] = states
    view.found["Pod"] = [done]
    text = "Job ns/j: Pod finished; waiting for the Job to be marked complete"
    named = [(one.reason, one.message, one.remedy, one.since) for one in blockers(view, job(view))]
    assert named == [("JobSlow", text, CONTROLLER, view.ago(age))] * count


MET = {"type": "SuccessCriteriaMet", "status": "True"}


@pytest.mark.rule("blockers: a Job whose Pod has succeeded is named, also while its status shows the Pod as running")
@pytest.mark.parametrize("work", [JobType.PRE_DRAIN, Component.CLUSTER_UPGRADE])
@pytest.mark.parametrize(
    ("status", "age", "count"),
    [
        row({"succeeded": 1, "met": 59}, 700, 0, id="a moment ago"),
        row({"succeeded": 1, "met": 60}, 700, 1, id="counted"),
        row({"uncountedTerminatedPods": {"succeeded": ["u"]}, "met": 60}, 700, 1, id="not counted yet"),
        row({"ready": 1}, 599, 0, id="not seen, young"),
        row({"ready": 1}, 600, 1, id="not seen"),
        row({"ready": 1}, 9000, 1, id="not seen, slow"),
    ],
)
def test_success_that_is_not_marked_is_named(
    view: FakeView, status: dict[str, Any], age: float, count: int, work: str
) -> None:
    met = [{**MET, "lastTransitionTime": view.time(status["met"])}] if "met" in status else []
    done = pod(view, age=age, phase="Succeeded")
    done["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": view.time(90)}}}]
    view.found["Pod"] = [done]
    found = blockers(view, job(view, age=age, conditions=met, **{**status, "met": None}), work=work)
    text = "Job ns/j: Pod finished; waiting for the Job to be marked complete"
    assert [(one.message, one.remedy, one.since) for one in found] == [(text, CONTROLLER, view.ago(90))] * count


@pytest.mark.parametrize("is_readable", [True, False])
def test_slow_job_is_named_also_if_its_pods_cannot_be_read(view: FakeView, *, is_readable: bool) -> None:
    if not is_readable:
        view.errors["Pod"] = "forbidden"
    found = blockers(view, job(view, age=9000, ready=1))
    assert [one.reason for one in found] == ["JobSlow"] * (1 if is_readable else 2)
    assert "no progress since" in found[-1].message


@pytest.mark.parametrize(
    ("events", "words"),
    [
        row([], "the Job has no Warning event", id="no event"),
        row(
            [
                {**ABOUT, "message": "old", "lastTimestamp": "2026-01-01T01:00:00Z"},
                {**ABOUT, "message": "exceeded quota: pods.", "eventTime": "2026-01-01T02:00:00.5Z"},
                {"involvedObject": {"name": "k"}, "message": "another Job", "eventTime": "2026-01-01T03:00:00Z"},
            ],
            "exceeded quota: pods",
            id="the newest",
        ),
        row([{**ABOUT, "reason": "FailedCreate"}], "FailedCreate", id="without message"),
        row(
            [{**ABOUT, "metadata": {"creationTimestamp": 1}, "message": None}],
            "the Job has no Warning event",
            id="wrong types",
        ),
    ],
)
def test_job_without_pod_has_the_events_words(view: FakeView, events: list[Any], words: str) -> None:
    view.found["Event"] = events
    (found,) = blockers(view, job(view))
    assert (found.reason, found.kind, found.name) == ("JobHasNoPod", "Job", "j")
    assert found.message.startswith(f"Job ns/j: waiting for its Pod ({words}")
    do = CONTROLLER if words == "the Job has no Warning event" else ALLOW
    assert found.remedy == f"(1) {do} (2) Show its events: kubectl describe job -n ns j"


ACCOUNT = {"spec": {"template": {"spec": {"serviceAccountName": "harvester"}}}}


@pytest.mark.parametrize(
    ("jobs", "accounts", "do"),
    [
        row([ACCOUNT], [], "Create the ServiceAccount: kubectl create serviceaccount -n ns harvester", id="no account"),
        row([ACCOUNT], [{}], ALLOW, id="its account exists"),
        row([{"spec": {"template": 1}}], [], ALLOW, id="wrong types"),
        row([], [], ALLOW, id="no Job"),
    ],
)
def test_job_whose_pods_are_refused(view: FakeView, jobs: list[Any], accounts: list[Any], do: str) -> None:
    view.found["Event"] = [{**ABOUT, "message": "forbidden"}]
    view.found["Job"], view.found["ServiceAccount"] = jobs, accounts
    (found,) = blockers(view, job(view))
    assert found.remedy.startswith(f"(1) {do} (2) ")


def test_refusal_is_reported_without_the_rights_to_read_more(view: FakeView) -> None:
    view.found["Event"], view.found["Job"] = [{**ABOUT, "message": "forbidden"}], [ACCOUNT]
    view.errors["ServiceAccount"] = "no rights"
    (found,) = blockers(view, job(view))
    assert (found.message, found.remedy[: len(ALLOW) + 4]) == (
        "Job ns/j: waiting for its Pod (forbidden)",
        f"(1) {ALLOW}",
    )


@pytest.mark.parametrize(
    ("work", "minutes"),
    [("pre-drain", 30), ("post-drain", 60), ("single-node-upgrade", 90), ("cluster-upgrade", 60)],
)
def test_job_is_slow_after_its_usual_time(view: FakeView, work: str, minutes: int) -> None:
    running = {"ready": 1, "startTime": view.time(60 * minutes - 1)}
    assert blockers(view, job(view, age=9999, **running), work=work) == []
    running["startTime"] = view.time(60 * minutes)
    (found,) = blockers(view, job(view, age=9999, **running), work=work)
    assert (found.reason, found.since) == ("JobSlow", view.ago(60 * minutes))
    since = format_clock(view.ago(60 * minutes))
    assert found.message == f"Job ns/j: no progress since {since}; usually it takes at most {minutes} minutes"
    assert found.remedy == "Show what it does: kubectl logs -n ns job/j"


def test_new_step_is_progress(view: FakeView) -> None:
    slow = job(view, age=9999, ready=1, startTime=view.time(9000))
    assert [one.reason for one in blockers(view, slow)] == ["JobSlow"]
    annotations = {"management.harvesterhci.io/progress-time": view.time(60)}
    metadata = {"name": "j", "creationTimestamp": view.time(9999), "annotations": annotations}
    stepped = JobState.of({"metadata": metadata, "status": {"ready": 1, "startTime": view.time(9000)}})
    assert blockers(view, stepped) == []
