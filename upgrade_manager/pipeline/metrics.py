"""Metrics of upgrades: phase durations, recorded as phases end, and gauges computed from the plans at each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import FAILED, PHASE_VALUES, PHASES, SUCCEEDED, TERMINAL, phase_of
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from upgrade_manager.api.phases import PhaseName
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.runtime.metrics import Metrics

#: Seconds: from a phase of a few requests to one that reboots the nodes of a large cluster.
DURATION_BUCKETS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0)
_CONDITIONS = ("Available", "Progressing", "Degraded")
_STATUSES = ("True", "False", "Unknown")


class UpgradeMetrics:
    """Metrics that are recorded as phases end."""

    def __init__(self, metrics: Metrics) -> None:
        self._durations = Histogram(
            "harvester_upgrade_phase_duration_seconds",
            "Duration of a phase.",
            ("phase", "outcome"),
            buckets=DURATION_BUCKETS,
            registry=metrics.registry,
        )
        self._ended = Counter("harvester_upgrade_plans", "Plans that ended.", ("outcome",), registry=metrics.registry)
        for phase in PHASES:
            self._durations.labels(phase, "completed")
        for outcome in (SUCCEEDED, FAILED):
            self._ended.labels(outcome.lower())

    def recorded(self, plan: Object, values: Iterable[str]) -> None:
        """Record phase values that were just written to the plan."""
        times = _times(plan)
        for value in values:
            if value in TERMINAL:
                self._ended.labels(value.lower()).inc()
            phase = _unfinished(times) if value == FAILED else phase_of(value)
            if phase is None or value == phase.active or not {phase.active, value} <= times.keys():
                continue
            outcome = "failed" if value == FAILED else "completed"
            self._durations.labels(phase, outcome).observe(seconds_between(times[phase.active], times[value]))


class PlanCollector(Collector):
    """Gauges of all plans; a deleted plan has no series.

    `refresh` reads the plans on the event loop, `collect` may run in any thread.
    """

    def __init__(self, plans: Store, *, now: Callable[[], datetime]) -> None:
        self._plans = plans
        self._now = now
        self._families: list[GaugeMetricFamily] = []

    def refresh(self) -> None:
        """Compute the gauges."""
        plans = self._plans.list()
        now = self._now()
        self._families = [_info(plans), _phase(plans), _seconds(plans, now), _nodes(plans), _conditions(plans)]

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: there are no gauges before the first refresh."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges last computed."""
        yield from self._families


def _info(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_info",
        "Target, previous version and image of a plan.",
        labels=("plan", "version", "previous_version", "image"),
    )
    for plan in plans:
        spec, status = objects.spec(plan), objects.status(plan)
        version = (status.get("releaseMetadata") or {}).get("harvester") or spec.get("version") or ""
        labels = [objects.name(plan), version, status.get("previousVersion") or "", spec.get("image") or ""]
        family.add_metric(labels, 1)
    return family


def _phase(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_phase", "1 for the plan's current phase value.", labels=("plan", "phase")
    )
    for plan in plans:
        current = objects.status(plan).get("currentPhase") or ""
        for value in (*PHASE_VALUES, SUCCEEDED, FAILED):
            family.add_metric([objects.name(plan), value], float(value == current))
    return family


def _seconds(plans: Iterable[Object], now: datetime) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_phase_seconds",
        "Seconds that the plan has spent in each phase so far.",
        labels=("plan", "phase"),
    )
    for plan in plans:
        times = _times(plan)
        ended = next((times[value] for value in (SUCCEEDED, FAILED) if value in times), now)
        for phase in PHASES:
            if phase.active in times:
                spent = seconds_between(times[phase.active], times.get(phase.completed, ended))
                family.add_metric([objects.name(plan), phase.value], spent)
    return family


def _nodes(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_node_state", "1 for the node's current state.", labels=("plan", "node", "state")
    )
    for plan in plans:
        nodes: dict[str, Any] = objects.status(plan).get("nodeUpgradeStatuses") or {}
        for node, entry in nodes.items():
            for state in NodeState:
                family.add_metric([objects.name(plan), node, state.value], float(entry.get("state") == state))
    return family


def _conditions(plans: Iterable[Object]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(
        "harvester_upgrade_condition", "1 for the condition's current status.", labels=("plan", "type", "status")
    )
    for plan in plans:
        for type_ in _CONDITIONS:
            current = (objects.condition(plan, type_) or {}).get("status")
            for status in _STATUSES:
                family.add_metric([objects.name(plan), type_, status], float(status == current))
    return family


def _unfinished(times: Mapping[str, datetime]) -> PhaseName | None:
    """Return the phase in which a plan failed; None if it failed between two phases."""
    return next((phase for phase in PHASES if phase.active in times and phase.completed not in times), None)


def _times(plan: Object) -> dict[str, datetime]:
    """Return the time of each phase value, in order."""
    entries = objects.status(plan).get("phaseTransitionTimestamps") or []
    read = ((entry.get("phase") or "", parse_time(entry.get("phaseTransitionTimestamp"))) for entry in entries)
    return {phase: time for phase, time in read if time is not None}
