from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import structlog

from hack.simulation import Simulation
from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import FakeEventRecorder, Harvester
from tests.support.managers.histories import UnwrittenHistory
from tests.support.managers.upgrade import BY_VERSION, started
from upgrade_manager.api.keys import ANNOTATION_RECONCILE_ID
from upgrade_manager.api.phases import PHASES
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import EVENTS
from upgrade_manager.pipeline.events import PlanEvents, reconcile_annotations


def plan(name: str = "up", uid: str = "u-1", **status: Any) -> dict[str, Any]:
    return {"kind": "UpgradePlan", "metadata": {"name": name, "uid": uid}, "status": status}


TIME = "phaseTransitionTimestamp"
PAUSING = {**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": ["nope"]}}


@pytest.fixture
def recorder(cluster: Harvester) -> FakeEventRecorder:
    return cluster.recorder


@pytest.fixture
def events(recorder: FakeEventRecorder) -> PlanEvents:
    return PlanEvents(recorder, now=virtual_now, history=UnwrittenHistory())


@pytest.mark.rule("pipeline: each phase records events PhaseTransition and PhaseCompleted")
@pytest.mark.parametrize("phase", PHASES)
async def test_phase_has_an_event_on_entry_and_completion(
    events: PlanEvents, recorder: FakeEventRecorder, phase: Any
) -> None:
    events.phases(plan(), [phase.active, phase.completed])
    assert recorder.recorded == [
        ("PhaseTransition", f"Entering phase {phase}"),
        ("PhaseCompleted", f"Completed phase {phase}"),
    ]


@pytest.mark.rule(
    "pipeline: success records the event UpgradeSucceeded",
    'pipeline: failure records the event UpgradeFailed "Upgrade failed: CAUSE"',
)
async def test_end_has_an_event_with_its_cause(events: PlanEvents, recorder: FakeEventRecorder) -> None:
    condition = {"type": "Progressing", "status": "False", "message": "node n1\nupgrade failed"}
    events.phases(plan(conditions=[condition]), ["Failed"])
    events.phases(plan(), ["Succeeded"])
    assert recorder.recorded[0] == ("UpgradeFailed", "Upgrade failed: node n1 upgrade failed")
    assert recorder.recorded[1][0] == "UpgradeSucceeded"


async def test_unknown_phase_has_no_event(events: PlanEvents, recorder: FakeEventRecorder) -> None:
    events.phases(plan(), ["Polishing", "", "Initializing"])
    assert recorder.recorded == [("PhaseTransition", "Entering phase Initialize")]


@pytest.mark.rule("pipeline: each phase event exists exactly once, after any crash")
async def test_equal_events_have_equal_names(events: PlanEvents, recorder: FakeEventRecorder) -> None:
    events.phases(plan(), ["Initializing"])
    events.phases(plan(), ["Initializing"])
    events.phases(plan(uid="u-2"), ["Initializing"])
    first, second, other = recorder.names
    assert first == second != other


@pytest.mark.parametrize("name", ["u", "v1.8.0", "p" * 253, "a." * 126 + "a", "p" * 199 + "." + "q" * 53])
async def test_event_name_is_a_valid_object_name(
    events: PlanEvents, recorder: FakeEventRecorder, cluster: Harvester, name: str
) -> None:
    events.phases(plan(name=name), ["Initializing"])
    about = {"kind": "UpgradePlan", "name": name, "apiVersion": "management.harvesterhci.io/v1beta1"}
    await cluster.put(
        EVENTS, {"metadata": {"name": recorder.names[0], "namespace": "default"}, "involvedObject": about}
    )
    assert await cluster.names(EVENTS) == recorder.names


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        pytest.param({"phase": "Initializing", TIME: "2026-01-01T00:00:00Z"}, 1, id="just now"),
        pytest.param({"phase": "Initializing", TIME: "2025-12-31T23:56:00Z"}, 1, id="four minutes ago"),
        pytest.param({"phase": "Initializing", TIME: "2025-12-31T23:09:00Z"}, 0, id="more than fifty minutes ago"),
        pytest.param({"phase": "Initializing", TIME: "2026-02-01T00:00:00Z"}, 1, id="in the future"),
        pytest.param({"phase": "Initializing", TIME: "yesterday"}, 0, id="malformed time"),
        pytest.param({"phase": "Initializing"}, 0, id="no time"),
        pytest.param({TIME: "2026-01-01T00:00:00Z"}, 0, id="no phase"),
        pytest.param({"phase": "Polishing", TIME: "2026-01-01T00:00:00Z"}, 0, id="unknown phase"),
        pytest.param(None, 0, id="no status"),
    ],
)
async def test_recent_phases_are_replayed(
    events: PlanEvents, recorder: FakeEventRecorder, entry: dict[str, str] | None, count: int
) -> None:
    events.replay(plan(phaseTransitionTimestamps=[entry]) if entry else {"metadata": {"name": "up"}})
    assert len(recorder.recorded) == count


