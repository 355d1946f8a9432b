from __future__ import annotations

import platform
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from upgrade_manager import __version__
from upgrade_manager.api import conditions
from upgrade_manager.api.phases import PHASE_VALUES, PHASES
from upgrade_manager.kube.store import Store
from upgrade_manager.pipeline.metrics import MAX_STATE_SETS, PlanCollector, UpgradeMetrics
from upgrade_manager.pipeline.movement import ProgressTracker
from upgrade_manager.runtime.metrics import Metrics

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def plan(*phases: tuple[str, Any], name: str = "up", **status: Any) -> dict[str, Any]:
    """Build a plan that reached those phase values so many seconds after the epoch."""
    entries = [{"phase": value, "phaseTransitionTimestamp": _timestamp(seconds)} for value, seconds in phases]
    current = phases[-1][0] if phases else None
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"version": "v1.7.0"},
        "status": {"phaseTransitionTimestamps": entries, "currentPhase": current, **status},
    }


def _timestamp(seconds: int | str) -> str:
    """Return the time as Kubernetes writes it; a text stays."""
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}" if isinstance(seconds, int) else seconds


class Reading:
    """The samples of a scrape."""

    def __init__(self) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.upgrades = UpgradeMetrics(self.metrics)
        self.now = EPOCH + timedelta(hours=1)
        self.is_leader = True

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"harvester_upgrade_{name}", labels)

    def durations(self, phase: str, outcome: str) -> tuple[float | None, float | None]:
        labels = {"phase": phase, "outcome": outcome}
        return self.value("phase_duration_seconds_count", **labels), self.value("phase_duration_seconds_sum", **labels)

    def plans(self, *plans: dict[str, Any]) -> None:
        store = Store()
        store.replace(plans, "1")
        progress = self.upgrades.progress
        collector = PlanCollector(store, progress=progress, now=lambda: self.now, is_leader=lambda: self.is_leader)
        collector.refresh()
        self.metrics.registry.register(collector)


@pytest.fixture
def reading() -> Reading:
    return Reading()


def test_metrics_exist_at_zero(reading: Reading) -> None:
    assert reading.value("plans_total", outcome="succeeded") == 0
    assert reading.value("plans_total", outcome="failed") == 0
    for outcome in ("completed", "failed"):
        assert {reading.durations(phase, outcome) for phase in PHASES} == {(0, 0)}


STARTED = [("Initializing", 0), ("Initialized", 7)]
#: A plan that failed at 100, and whose second attempt began at 1000.
FIRST = {"attempt": 1, "begin": _timestamp(0), "end": _timestamp(100), "phase": "NodeUpgrade"}
SECOND = {"attempt": 2, "begin": _timestamp(1000)}
RETRIED: dict[str, Any] = {"attempt": 2, "attempts": [FIRST, SECOND]}


@pytest.mark.parametrize(
    ("phases", "phase", "outcome", "seconds"),
    [
        pytest.param(STARTED, "Initialize", "completed", 7, id="a phase ended"),
        pytest.param([*STARTED, ("ISODownloading", 7), ("Failed", 20)], "ISODownload", "failed", 13, id="it failed"),
        pytest.param(
            [("Initializing", 9), ("Initialized", 2)], "Initialize", "completed", 0, id="a clock that goes back"
        ),
    ],
)
def test_phase_duration_is_observed_at_its_end(
    reading: Reading, phases: list[tuple[str, int]], phase: str, outcome: str, seconds: int
) -> None:
    reading.upgrades.recorded(plan(*phases), [phases[-1][0]])
    assert reading.durations(phase, outcome) == (1, seconds)


def test_phases_of_an_earlier_process_are_not_counted_again(reading: Reading) -> None:
    reading.upgrades.replay(plan(*STARTED))
    assert reading.durations("Initialize", "completed") == (0, 0)
    for _ in range(2):
        reading.upgrades.replay(plan(*STARTED, ("ISODownloading", 7), ("ISODownloaded", 9)))
    assert reading.durations("Initialize", "completed") == (0, 0)
    assert reading.durations("ISODownload", "completed") == (1, 2)
    reading.upgrades.recorded(plan(*STARTED, name="next"), ["Initialized"])
    reading.upgrades.replay(plan(*STARTED, name="next"))
    assert reading.durations("Initialize", "completed") == (1, 7)


