"""The view as a function of plan, events and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from tests.support.managers.displayed import (
    START,
    at,
    event,
    milestone,
    plan,
    running_plan,
    running_view,
    times,
    without,
)
from tests.support.managers.histories import UnwrittenHistory
from upgrade_manager.api.conditions import CONCURRENT_UPGRADE_BLOCKED
from upgrade_manager.api.phases import PHASE_VALUES, PhaseName
from upgrade_manager.display.model import PhaseState, PlanState
from upgrade_manager.display.view import WARNING_ROWS, build, printable
from upgrade_manager.kube.events import EventRecorder
from upgrade_manager.nodes.milestones import MilestoneReason
from upgrade_manager.pipeline.events import PlanEvents
from upgrade_manager.pipeline.status import StatusPatch

NOW = START + timedelta(minutes=1)
#: Values that the CRD refuses, and plans of other versions could have.
HOSTILE: list[Any] = [None, [], {}, [None], [[]], {"a": None}, {"a": []}, 7, "\x1b[2Jtext", True]


CHECKED = {"isoChecked": True, "checked": True}


def condition(type_: str, status: str, message: str, reason: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "message": message, "reason": reason}


def test_plan_without_status_is_pending() -> None:
    view = build({"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}, [], now=NOW)
    assert (view.state, view.route) == (PlanState.PENDING, "Harvester → v1.8.0")
    assert {row.state for row in view.phases} == {PhaseState.PENDING}
    assert [row.name for row in view.phases] == [*PhaseName]
    assert (view.started, view.ended, view.elapsed_seconds, view.progress, view.nodes) == (None, None, 0.0, 0.0, ())


@pytest.mark.rule("status: phases have their durations, and the running one counts on")
@pytest.mark.parametrize("phase", PhaseName)
def test_running_phase_counts_on_after_those_that_are_done(phase: PhaseName) -> None:
    reached = PHASE_VALUES[: PHASE_VALUES.index(phase.active) + 1]
    view = build(plan(currentPhase=phase.active, phaseTransitionTimestamps=times(*reached)), [], now=NOW)
    index = [*PhaseName].index(phase)
    done, later = [(PhaseState.DONE, 1.0)] * index, [(PhaseState.PENDING, None)] * (len(PhaseName) - 1 - index)
    assert [(row.state, row.seconds) for row in view.phases] == [*done, (PhaseState.ACTIVE, 60.0 - 2 * index), *later]
    assert (view.state, view.elapsed_seconds, view.ended) == (PlanState.RUNNING, 60.0, None)


def test_phase_that_an_earlier_manager_lacked_was_skipped() -> None:
    view, whole = build(without(PhaseName.IMAGE_PRELOAD), [], now=NOW), build(running_plan(), [], now=NOW)
    changed = [row for row, other in zip(view.phases, whole.phases, strict=True) if row != other]
    assert [(row.name, row.state, row.seconds) for row in changed] == [("ImagePreload", PhaseState.SKIPPED, None)]
    assert view.progress == whole.progress


def test_succeeded_plan_skipped_a_new_last_phase() -> None:
    phases = times(*PHASE_VALUES[:-2], "Succeeded")
    view = build(plan(currentPhase="Succeeded", phaseTransitionTimestamps=phases), [], now=NOW)
    assert [row.state for row in view.phases] == [*[PhaseState.DONE] * (len(PhaseName) - 1), PhaseState.SKIPPED]


def at_end(phase: str, reached: Sequence[str], *conditions: dict[str, Any]) -> dict[str, Any]:
    return {"currentPhase": phase, "phaseTransitionTimestamps": times(*reached), "conditions": [*conditions]}


SUCCESS = condition("Progressing", "False", "Upgraded from v1.7.1 to v1.8.0")
FAILURES = [
    condition("Progressing", "False", "the import failed"),
    condition("Degraded", "True", "the import failed. Create a new plan"),
]
RUNNING = "UpgradePlan a is running"
BLOCKED = {"conditions": [condition("Available", "False", RUNNING, CONCURRENT_UPGRADE_BLOCKED)]}


@pytest.mark.parametrize(
    ("status", "state", "cause", "elapsed"),
    [
        (at_end("Succeeded", [*PHASE_VALUES, "Succeeded"], SUCCESS), PlanState.SUCCEEDED, "", float(len(PHASE_VALUES))),
        (at_end("Failed", [*PHASE_VALUES[:3], "Failed"], *FAILURES), PlanState.FAILED, "the import failed", 3.0),
        (at_end("Failed", PHASE_VALUES[:3]), PlanState.FAILED, "", 2.0),
    ],
    ids=["succeeded", "failed", "failed without its time"],
)
def test_plan_that_has_ended(status: dict[str, Any], state: PlanState, cause: str, elapsed: float) -> None:
    view = build(plan(**status), [], now=NOW)
    assert (view.state, view.cause, view.elapsed_seconds) == (state, cause, elapsed)
    assert (view.state.is_end, view.waiting, view.last_error) == (True, "", "")
    assert (view.progress == 1.0) is (state is PlanState.SUCCEEDED)
    failed = [row.name for row in view.phases if row.state is PhaseState.FAILED]
    assert failed == (["ISODownload"] if state is PlanState.FAILED else [])


@pytest.mark.rule("status: the toolkit image and the plan's creator are shown where they are recorded")
@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        (None, ""),
        ({}, "r/t:v1 (kind own)"),
        ({"digest": "sha256:ab"}, "r/t@sha256:ab (kind own)"),
        ({"guessed": True}, "r/t:v1 (kind own, the tag is a guess)"),
    ],
    ids=["none", "a tag", "a digest", "a guess"],
)
def test_toolkit_image_and_creator_are_shown(recorded: dict[str, Any] | None, shown: str) -> None:
    image = None if recorded is None else {"repository": "r/t", "tag": "v1", "kind": "own", **recorded}
    view = build(plan(toolkitImage=image, createdBy="alice\x1b"), [], now=NOW)
    assert (view.toolkit_image, view.created_by) == (shown, "alice")


def test_waiting_is_empty_between_two_phases() -> None:
    status = {"currentPhase": "Initialized", "conditions": [condition("Progressing", "True", "waits")]}
    reached = times("Initializing", "Initialized", "ISODownloading")
    assert build(plan(**status, phaseTransitionTimestamps=reached[:2]), [], now=NOW).waiting == ""
    assert build(plan(**status, phaseTransitionTimestamps=reached), [], now=NOW).waiting == "waits"


def test_wait_at_the_end_of_a_phase_is_shown() -> None:
    waits = {**condition("Progressing", "True", "waits"), "reason": "Initialized"}
    status = {"currentPhase": "Initialized", "conditions": [waits]}
    reached = times("Initializing", "Initialized")
    assert build(plan(**status, phaseTransitionTimestamps=reached), [], now=NOW).waiting == "waits"


@pytest.mark.rule("status: a plan that waits for another plan names it")
def test_plan_that_waits_for_another_plan_names_it() -> None:
    held = plan()
    status = StatusPatch(held, now=lambda: NOW)
    status.queue("UpgradePlan earlier is in progress", since="2026-01-01T00:00:00Z")
    status.summarize()
    view = build({**held, "status": status.difference()}, [], now=NOW)
    assert (view.state, "UpgradePlan earlier" in view.waiting) == (PlanState.PENDING, True)


PAUSED = condition("Paused", "True", "Paused by ada")
UNSEEN = condition("Reconciling", "True", "Waiting for the upgrade manager")
QUEUED = {**BLOCKED, "display": {"state": "Queued"}}


@pytest.mark.parametrize(
    ("status", "state", "waiting"),
    [
        pytest.param({"currentPhase": "", "conditions": [UNSEEN]}, PlanState.PENDING, UNSEEN["message"], id="unseen"),
        pytest.param({"currentPhase": "", **QUEUED}, PlanState.PENDING, RUNNING, id="queued"),
        pytest.param({"currentPhase": "Failed", **QUEUED}, PlanState.PENDING, RUNNING, id="queued-resumed"),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [PAUSED], "estimatedCompletion": at(777)},
            PlanState.RUNNING,
            "Paused by ada",
            id="paused",
        ),
    ],
)
def test_plan_that_holds_has_not_ended(status: dict[str, Any], state: PlanState, waiting: str) -> None:
    view = build(plan(**status), [], now=NOW)
    assert (view.state, view.waiting, view.estimated_completion) == (state, waiting, None)
    assert not view.state.is_end


@pytest.mark.parametrize(("status", "shown"), [("True", "no response"), ("False", "")])
def test_last_error_is_the_message_of_degraded(status: str, shown: str) -> None:
    assert build(plan(conditions=[condition("Degraded", status, "no response")]), [], now=NOW).last_error == shown


@pytest.mark.parametrize("display", [{}, {"state": "Pending"}], ids=["absent", "the schema's default"])
@pytest.mark.parametrize(
    ("phase", "status"), [("NodeUpgrading", "Stalled: JobSlow"), ("", "Pending"), ("Failed", "Failed")]
)
def test_state_of_a_plan_of_an_earlier_manager(phase: str, status: str, display: dict[str, str]) -> None:
    stalled = condition("Stalled", "True", "slow", "JobSlow")
    view = build(plan(currentPhase=phase, conditions=[stalled], display=display), [], now=NOW)
    assert view.status == status


def test_deletion_and_cleanup_are_shown() -> None:
    deleted = plan(currentPhase="Failed", cleanupPending=True)
    assert build(deleted, [], now=NOW).cleaning_up
    assert not build(deleted, [], now=NOW).deleting
    deleted["metadata"]["deletionTimestamp"] = at(3)
    assert build(deleted, [], now=NOW).deleting


MILESTONES = {
    "UpgradePaused": "NodePaused",
    "PreDraining": "NodeDraining",
    "PostDraining": "NodeUpgrading",
    "SingleNodeUpgrading": "NodeUpgrading",
    "WaitingReboot": "NodeRebooting",
    "PostDrained": "NodeUpgraded",
    "SingleNodeUpgraded": "NodeUpgraded",
}


@pytest.mark.parametrize(("state", "reason"), MILESTONES.items())
def test_nodes_state_began_at_its_milestone(state: str, reason: str) -> None:
    events = [
        milestone(reason, "node-0", second=20),
        milestone(reason, "node-1", second=30),
        milestone("NodeOther", "node-0", second=40),
    ]
    status = {"nodeUpgradeStatuses": {"node-0": {"state": state}, "node-2": {"state": state}}}
    rows = build(plan(**status), events, now=NOW).nodes
    assert [row.since for row in rows] == [START + timedelta(seconds=20), None]


class Recorder:
    """Makes objects of the manager's events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def record(self, _: object, *, type_: str, reason: str, message: str, name: str, is_known: bool) -> None:
        assert not is_known
        self.events.append(event(reason, message, type_=type_, name=name, second=20))


