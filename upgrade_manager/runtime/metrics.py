"""Every metric of the runtime, under the names and labels that controller-runtime and client-go use for them.

One `Metrics` object is made at start and holds the registry that was passed in, so two managers in one process share
nothing. A series exists, at 0, from the moment its owner is known. Layers above declare their own metrics on
`Metrics.registry` and bring those that are computed from state up to date in a function given to `on_scrape`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram, ProcessCollector

from upgrade_manager.runtime.controller import Label
from upgrade_manager.runtime.lanes import Priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from upgrade_manager.runtime.workqueue import Statistics

#: client-go's: 10 ns to 1000 s in powers of ten.
QUEUE_BUCKETS = tuple(10.0**power for power in range(-8, 4))
#: controller-runtime's, for the time of a reconcile.
RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
#: For the time by which the event loop's timers are late: the target is below 50 ms.
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 60.0)


class Metrics:
    """The runtime's metrics on one registry; its methods give each part the view that it reports to."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._queue = _QueueFamilies.on(registry)
        self._controller = _ControllerFamilies.on(registry)
        self._leader = _LeaderFamilies.on(registry)
        self._refreshers: list[Callable[[], None]] = []
        self.loop_lag = Histogram(
            "event_loop_lag_seconds",
            "By how much the event loop's timers are late.",
            buckets=LAG_BUCKETS,
            registry=registry,
        )

    def watch_process(self) -> None:
        """Add the `process_*` metrics: memory, processor time, open files; once in a process."""
        ProcessCollector(registry=self.registry)

    def on_scrape(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` on the event loop before every scrape; it sets gauges and must be quick."""
        self._refreshers.append(refresh)

    def refresh(self) -> None:
        """Bring computed gauges up to date; the metrics server calls it on the loop, then renders in a thread."""
        for refresh in self._refreshers:
            refresh()

    def queue(self, name: str, *, controller: str = "") -> PrometheusQueueMetrics:
        """What a `WorkQueue` of that name reports to; the controller has the same name unless given."""
        return PrometheusQueueMetrics(self._queue, name, controller or name, on_scrape=self.on_scrape)

    def controller(self, name: str) -> PrometheusControllerMetrics:
        """What a `Controller` of that name reports to."""
        return PrometheusControllerMetrics(self._controller, name)

    def leader(self, name: str) -> PrometheusLeaderMetrics:
        """What the elector of that lease reports to."""
        return PrometheusLeaderMetrics(self._leader, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueueFamilies:
    depth: Gauge
    adds: Counter
    retries: Counter
    waited: Histogram
    worked: Histogram
    unfinished: Gauge
    longest: Gauge

    @classmethod
    def on(cls, registry: CollectorRegistry) -> _QueueFamilies:
        labels = ("name", "controller")
        return cls(
            depth=Gauge(
                "workqueue_depth", "Keys that are ready, by priority.", (*labels, "priority"), registry=registry
            ),
            adds=Counter("workqueue_adds", "Keys that came to need work.", labels, registry=registry),
            retries=Counter("workqueue_retries", "Keys that were put off by a delay.", labels, registry=registry),
            waited=Histogram(
                "workqueue_queue_duration_seconds",
                "How long a key was ready before a worker took it.",
                labels,
                buckets=QUEUE_BUCKETS,
                registry=registry,
            ),
            worked=Histogram(
                "workqueue_work_duration_seconds",
                "How long a worker had a key.",
                labels,
                buckets=QUEUE_BUCKETS,
                registry=registry,
            ),
            unfinished=Gauge(
                "workqueue_unfinished_work_seconds",
                "Time spent so far on keys that are being worked on, summed; growing steadily means a stuck worker.",
                labels,
                registry=registry,
            ),
            longest=Gauge(
                "workqueue_longest_running_processor_seconds",
                "How long the longest run has been going on.",
                labels,
                registry=registry,
            ),
        )


class PrometheusQueueMetrics:
    """A queue's metrics; see `workqueue.QueueMetrics`."""

    def __init__(
        self,
        families: _QueueFamilies,
        name: str,
        controller: str,
        *,
        on_scrape: Callable[[Callable[[], None]], None],
    ) -> None:
        self._depths = {p: families.depth.labels(name, controller, str(int(p))) for p in Priority}
        self._adds = families.adds.labels(name, controller)
        self._retries = families.retries.labels(name, controller)
        self._waited = families.waited.labels(name, controller)
        self._worked = families.worked.labels(name, controller)
        self._unfinished = families.unfinished.labels(name, controller)
        self._longest = families.longest.labels(name, controller)
        self._on_scrape = on_scrape

    def watch(self, statistics: Callable[[], Statistics]) -> None:
        """Ask for the running work at every scrape."""

        def refresh() -> None:
            now = statistics()
            self._unfinished.set(now.unfinished)
            self._longest.set(now.longest_run)

        self._on_scrape(refresh)

    def depth(self, priority: Priority, keys: int) -> None:
        """Set the depth of a class."""
        self._depths[priority].set(keys)

    def added(self) -> None:
        """Count an add."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a retry."""
        self._retries.inc()

    def waited(self, seconds: float) -> None:
        """Observe a wait."""
        self._waited.observe(seconds)

    def worked(self, seconds: float) -> None:
        """Observe a run."""
        self._worked.observe(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ControllerFamilies:
    total: Counter
    errors: Counter
    terminal: Counter
    panics: Counter
    timeouts: Counter
    time: Histogram
    limit: Gauge
    active: Gauge

    @classmethod
    def on(cls, registry: CollectorRegistry) -> _ControllerFamilies:
        prefix = "controller_runtime_"

        def counter(name: str, text: str, *more: str) -> Counter:
            return Counter(prefix + name, text, ("controller", *more), registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(prefix + name, text, ("controller",), registry=registry)

        return cls(
            total=counter("reconcile", "Reconciles, by how they ended.", "result"),
            errors=counter("reconcile_errors", "Reconciles that failed, for whatever reason."),
            terminal=counter("terminal_reconcile_errors", "Reconciles that failed and are not tried again."),
            panics=counter("reconcile_panics", "Reconciles that failed by a mistake in the program."),
            timeouts=counter("reconcile_timeouts", "Reconciles that were cancelled because they took too long."),
            time=Histogram(
                prefix + "reconcile_time_seconds",
                "How long a reconcile took.",
                ("controller",),
                buckets=RECONCILE_BUCKETS,
                registry=registry,
            ),
            limit=gauge("max_concurrent_reconciles", "Workers of the controller."),
            active=gauge("active_workers", "Workers that are busy."),
        )


class PrometheusControllerMetrics:
    """A controller's metrics; see `controller.ControllerMetrics`."""

    def __init__(self, families: _ControllerFamilies, name: str) -> None:
        self._total = {result: families.total.labels(name, result.value) for result in Label}
        self._errors = families.errors.labels(name)
        self._terminal = families.terminal.labels(name)
        self._panics = families.panics.labels(name)
        self._timeouts = families.timeouts.labels(name)
        self._time = families.time.labels(name)
        self._limit = families.limit.labels(name)
        self._active = families.active.labels(name)

    def workers(self, limit: int) -> None:
        """Set the number of workers."""
        self._limit.set(limit)

    def active(self, change: int) -> None:
        """Move the number of busy workers."""
        self._active.inc(change)

    def finished(self, result: Label, seconds: float) -> None:
        """Count and observe a run."""
        self._total[result].inc()
        self._time.observe(seconds)

    def failed(self, *, terminal: bool, bug: bool, timed_out: bool) -> None:
        """Count a failure under each of its natures."""
        self._errors.inc()
        for counter, applies in ((self._terminal, terminal), (self._panics, bug), (self._timeouts, timed_out)):
            counter.inc(applies)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeaderFamilies:
    master: Gauge
    slow: Counter

    @classmethod
    def on(cls, registry: CollectorRegistry) -> _LeaderFamilies:
        return cls(
            master=Gauge(
                "leader_election_master_status", "1 while this process holds the lease.", ("name",), registry=registry
            ),
            slow=Counter(
                "leader_election_slowpath", "Renewals that had to read the lease first.", ("name",), registry=registry
            ),
        )


class PrometheusLeaderMetrics:
    """An elector's metrics; see `leaderelection.LeaderMetrics`."""

    def __init__(self, families: _LeaderFamilies, name: str) -> None:
        self._master = families.master.labels(name)
        self._slow = families.slow.labels(name)

    def leading(self, *, is_leader: bool) -> None:
        """Set whether we lead."""
        self._master.set(is_leader)

    def slow_path(self) -> None:
        """Count a renewal that took the long way."""
        self._slow.inc()