@pytest.mark.rule("metrics: each end of an attempt is counted once, and each attempt observes its phases")
def test_each_end_of_an_attempt_is_counted_once(reading: Reading) -> None:
    running, upgrades = ("NodeUpgrading", 40), reading.upgrades
    upgrades.recorded(plan(running, ("Failed", 100)), ["Failed"])
    upgrades.replay(plan(running, ("Failed", 100)))
    assert reading.durations("NodeUpgrade", "failed") == (1, 60)
    upgrades.replay(plan(running, **RETRIED))
    upgrades.recorded(plan(running, ("Failed", 1300), **RETRIED), ["Failed"])
    assert reading.durations("NodeUpgrade", "failed") == (2, 360)
    third: dict[str, Any] = {"attempt": 3, "attempts": [FIRST, {**SECOND, "end": _timestamp(1300)}]}
    third["attempts"].append({"attempt": 3, "begin": _timestamp(2000)})
    # The response to its write was lost.
    upgrades.replay(plan(running, ("Failed", 2000), **third))
    upgrades.replay(plan(running, ("Failed", 2000), **third))
    assert reading.value("plans_total", outcome="failed") == 3
    fourth: dict[str, Any] = {"attempt": 4, "attempts": [*third["attempts"], {"attempt": 4, "begin": _timestamp(3000)}]}
    upgrades.recorded(plan(running, ("NodeUpgraded", 3020), **fourth), ["NodeUpgraded"])
    assert reading.durations("NodeUpgrade", "completed") == (1, 20)


def test_attempts_of_an_earlier_process_are_not_counted_again(reading: Reading) -> None:
    reading.upgrades.replay(plan(("NodeUpgrading", 40), ("Failed", 1300), **RETRIED))
    assert reading.value("plans_total", outcome="failed") == 0


def test_refused_phase_counts_as_no_failed_phase(reading: Reading) -> None:
    phases = [("MetadataPopulating", 0), ("MetadataPopulated", 5), ("Failed", 5)]
    reading.upgrades.recorded(plan(*phases), ["MetadataPopulated", "Failed"])
    assert reading.durations("MetadataPopulate", "completed") == (1, 5)
    assert reading.durations("MetadataPopulate", "failed") == (0, 0)
    assert reading.value("plans_total", outcome="failed") == 1


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param([("Failed", 0)], id="nothing before the failure"),
        pytest.param([("Polishing", 0), ("Failed", 1)], id="a phase of a newer version before it"),
        pytest.param([("Polishing", 0)], id="such a phase itself"),
        pytest.param([("Initialized", 4)], id="an end without a beginning"),
        pytest.param([("Initializing", "yesterday"), ("Initialized", 4)], id="a beginning that cannot be read"),
        pytest.param([("Initializing", 0), ("Initialized", "later")], id="an end that cannot be read"),
        pytest.param([("Initializing", 0), ("Failed", "later")], id="a failure that cannot be read"),
    ],
)
def test_malformed_timestamps_are_ignored(reading: Reading, phases: list[tuple[str, Any]]) -> None:
    reading.upgrades.recorded(plan(*phases), [phases[-1][0]])
    assert reading.durations("Initialize", "completed") == (0, 0)


def test_whole_run_counts_each_phase_once(reading: Reading) -> None:
    values = [*PHASE_VALUES, "Succeeded"]
    reading.upgrades.recorded(plan(*((value, 10 * index) for index, value in enumerate(values))), values)
    assert reading.durations("NodeUpgrade", "completed") == (1, 10)
    assert reading.value("plans_total", outcome="succeeded") == 1


