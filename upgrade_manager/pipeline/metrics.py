"""Metrics of upgrades: phase durations, recorded as phases end, and gauges computed from the plans at each scrape.

context.py records phases when it writes a status; controller.py registers the collector.

The label `phase` is the name of a phase, or `Succeeded` or `Failed`.
"""

from __future__ import annotations

import collections
import platform
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from upgrade_manager import __version__
from upgrade_manager.api.attempts import attempt_began, attempt_of, seconds_of_work
from upgrade_manager.api.blockers import BlockerReason, read_blockers
from upgrade_manager.api.conditions import CONDITION_TYPES, FALSE, TRUE, UNKNOWN
from upgrade_manager.api.node_states import NodeState, state_of
from upgrade_manager.api.phases import FAILED, PHASES, SUCCEEDED, TERMINAL, phase_of
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube import objects
from upgrade_manager.pipeline.movement import PlanProgress, ProgressTracker, is_stalled

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping
    from datetime import datetime

    from upgrade_manager.api.phases import PhaseName
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.movement import Movement
    from upgrade_manager.runtime.metrics import Metrics

#: Seconds, from a phase of a few requests to a phase that reboots the nodes of a large cluster.
DURATION_BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0)
#: The most nodes of a plan for which all states are exported. With more nodes, each node only has the series of its
#: current state: with all 17 states, a scrape of 1,000 nodes would be 1.6 MB, nearly all of it zeros.
MAX_STATE_SETS = 250
_STATUSES = (TRUE, FALSE, UNKNOWN)


class UpgradeMetrics:
    """The build, the metrics that are recorded as phases end, and the progress that `PlanCollector` exports."""

    def __init__(self, metrics: Metrics) -> None:
        self.progress = ProgressTracker()
        self._durations = Histogram(
            "harvester_upgrade_phase_duration_seconds",
            "Duration of a phase.",
            ("phase", "outcome"),
            buckets=DURATION_BUCKETS,
            registry=metrics.registry,
        )
        self._ended = Counter(
            "harvester_upgrade_plans", "Attempts of plans that ended.", ("outcome",), registry=metrics.registry
        )
        #: By uid: the attempt, and the phase values that were recorded in this process or before it.
        self._recorded: dict[str, tuple[int, set[str]]] = {}
        build = Gauge(
            "harvester_upgrade_build_info", "The manager's build.", ("version", "python"), registry=metrics.registry
        )
        build.labels(__version__, platform.python_version()).set(1)
        for phase in PHASES:
            for outcome in ("completed", "failed"):
                self._durations.labels(phase, outcome)
        for outcome in (SUCCEEDED, FAILED):
            self._ended.labels(outcome.lower())

    def replay(self, plan: Object) -> None:
        """Record phase values that this process wrote without a response; earlier processes recorded their values."""
        values = _times(plan).keys()
        known = self._known(plan, values)
        self.recorded(plan, [value for value in values if value not in known])

    def keep(self, uids: Container[str]) -> None:
        """Forget all other plans."""
        self._recorded = {uid: known for uid, known in self._recorded.items() if uid in uids}

    def _known(self, plan: Object, values: Iterable[str]) -> set[str]:
        """Return the values that were recorded; all of these for an unknown plan. Each attempt may fail once."""
        uid, attempt = objects.uid(plan), attempt_of(objects.status(plan))
        number, known = self._recorded.get(uid, (attempt, {*values}))
        self._recorded[uid] = attempt, known if number == attempt else known - {FAILED}
        return self._recorded[uid][1]

    def recorded(self, plan: Object, values: Iterable[str]) -> None:
        """Record phase values that were just written to the plan."""
        times = _times(plan)
        known = self._known(plan, times)
        began = parse_time(attempt_began(objects.status(plan)))
        for value in values:
            known.add(value)
            if value in TERMINAL:
                self._ended.labels(value.lower()).inc()
            phase = _unfinished(times) if value == FAILED else phase_of(value)
            if phase is None or value == phase.active or not {phase.active, value} <= times.keys():
                continue
            outcome = "failed" if value == FAILED else "completed"
            # Each attempt has its own observation.
            begun = max(filter(None, (times[phase.active], began)))
            self._durations.labels(phase, outcome).observe(seconds_between(begun, times[value]))


class PlanCollector(Collector):
    """Gauges of all plans, on the leader only; a deleted plan has no series, an ended plan has no series by node.

    `refresh` takes the plans on the event loop; `collect` computes the gauges and may run in any thread.
    """

    def __init__(
        self,
        plans: Store,
        *,
        progress: ProgressTracker,
        now: Callable[[], datetime],
        is_leader: Callable[[], bool],
    ) -> None:
        self._plans = plans
        self._progress = progress
        self._now = now
        self._is_leader = is_leader
        #: The plans with their movements, the time of the last refresh, and whether to export them.
        self._taken: tuple[list[tuple[Object, Movement]], datetime, bool] = ([], now(), False)
        #: The highest ratio of any scrape by uid and attempt, also while another replica led, so that a new leader
        #: lowers no ratio. A new attempt begins with what is done, without the step that failed.
        self._ratios: dict[tuple[str, int], float] = {}

    def refresh(self) -> None:
        """Take the plans, whose objects never change."""
        plans = self._plans.list()
        self._progress.keep({*map(objects.uid, plans)})
        self._taken = ([(plan, self._progress.of(plan)) for plan in plans], self._now(), self._is_leader())

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that the registration computes nothing."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges of the plans last taken."""
        taken, now, is_exported = self._taken
        progress = [(plan, self._progress_of(plan, movement)) for plan, movement in taken]
        self._ratios = {_attempt_key(plan): found.ratio for plan, found in progress}
        if not is_exported:
            progress = []
        plans = [plan for plan, _ in progress]
        running = [plan for plan in plans if _current(plan) not in TERMINAL]
        yield _info(plans)
        yield _attempt(plans)
        yield _phase(plans)
        yield _seconds(plans, now)
        yield _node_counts(plans)
        yield _node_states(running)
        yield _conditions(plans)
        yield _blocked(plans)
        yield _stalled(progress, now)
        yield _progress_ratio(progress)
        yield _last_progress(progress)

    def _progress_of(self, plan: Object, movement: Movement) -> PlanProgress:
        return PlanProgress.of(plan, movement, least=self._ratios.get(_attempt_key(plan), 0.0))