def test_milestones_are_found_by_the_names_of_the_manager() -> None:
    recorder = Recorder()
    events = PlanEvents(cast("EventRecorder", recorder), now=lambda: NOW, history=UnwrittenHistory())
    draining = plan(currentPhase="NodeUpgrading", nodeUpgradeStatuses={"node-0": {"state": "PreDraining"}})
    events.once(draining, MilestoneReason.NODE_DRAINING, "Node node-0: draining begins", about="node-0")
    (row,) = build(draining, recorder.events, now=NOW).nodes
    assert row.since == START + timedelta(seconds=20)


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    names = ["node-10", "node-9", "a-longer-name"]
    view = build(plan(nodeUpgradeStatuses={name: {"state": "PreDraining"} for name in names}), [], now=NOW)
    assert [row.name for row in view.nodes] == ["node-9", "node-10", "a-longer-name"]
    assert {row.since for row in view.nodes} == {None}


def test_last_warnings_are_shown_and_all_events_kept() -> None:
    events = [event("Retry", f"attempt {number}", second=number) for number in range(WARNING_ROWS + 2)]
    events.append(event("NodeDraining", "Node node-0: …", second=30, type_="Normal"))
    view = build(plan(), list(reversed(events)), now=NOW)
    assert [row.message for row in view.warnings] == [f"attempt {number}" for number in range(2, WARNING_ROWS + 2)]
    assert len(view.events) == WARNING_ROWS + 3
    assert view.events[-1].reason == "NodeDraining"