DOWNLOADING = plan(*STARTED, ("ISODownloading", 7))
FAILED = plan(("Initializing", 0), ("Failed", 9), nodeUpgradeStatuses={"n1": {"state": "PreDrainFailed"}})
INITIALIZED = plan(("Initializing", 0), ("Initialized", "later"))
STARTING = plan(("Initializing", 0))
VERSIONED = plan(previousVersion="v1.6.1", releaseMetadata={"harvester": "v1.7.0-rc1"}, display={"state": "Running"})
NODES = plan(nodeUpgradeStatuses={"n1": {"state": "PreDraining"}, "n2": {"state": "Polishing"}, "n3": {}})
AGAIN = plan(("NodeUpgrading", 40), **RETRIED)
DONE_AGAIN = plan(("NodeUpgrading", 40), ("NodeUpgraded", 1300), **RETRIED)
DEGRADED = plan(conditions=[{"type": "Degraded", "status": "True"}])


@pytest.mark.parametrize(
    ("observed", "name", "labels", "value"),
    [
        pytest.param(DOWNLOADING, "phase_seconds", {"phase": "Initialize"}, 7, id="seconds of an ended phase"),
        pytest.param(DOWNLOADING, "phase_seconds", {"phase": "ISODownload"}, 3593, id="seconds of a running phase"),
        pytest.param(DOWNLOADING, "phase_seconds", {"phase": "RepoCreate"}, None, id="seconds of a later phase"),
        pytest.param(FAILED, "phase_seconds", {"phase": "Initialize"}, 9, id="seconds until a failure"),
        pytest.param(AGAIN, "phase_seconds", {"phase": "NodeUpgrade"}, 60 + 2600, id="seconds of both attempts"),
        pytest.param(
            DONE_AGAIN,
            "phase_seconds",
            {"phase": "NodeUpgrade"},
            60 + 300,
            id="seconds of a phase that ended in the second",
        ),
        pytest.param(AGAIN, "last_progress_timestamp_seconds", {}, EPOCH.timestamp() + 1000, id="begin of an attempt"),
        pytest.param(AGAIN, "attempt", {}, 2, id="the attempt"),
        pytest.param(FAILED, "attempt", {}, 1, id="the first attempt"),
        pytest.param(INITIALIZED, "phase_seconds", {"phase": "Initialize"}, None, id="an end that cannot be read"),
        pytest.param(STARTING, "phase", {"phase": "Initialize"}, 1, id="the current phase"),
        pytest.param(INITIALIZED, "phase", {"phase": "Initialize"}, 1, id="a completed phase"),
        pytest.param(STARTING, "phase", {"phase": "Failed"}, 0, id="another phase"),
        pytest.param(FAILED, "phase", {"phase": "Failed"}, 1, id="the failure"),
        pytest.param(
            VERSIONED,
            "info",
            {"version": "v1.7.0-rc1", "previous_version": "v1.6.1", "image": "", "status": "Running"},
            1,
            id="the versions",
        ),
        pytest.param(NODES, "node_state", {"node": "n1", "state": "PreDraining"}, 1, id="a node's state"),
        pytest.param(NODES, "node_state", {"node": "n1", "state": "PreDrained"}, 0, id="a state it is not in"),
        pytest.param(NODES, "node_state", {"node": "n2", "state": "PreDraining"}, 0, id="a node in an unknown state"),
        pytest.param(NODES, "nodes", {"state": "PreDraining"}, 1, id="nodes in a state"),
        pytest.param(NODES, "nodes", {"state": "PreDrained"}, 0, id="no nodes in a state"),
        pytest.param(FAILED, "nodes", {"state": "PreDrainFailed"}, 1, id="nodes of an ended plan"),
        pytest.param(
            FAILED, "node_state", {"node": "n1", "state": "PreDrainFailed"}, None, id="a node of an ended plan"
        ),
        pytest.param(DOWNLOADING, "progress_ratio", {}, 0.01, id="progress"),
        pytest.param(DOWNLOADING, "last_progress_timestamp_seconds", {}, EPOCH.timestamp() + 7, id="last progress"),
        pytest.param(DEGRADED, "last_progress_timestamp_seconds", {}, None, id="no progress yet"),
        pytest.param(DOWNLOADING, "stalled", {"phase": "ISODownload"}, 1, id="an hour without progress"),
        pytest.param(FAILED, "stalled", {"phase": "Initialize"}, None, id="an ended plan is not stalled"),
        pytest.param(DEGRADED, "condition", {"type": "Degraded", "status": "True"}, 1, id="a condition's status"),
        pytest.param(DEGRADED, "condition", {"type": "Degraded", "status": "False"}, 0, id="another status"),
        pytest.param(DEGRADED, "condition", {"type": "Available", "status": "True"}, 0, id="an absent condition"),
    ],
)
def test_plan_has_gauges(
    reading: Reading, observed: Any, name: str, labels: dict[str, str], value: float | None
) -> None:
    reading.plans(observed)
    assert reading.value(name, plan="up", **labels) == value