async def test_each_phase_is_replayed_once(events: PlanEvents, recorder: FakeEventRecorder) -> None:
    def reached(*phases: str) -> dict[str, Any]:
        time = "2026-01-01T00:00:00Z"
        return plan(phaseTransitionTimestamps=[{"phase": p, TIME: time} for p in phases])

    events.phases(reached("Initializing"), ["Initializing"])
    events.replay(reached("Initializing"))
    assert len(recorder.recorded) == 1
    # The write of the second one succeeded, but its response was lost.
    for _ in range(2):
        events.replay(reached("Initializing", "Initialized"))
    assert recorder.recorded[1:] == [("PhaseCompleted", "Completed phase Initialize")]


async def test_only_warnings_have_unique_names(events: PlanEvents, recorder: FakeEventRecorder) -> None:
    events.error(plan(), "one\ntwo")
    events.warning(plan(), "SettingNotRestored", "a\nb")
    events.blocked(plan(conditions=[{"type": "Available", "message": "UpgradePlan first is in progress"}]))
    assert recorder.recorded == [
        ("ReconcileError", "one two"),
        ("SettingNotRestored", "a b"),
        ("ConcurrentUpgradeBlocked", "UpgradePlan first is in progress"),
    ]
    assert [bool(name) for name in recorder.names] == [False, True, True]


@pytest.mark.rule("pipeline: each time in the queue is one Warning event, ConcurrentUpgradeBlocked")
@pytest.mark.parametrize(
    ("minutes", "count"),
    [
        pytest.param([10, 10], 1, id="one time"),
        pytest.param([10, 5], 2, id="twice"),
        pytest.param([60], 0, id="of an earlier process"),
    ],
)
async def test_each_queueing_is_recorded(
    events: PlanEvents, recorder: FakeEventRecorder, minutes: list[int], count: int
) -> None:
    for ago in minutes:
        since = format_time(virtual_now() - timedelta(minutes=ago))
        events.blocked(plan(queuedSince=since, conditions=[{"type": "Available", "message": "Upgrade x is running"}]))
    assert recorder.recorded == [("ConcurrentUpgradeBlocked", "Upgrade x is running")] * count
    assert len(set(recorder.names)) == count


async def test_warnings_are_unique_by_what_they_are_about(events: PlanEvents, recorder: FakeEventRecorder) -> None:
    for about in ("a", "b", "a"):
        events.warning(plan(), "Odd", "it is", about=about)
    events.warning(plan(), "Odd", "it is")
    first, second, again, bare = recorder.names
    assert first == again
    assert len({first, second, bare}) == 3


@pytest.mark.parametrize(
    ("at", "count"),
    [
        pytest.param(None, 1, id="just now"),
        pytest.param(-3000, 0, id="fifty minutes ago"),
        pytest.param(-2999, 1, id="a second less"),
    ],
)
async def test_milestone_is_recorded_once_unless_old(
    events: PlanEvents, recorder: FakeEventRecorder, at: int | None, count: int
) -> None:
    time = None if at is None else virtual_now() + timedelta(seconds=at)
    for _ in range(2):
        events.once(plan(), "NodeDraining", "Node n1: draining begins", about="n1", at=time)
    assert recorder.recorded == [("NodeDraining", "Node n1: draining begins")] * count
    assert events.is_handled(plan(), "NodeDraining", "n1")
    assert not events.is_handled(plan(uid="u-2"), "NodeDraining", "n1")


@pytest.mark.rule("pipeline: the names of a plan's events sort as the events happened")
@pytest.mark.full
async def test_names_sort_as_the_events_happened() -> None:
    async with Simulation("three-nodes") as simulation, started(simulation, PAUSING) as stage:
        await stage.succeed()
        happened = [event for event in await stage.events() if event["source"]["component"] == "upgradeplan-controller"]
    # As kubectl does: listed by name, sorted by time.
    shown = sorted(happened, key=lambda event: (event["lastTimestamp"], objects.name(event)))
    assert [event["message"] for event in shown] == [event["message"] for event in happened]
    assert len({event["lastTimestamp"] for event in happened}) < len(happened)
    assert [event["reason"] for event in happened].count("PauseNodesUnknown") == 1


async def test_events_have_the_id_of_the_reconcile_that_log_lines_have() -> None:
    with structlog.contextvars.bound_contextvars(reconcile_id="4f1c"):
        assert reconcile_annotations() == {ANNOTATION_RECONCILE_ID: "4f1c"}
    assert reconcile_annotations() == {}
