"""What requests and informers tell the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.observer import InformerObserver, RequestObserver

if TYPE_CHECKING:
    from upgrade_manager.runtime.metrics import Metrics

#: client-go's, for requests to the API server.
REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class RequestMetrics(RequestObserver):
    """Requests on the wire, as client-go counts them; give it to the transport."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self._requests = Counter(
            "rest_client_requests", "Requests to the API server.", ("code", "method", "host"), registry=registry
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time until a request's answer began.",
            ("verb", "host"),
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )

    def answered(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """Count an answer or its failure."""
        self._requests.labels(code, method, host).inc()
        self._seconds.labels(method, host).observe(seconds)


class InformerMetrics(InformerObserver):
    """Caches and their watches, by resource; give it to every informer. client-go exports nothing of the kind."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self._objects = Gauge("informer_objects", "Objects in the cache.", ("resource",), registry=registry)
        self._relists = Counter(
            "informer_relists", "Lists that filled the cache anew, and why.", ("resource", "reason"), registry=registry
        )
        self._restarts = Counter(
            "informer_watch_restarts", "Watches that ended, and how.", ("resource", "reason"), registry=registry
        )
        self._events = Counter(
            "informer_events", "Events received, bookmarks included.", ("resource",), registry=registry
        )
        self._age = Gauge(
            "informer_last_event_age_seconds",
            "Time since the last list, event or bookmark; bookmarks come each minute, so more means a dead watch.",
            ("resource",),
            registry=registry,
        )
        #: Loop time of the last sign of life, by resource.
        self._alive: dict[str, float] = {}
        metrics.on_scrape(self._refresh)

    def relisted(self, resource: str, *, reason: str) -> None:
        """Count a list."""
        self._relists.labels(resource, reason).inc()
        self._restarts.labels(resource, "closed").inc(0)
        self._events.labels(resource).inc(0)
        self._alive[resource] = loop_time()

    def watch_restarted(self, resource: str, *, reason: str) -> None:
        """Count an ended watch."""
        self._restarts.labels(resource, reason).inc()

    def events_received(self, resource: str, *, count: int) -> None:
        """Count events."""
        self._events.labels(resource).inc(count)
        self._alive[resource] = loop_time()

    def objects_stored(self, resource: str, *, count: int) -> None:
        """Set the cache's size."""
        self._objects.labels(resource).set(count)

    def _refresh(self) -> None:
        now = loop_time()
        for resource, at in self._alive.items():
            self._age.labels(resource).set(now - at)