def test_blockers_of_newer_managers_are_shown() -> None:
    entry = {"reason": "NotKnownYet", "kind": "Pod", "name": "x", "message": "waits", "remedy": "wait", "since": at(1)}
    (row,) = build(plan(blockers=[entry, None]), [], now=NOW).blockers
    assert (row.reason, row.since, row.namespace) == ("NotKnownYet", START + timedelta(seconds=1), "")


@pytest.mark.rule("status: objects of any content have a view, without control characters")
@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize(
    "field",
    [
        *("blockers", "conditions", "currentPhase", "estimatedCompletion", "nodeUpgradeStatuses"),
        *("phaseTransitionTimestamps", "previousVersion", "releaseMetadata"),
    ],
)
def test_invalid_values_count_as_absent(field: str, value: Any) -> None:
    view = build(plan(**{field: value}), [event("Odd", "x", count=value, lastTimestamp=value)], now=NOW)
    assert "\x1b" not in repr(view)
    assert view.plan == "demo"


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_invalid_objects_have_a_view(value: Any) -> None:
    assert build({"metadata": value, "spec": value, "status": value}, [{"metadata": value}], now=NOW).plan == ""


def test_texts_are_single_printable_lines() -> None:
    text = "a\x1b[31m\nb\u202ec\ud800" + "x" * 5000
    nodes = {"n\x07": {"state": "PreDraining\r", "message": text}}
    view = build(plan(nodeUpgradeStatuses=nodes, blockers=[{"remedy": text}]), [event("R\n", text)], now=NOW)
    shown = [view.nodes[0].name, view.nodes[0].message, view.blockers[0].remedy, view.warnings[0].message]
    assert all(part.isprintable() and len(part) <= 1000 for part in shown)
    assert view.nodes[0].message.startswith("a [31m b c x")
    longest = {"node-0": {"state": "PreDraining", "message": "x" * 1000}}
    assert build(plan(nodeUpgradeStatuses=longest), [], now=NOW).nodes[0].message == "x" * 1000