def _attempt_key(plan: Object) -> tuple[str, int]:
    return objects.uid(plan), attempt_of(objects.status(plan))


def _current(plan: Object) -> str:
    return objects.status(plan).get("currentPhase") or ""


def _info(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_info",
        "Target, previous version, image and state of a plan.",
        labels=("plan", "version", "previous_version", "image", "status"),
    )
    for plan in plans:
        spec, status = objects.spec(plan), objects.status(plan)
        version = (status.get("releaseMetadata") or {}).get("harvester") or spec.get("version") or ""
        state = objects.text(status, "display", "state")
        labels = [objects.name(plan), version, status.get("previousVersion") or "", spec.get("image") or "", state]
        family.add_metric(labels, 1)
    return family


def _attempt(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily("harvester_upgrade_attempt", "Number of the plan's current attempt.", labels=("plan",))
    for plan in plans:
        family.add_metric([objects.name(plan)], attempt_of(objects.status(plan)))
    return family


def _phase(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily("harvester_upgrade_phase", "1 for the plan's current phase.", labels=("plan", "phase"))
    for plan in plans:
        value = _current(plan)
        current = phase_of(value) or value
        for phase in (*PHASES, SUCCEEDED, FAILED):
            family.add_metric([objects.name(plan), phase], float(phase == current))
    return family


def _seconds(plans: Iterable[Object], now: datetime) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_phase_seconds",
        "Seconds that the plan has spent in each phase so far, without those between attempts.",
        labels=("plan", "phase"),
    )
    for plan in plans:
        entries = list(_times(plan).items())
        if entries and entries[-1][0] == _current(plan):
            entries.append(("", now))
        for (value, began), (_, ended) in pairwise(entries):
            phase = phase_of(value)
            if phase is not None and value == phase.active:
                seconds = seconds_of_work(objects.status(plan), began, ended)
                family.add_metric([objects.name(plan), phase], seconds)
    return family


def _node_counts(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily("harvester_upgrade_nodes", "Nodes in each state.", labels=("plan", "state"))
    for plan in plans:
        counts = collections.Counter(entry.get("state") for entry in _nodes(plan).values())
        for state in NodeState:
            family.add_metric([objects.name(plan), state], counts[state])
    return family


def _node_states(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_node_state", "1 for the node's current state.", labels=("plan", "node", "state")
    )
    for plan in plans:
        nodes = _nodes(plan)
        is_large = len(nodes) > MAX_STATE_SETS
        for node, entry in nodes.items():
            current = state_of(entry.get("state"))
            for state in [current] if is_large and current else NodeState:
                family.add_metric([objects.name(plan), node, state], float(state is current))
    return family


def _nodes(plan: Object) -> dict[str, Any]:
    return objects.status(plan).get("nodeUpgradeStatuses") or {}


def _conditions(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_condition", "1 for the condition's current status.", labels=("plan", "type", "status")
    )
    for plan in plans:
        for type_ in CONDITION_TYPES:
            current = objects.condition(plan, type_).get("status")
            for status in _STATUSES:
                family.add_metric([objects.name(plan), type_, status], float(status == current))
    return family


def _blocked(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_blocked", "1 while something holds the plan up for this reason.", labels=("plan", "reason")
    )
    for plan in plans:
        reasons = {blocker.reason for blocker in read_blockers(objects.status(plan).get("blockers"))}
        for reason in BlockerReason:
            family.add_metric([objects.name(plan), reason], float(reason in reasons))
    return family


def _stalled(taken: Iterable[tuple[Object, PlanProgress]], now: datetime) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_stalled",
        "1 while the plan is longer in the phase than its expected time without progress.",
        labels=("plan", "phase"),
    )
    for plan, progress in taken:
        phase = phase_of(_current(plan))
        if phase is not None:
            family.add_metric([objects.name(plan), phase], float(is_stalled(plan, progress, now)))
    return family


def _progress_ratio(taken: Iterable[tuple[Object, PlanProgress]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_progress_ratio",
        "Share of the upgrade that is done, over phases and nodes; 1 when the plan has succeeded.",
        labels=("plan",),
    )
    for plan, progress in taken:
        family.add_metric([objects.name(plan)], progress.ratio)
    return family


def _last_progress(taken: Iterable[tuple[Object, PlanProgress]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_last_progress_timestamp_seconds",
        "Time at which a phase, a node or a Job of the plan last moved.",
        labels=("plan",),
    )
    for plan, progress in taken:
        if progress.moved is not None:
            family.add_metric([objects.name(plan)], progress.moved.timestamp())
    return family


def _unfinished(times: Mapping[str, datetime]) -> PhaseName | None:
    """Return the phase in which a plan failed; None if it failed between two phases."""
    return next((phase for phase in PHASES if phase.active in times and phase.completed not in times), None)


def _times(plan: Object) -> dict[str, datetime]:
    """Return the time of each phase value, in order."""
    entries = objects.status(plan).get("phaseTransitionTimestamps") or []
    read = ((entry.get("phase") or "", parse_time(entry.get("phaseTransitionTimestamp"))) for entry in entries)
    return {phase: time for phase, time in read if time is not None}