def test_label_phase_has_the_same_values_everywhere(reading: Reading) -> None:
    values = [*PHASE_VALUES, "Succeeded"]
    run = plan(*((value, 10 * index) for index, value in enumerate(values)))
    reading.upgrades.recorded(run, values)
    reading.plans(run)
    by_name: dict[str, set[str]] = {}
    for family in reading.metrics.registry.collect():
        for sample in family.samples:
            if "phase" in sample.labels:
                by_name.setdefault(family.name, set()).add(sample.labels["phase"])
    names = set(PHASES)
    assert by_name == {
        "harvester_upgrade_phase": names | {"Succeeded", "Failed"},
        "harvester_upgrade_phase_seconds": names,
        "harvester_upgrade_phase_duration_seconds": names,
    }


def test_only_the_leader_exports_plans(reading: Reading) -> None:
    reading.is_leader = False
    reading.plans(STARTING)
    assert b'plan="up"' not in generate_latest(reading.metrics.registry)


@pytest.mark.rule("metrics: the progress ratio never falls within an attempt; a new one begins with what is done")
def test_new_leader_does_not_reduce_the_progress(reading: Reading) -> None:
    def upgraded(*states: str) -> dict[str, Any]:
        nodes = {f"n{index}": {"state": state} for index, state in enumerate(states)}
        return plan(("NodeUpgrading", 0), nodeUpgradeStatuses=nodes)

    store = Store()
    collector = PlanCollector(
        store, progress=reading.upgrades.progress, now=lambda: reading.now, is_leader=lambda: reading.is_leader
    )
    reading.metrics.registry.register(collector)
    ratios: list[float | None] = []
    joined = upgraded("PostDrained", "ImagePreloaded", "ImagePreloaded")
    for is_leader, found in [(True, upgraded("PostDrained")), (False, joined), (True, joined)]:
        reading.is_leader = is_leader
        store.replace([found], "1")
        collector.refresh()
        ratios.append(reading.value("progress_ratio", plan="up"))
    assert ratios == [0.93, None, 0.93]


@pytest.mark.rule("metrics: the progress ratio never falls within an attempt; a new one begins with what is done")
def test_progress_of_a_new_attempt_is_what_is_done(reading: Reading) -> None:
    def share(state: str, **status: Any) -> float | None:
        store.replace([plan(("NodeUpgrading", 0), nodeUpgradeStatuses={"n1": {"state": state}}, **status)], "1")
        collector.refresh()
        return reading.value("progress_ratio", plan="up")

    store = Store()
    collector = PlanCollector(store, progress=ProgressTracker(), now=lambda: reading.now, is_leader=lambda: True)
    reading.metrics.registry.register(collector)
    failed = share("PostDrainFailed")
    assert share("PostDraining") == failed
    again = share("PostDraining", **RETRIED)
    assert again is not None
    assert failed is not None
    assert again < failed
    assert share("WaitingReboot", **RETRIED) == failed
    assert share("PostDraining", **RETRIED) == failed


