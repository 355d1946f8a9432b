"""Metrics of the runtime, with the names, labels and buckets of controller-runtime and client-go."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

#: Values of the label `result` of reconciles.
RESULTS = ("success", "error", "requeue", "requeue_after")
#: client-go's buckets: 10 ns to 1000 s in powers of ten.
QUEUE_BUCKETS = tuple(10.0**power for power in range(-8, 4))
#: controller-runtime's buckets for the duration of a reconcile.
RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
#: Buckets for the lag of the event loop, which should stay below 50 ms.
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 60.0)

M = TypeVar("M", bound="QueueMetrics | ControllerMetrics | LeaderElectionMetrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMetrics:
    """Metrics of a work queue."""

    depth: Gauge
    adds: Counter
    retries: Counter
    queue_duration: Histogram
    work_duration: Histogram
    unfinished_work: Gauge
    longest_running_processor: Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerMetrics:
    """Metrics of a controller, except `reconcile_total`, which has the label `result` too."""

    errors: Counter
    terminal_errors: Counter
    panics: Counter
    timeouts: Counter
    time: Histogram
    max_concurrent_reconciles: Gauge
    active_workers: Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionMetrics:
    """Metrics of a leader elector."""

    master_status: Gauge
    slowpath: Counter


class Metrics:
    """The runtime's metrics on one registry. Each series starts at 0 when its owner is created.

    Other packages declare their metrics on `registry`, and set computed gauges in a function given to `on_scrape`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        # Each counter and histogram would have one more series, which no dashboard reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # without annotations in the library
        self.registry = registry
        self.loop_lag = Histogram(
            "event_loop_lag_seconds", "Delay of the event loop's timers.", buckets=LAG_BUCKETS, registry=registry
        )
        self._queue = _queue_metrics(registry)
        self._controller = _controller_metrics(registry)
        self._leader = _leader_election_metrics(registry)
        self._reconciles = Counter(
            "controller_runtime_reconcile", "Reconciles by result.", ("controller", "result"), registry=registry
        )
        self._callbacks: list[Callable[[], None]] = []

    def queue(self, name: str) -> QueueMetrics:
        """Return the metrics of the work queue of this controller."""
        return _labelled(self._queue, name, name)

    def controller(self, name: str) -> ControllerMetrics:
        """Return the metrics of this controller."""
        return _labelled(self._controller, name)

    def reconciles(self, name: str) -> dict[str, Counter]:
        """Return the counters of this controller's reconciles by result."""
        return {result: self._reconciles.labels(name, result) for result in RESULTS}

    def leader_election(self, name: str) -> LeaderElectionMetrics:
        """Return the metrics of the elector of this lease."""
        return _labelled(self._leader, name)

    def on_scrape(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop before every scrape; it must be quick."""
        self._callbacks.append(callback)

    def refresh(self) -> None:
        """Update computed gauges before a scrape."""
        for callback in self._callbacks:
            callback()


def _labelled(families: M, *values: str) -> M:
    """Return the series of these families with these label values."""
    series: dict[str, Any] = {field.name: getattr(families, field.name).labels(*values) for field in fields(families)}
    return replace(families, **series)


def _queue_metrics(registry: CollectorRegistry) -> QueueMetrics:
    def gauge(name: str, text: str) -> Gauge:
        return Gauge(f"workqueue_{name}", text, ("name", "controller"), registry=registry)

    def counter(name: str, text: str) -> Counter:
        return Counter(f"workqueue_{name}", text, ("name", "controller"), registry=registry)

    def histogram(name: str, text: str) -> Histogram:
        return Histogram(f"workqueue_{name}", text, ("name", "controller"), buckets=QUEUE_BUCKETS, registry=registry)

    return QueueMetrics(
        depth=gauge("depth", "Ready keys."),
        adds=counter("adds", "Keys added."),
        retries=counter("retries", "Keys added with a delay."),
        queue_duration=histogram("queue_duration_seconds", "Time a key was ready before its run."),
        work_duration=histogram("work_duration_seconds", "Duration of a run."),
        unfinished_work=gauge("unfinished_work_seconds", "Sum of the durations of current runs; growing means stuck."),
        longest_running_processor=gauge("longest_running_processor_seconds", "Duration of the longest current run."),
    )


def _controller_metrics(registry: CollectorRegistry) -> ControllerMetrics:
    def counter(name: str, text: str) -> Counter:
        return Counter(f"controller_runtime_{name}", text, ("controller",), registry=registry)

    def gauge(name: str, text: str) -> Gauge:
        return Gauge(f"controller_runtime_{name}", text, ("controller",), registry=registry)

    return ControllerMetrics(
        errors=counter("reconcile_errors", "Reconciles that failed."),
        terminal_errors=counter("terminal_reconcile_errors", "Reconciles that failed and are not retried."),
        panics=counter("reconcile_panics", "Reconciles that failed because of a bug."),
        timeouts=counter("reconcile_timeouts", "Reconciles that timed out."),
        time=Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of a reconcile.",
            ("controller",),
            buckets=RECONCILE_BUCKETS,
            registry=registry,
        ),
        max_concurrent_reconciles=gauge("max_concurrent_reconciles", "Workers of the controller."),
        active_workers=gauge("active_workers", "Workers that are busy."),
    )


def _leader_election_metrics(registry: CollectorRegistry) -> LeaderElectionMetrics:
    return LeaderElectionMetrics(
        master_status=Gauge(
            "leader_election_master_status", "1 while this process holds the lease.", ("name",), registry=registry
        ),
        slowpath=Counter(
            "leader_election_slowpath", "Renewals that had to read the lease first.", ("name",), registry=registry
        ),
    )