def test_time_without_a_phase_is_not_a_start() -> None:
    entries = [{"phaseTransitionTimestamp": at(5)}, *times("Initializing")]
    view = build(plan(currentPhase="Initializing", phaseTransitionTimestamps=entries[::-1]), [], now=NOW)
    assert view.started == START
    assert build(plan(phaseTransitionTimestamps=entries[:1]), [], now=NOW).started is None


def test_same_objects_give_equal_views() -> None:
    assert running_view() == running_view()
    assert replace(running_view(), now=NOW) != running_view()


@pytest.mark.rule("status: status and report show what of the ISO was checked against checksums")
@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        pytest.param(None, "", id="not recorded yet"),
        pytest.param({"isoChecked": True}, "ISO checked", id="files not known yet"),
        pytest.param({**CHECKED, "files": {"/a": "b", "/c": "d"}}, "ISO checked, Jobs check 2 files of it", id="all"),
        pytest.param(
            {"isoChecked": False, "checked": False, "message": "the Job failed"},
            "ISO not checked (it has no checksum), Jobs check no files of it (the Job failed)",
            id="nothing",
        ),
    ],
)
def test_checksums_are_shown(recorded: dict[str, Any] | None, shown: str) -> None:
    assert build(plan(checksums=recorded), [], now=NOW).checksums == shown


def test_times_without_a_phase_do_not_count() -> None:
    entries = [{"phaseTransitionTimestamp": at(-60)}, *times("Initializing")]
    view = build(plan(currentPhase="Initializing", phaseTransitionTimestamps=entries), [], now=NOW)
    assert view.started == START


@pytest.mark.parametrize(("length", "shown"), [(1000, "x" * 1000), (1001, "x" * 999 + "…")])
def test_text_of_more_than_1000_characters_is_cut(length: int, shown: str) -> None:
    assert printable("x" * length) == shown