@pytest.mark.rule("metrics: every condition of a plan is exported")
def test_each_condition_is_exported(reading: Reading) -> None:
    types = {"Reconciling", "Available", "Progressing", "Degraded", "Ready", "Stalled"}
    types |= {"Paused", "VMRecoveryOff", "ImagesNotRemoved"}
    assert types == {*conditions.CONDITION_TYPES}
    reading.plans(plan(conditions=[{"type": type_, "status": "True"} for type_ in types]))
    found = {type_: reading.value("condition", plan="up", type=type_, status="True") for type_ in types}
    assert found == dict.fromkeys(types, 1)


def test_nodes_of_a_large_plan_have_one_series_each(reading: Reading) -> None:
    states = {f"n{index}": {"state": "PreDraining"} for index in range(MAX_STATE_SETS)}
    reading.plans(plan(nodeUpgradeStatuses=states), plan(name="large", nodeUpgradeStatuses={**states, "one": {}}))
    assert reading.value("node_state", plan="up", node="n1", state="PreDrained") == 0
    assert reading.value("node_state", plan="large", node="n1", state="PreDraining") == 1
    assert reading.value("node_state", plan="large", node="n1", state="PreDrained") is None
    assert reading.value("node_state", plan="large", node="one", state="PreDrained") == 0


@pytest.mark.rule("metrics: labels have the values of lists, or are names of what exists")
def test_unknown_values_of_a_newer_version_make_no_labels(reading: Reading) -> None:
    blocker = {"kind": "Pod", "name": "p", "reason": "Polishing", "since": "2026-01-01T00:00:00Z"}
    reading.plans(
        plan(
            ("Polishing", 0),
            nodeUpgradeStatuses={"n1": {"state": "Polishing"}},
            conditions=[{"type": "Polishing", "status": "Polishing"}, {"type": "Degraded", "status": "Polishing"}],
            blockers=[blocker],
        )
    )
    reading.upgrades.recorded(plan(("Polishing", 0), ("Failed", 1)), ["Polishing", "Failed"])
    assert b"Polishing" not in generate_latest(reading.metrics.registry)


def test_build_is_exported(reading: Reading) -> None:
    assert reading.value("build_info", version=__version__, python=platform.python_version()) == 1


def test_refresh_on_the_event_loop_does_not_read_nodes() -> None:
    reads: list[str] = []

    class Status(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            reads.append(key)
            return super().get(key, default)

    store = Store()
    store.replace([{"metadata": {"name": "up", "uid": "u"}, "status": Status(currentPhase="Initializing")}], "1")
    collector = PlanCollector(store, progress=ProgressTracker(), now=lambda: EPOCH, is_leader=lambda: True)
    collector.refresh()
    assert reads == []
    assert len(list(collector.collect())) > 0
    assert "nodeUpgradeStatuses" in reads


def test_empty_plan_is_collected(reading: Reading) -> None:
    reading.plans({"metadata": {"name": "bare", "uid": "b"}})
    assert b'plan="bare"' in generate_latest(reading.metrics.registry)


def test_deleted_plan_has_no_series(reading: Reading) -> None:
    store = Store()
    store.replace([STARTING], "1")
    collector = PlanCollector(store, progress=ProgressTracker(), now=lambda: EPOCH, is_leader=lambda: True)
    collector.refresh()
    reading.metrics.registry.register(collector)
    store.replace([], "2")
    collector.refresh()
    assert b'plan="up"' not in generate_latest(reading.metrics.registry)


def test_blockers_have_a_series_for_each_reason(reading: Reading) -> None:
    entry = {"kind": "Pod", "name": "p", "reason": "PodPending", "since": "2026-01-01T00:00:00Z"}
    stalled = {"type": "Stalled", "status": "True"}
    blocked = plan(("Initializing", 0), name="stuck", blockers=[entry, entry], conditions=[stalled])
    reading.plans(plan(("Initializing", 3500), name="fine"), blocked)
    assert reading.value("blocked", plan="stuck", reason="PodPending") == 1
    assert reading.value("blocked", plan="stuck", reason="JobSlow") == 0
    assert reading.value("blocked", plan="fine", reason="PodPending") == 0
    assert [reading.value("stalled", plan=name, phase="Initialize") for name in ("stuck", "fine")] == [1, 0]
