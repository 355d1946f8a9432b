"""The attempts of a plan in every form of display."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tests.display.test_timeline import bars
from tests.support.managers.incident_screens import in_pipe, on_terminal
from tests.support.managers.retried import AGAIN, CAUSE, DONE, FAILED, NODES, events, moment, requested, retried
from upgrade_manager.display.document import document
from upgrade_manager.display.expectation import Pace, pace_of
from upgrade_manager.display.lines import changes
from upgrade_manager.display.model import PhaseState, PlanState, View
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import Report, report
from upgrade_manager.display.view import build
from upgrade_manager.kube.objects import Object

NOW = DONE + 100
#: The seconds of work until NOW: the first attempt, and the second one so far.
WORK = FAILED + NOW - AGAIN


def view(plan: Object | None = None, *, now: int = NOW, **more: Any) -> View:
    return build(plan or retried(), events(), now=moment(now), **more)


def page(plan: Object | None = None) -> Report:
    return report(plan or retried(), events(), [], [], now=moment(NOW))


@pytest.mark.rule("status: the time between two attempts is not work, and counts in no duration")
def test_durations_leave_out_the_time_between_attempts() -> None:
    shown = view()
    phase = next(row for row in shown.phases if row.name == "NodeUpgrade")
    assert shown.elapsed_seconds == WORK
    assert (phase.state, phase.seconds, phase.ended) == (PhaseState.ACTIVE, WORK - NODES, None)


@pytest.mark.rule("status: a plan that is retried shows its attempt, and where and why the earlier ones failed")
def test_document_has_the_attempts() -> None:
    found = document(view())
    assert found["attempt"] == 2
    first, second = found["attempts"]
    assert first == {
        "number": 1,
        "started": "2030-01-01T12:00:00Z",
        "ended": "2030-01-01T12:50:00Z",
        "phase": "NodeUpgrade",
        "node": "node-1",
        "cause": CAUSE,
    }
    assert second == {
        "number": 2,
        "started": "2030-01-02T13:00:00Z",
        "ended": None,
        "phase": "",
        "node": "",
        "cause": "",
    }


@pytest.mark.rule("status: a plan that is retried shows its attempt, and where and why the earlier ones failed")
def test_screens_have_the_attempts() -> None:
    low, high, piped = on_terminal(view(), 80, 24), on_terminal(view(), 120, 40), in_pipe(view())
    assert "started      2030-01-01 12:00:00 UTC, 1 h 8 min of work\n" in low
    assert "attempt      2, since 2030-01-02 13:00:00 UTC, 18 min 20 s; 1 failed in\n" in low
    table = [
        "ATTEMPT  SINCE                    DURATION     FAILED IN              CAUSE",
        f"1        2030-01-01 12:00:00 UTC  50 min 0 s   NodeUpgrade of node-1  {CAUSE}",
        "2        2030-01-02 13:00:00 UTC  18 min 20 s",
    ]
    assert "\n".join(table) in piped
    assert "ATTEMPT" not in low
    assert table[0] in high


def test_plan_of_one_attempt_has_no_line_of_attempts() -> None:
    failed = retried(currentPhase="Failed", attempt=1, attempts=retried()["status"]["attempts"][:1])
    shown = in_pipe(view(failed))
    assert "elapsed" in shown
    assert "attempt" not in shown.lower()


@pytest.mark.rule("status: a failed plan whose next attempt is requested is not an end")
def test_requested_attempt_is_awaited() -> None:
    shown = view(requested())
    assert (shown.state, shown.status, shown.ended) == (PlanState.PENDING, "Pending", None)
    assert (shown.next_steps, shown.last_error, shown.cause) == ((), "", "")
    assert shown.waiting == "Attempt 2 is requested; the manager has not begun it"
    assert shown.elapsed_seconds == FAILED
    assert next(row.seconds for row in shown.phases if row.state is PhaseState.FAILED) == FAILED - NODES


@pytest.mark.parametrize(
    ("type_", "reason", "state", "word"),
    [
        pytest.param("Available", "Waiting", "Queued", "Queued", id="for checks"),
        pytest.param("Available", "ConcurrentUpgradeBlocked", "Queued", "Queued", id="for another plan"),
        pytest.param("Available", "CleaningUp", "Queued", "Queued", id="for the end of the failed one"),
        pytest.param("Paused", "Paused", "Paused", "Paused", id="for its user"),
        pytest.param("Available", "Waiting", "Failed: NodeUpgradeFailed", "Pending", id="for the manager"),
    ],
)
def test_requested_attempt_says_for_what_it_waits(type_: str, reason: str, state: str, word: str) -> None:
    plan = requested()
    plan["status"]["conditions"] = [{"type": type_, "status": "True", "reason": reason, "message": "for a reason"}]
    plan["status"]["display"] = {"state": state}
    assert (view(plan).status, view(plan).waiting) == (word, "for a reason")


def test_line_of_text_says_that_an_attempt_has_begun() -> None:
    found = list(changes(view(requested()), view()))
    assert found[0] == "attempt 2: started"
    assert list(changes(view(), view())) == []


#: node by node.
PACE = Pace(seconds={"NodeUpgrade": 1500.0, "ImageCleanup": 10.0}, nodes=3)


@pytest.mark.rule("status: the expected end judges the work of the present attempt")
@pytest.mark.parametrize(
    ("states", "now", "left"),
    [
        # The node that failed takes as long as any other.
        pytest.param(("PostDrained", "PostDraining", "ImagePreloaded"), AGAIN + 500, 1000 + 1500 + 30, id="at once"),
        pytest.param(("PostDrained", "PostDrained", "PreDraining"), AGAIN + 1600, 1400 + 30, id="its next node"),
        pytest.param(("PostDrained", "PostDraining", "ImagePreloaded"), AGAIN + 9000, None, id="late"),
    ],
)
def test_expected_end_is_that_of_the_attempt(states: tuple[str, ...], now: int, left: float | None) -> None:
    since = {"node-0": moment(2500), "node-1": moment(DONE), "node-2": moment(DONE)}
    nodes = {
        name: {"state": state, "since": f"{time:%Y-%m-%dT%H:%M:%SZ}"}
        for (name, time), state in zip(since.items(), states, strict=True)
    }
    found = view(retried(nodeUpgradeStatuses=nodes), now=now, pace=PACE).estimated_completion
    assert ((found - moment(now)).total_seconds() if found is not None else None) == left


def test_phase_that_was_repeated_sets_no_pace() -> None:
    plan = retried()
    plan["status"]["phaseTransitionTimestamps"].append(
        {"phase": "NodeUpgraded", "phaseTransitionTimestamp": f"{moment(DONE + 600):%Y-%m-%dT%H:%M:%SZ}"}
    )
    found = pace_of([plan]).seconds
    assert "NodeUpgrade" not in found
    assert "ClusterUpgrade" in found


@pytest.mark.rule("report: each attempt is a bar, and has the bars of its phases and nodes")
def test_attempts_are_bars() -> None:
    shown = page()
    assert shown.timeline is not None
    rows = {row.name: row.spans for row in shown.timeline.attempts}
    assert [*rows] == ["Attempt 1", "Attempt 2"]
    assert [(span.kind, span.is_open) for (span,) in rows.values()] == [("failed", False), ("active", True)]
    assert bars(shown, "NodeUpgrade") == [("failed", NODES, FAILED, False), ("active", AGAIN, NOW, True)]
    assert bars(shown, "ClusterUpgrade")[0][0] == "done"
    assert [kind for kind, *_ in bars(shown, "node-0")] == ["draining", "upgrading", "rebooting"]
    assert bars(shown, "node-1") == [
        ("draining", 2600, 2800, False),
        ("failed", 2800, FAILED, False),
        ("upgrading", AGAIN + 10, AGAIN + 800, False),
        ("rebooting", AGAIN + 800, DONE, False),
    ]
    assert bars(shown, "node-2") == [("draining", DONE + 50, NOW, True)]


def test_node_of_two_attempts_took_its_work() -> None:
    node = next(one for one in page().nodes if one.row.name == "node-1")
    assert node.took == FAILED - 2600 + DONE - AGAIN


def test_page_of_one_attempt_has_no_bars_of_attempts() -> None:
    shown = page(retried(attempt=1, attempts=[]))
    assert shown.timeline is not None
    assert shown.timeline.attempts == ()


def test_page_says_why_an_attempt_failed() -> None:
    text = to_html(page())
    assert "<h3>Attempts</h3>" in text
    assert f"Failed in NodeUpgrade of node-1: {CAUSE}" in text
    assert "so far, in 2 attempts" in text


def test_attempts_of_any_content_are_drawn() -> None:
    odd: list[Any] = [
        {"attempt": "x", "begin": 7, "end": [], "phase": {}, "node": None, "cause": "\x1b[31m"},
        "x",
        None,
        {},
    ]
    plan = retried(attempts=odd)
    assert "\x1b" not in document(view(plan))["attempts"][0]["cause"]
    Console(file=io.StringIO()).print(in_pipe(view(plan)))
    assert to_html(page(plan))
