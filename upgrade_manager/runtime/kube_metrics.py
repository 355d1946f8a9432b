"""Metrics of requests to the API server and of informers.

cli/run.py gives them to the transport, pipeline/controller.py to the informers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from upgrade_manager.runtime.metrics import Metrics

#: client-go's, for requests to the API server.
REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class RequestMetrics:
    """Counts requests as client-go does."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        self._requests = Counter(
            "rest_client_requests", "Requests to the API server.", ("code", "method", "host"), registry=registry
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time until the response to a request began.",
            ("verb", "host"),
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )

    def on_response(self, method: str, host: str, code: str, seconds: float) -> None:
        """Count a response or a failure."""
        self._requests.labels(code, method, host).inc()
        self._seconds.labels(method, host).observe(seconds)


class InformerMetrics:
    """Measures lists, watches, events and caches, all by resource: selectors have names of plans and nodes."""

    def __init__(self, metrics: Metrics) -> None:
        registry, labels, by_resource = metrics.registry, ("resource", "reason"), ("resource",)
        self._objects = Gauge("informer_objects", "Objects in the caches.", by_resource, registry=registry)
        self._relists = Counter("informer_relists", "Lists that replaced a cache.", labels, registry=registry)
        self._restarts = Counter("informer_watch_restarts", "Watches that ended.", labels, registry=registry)
        self._events = Counter(
            "informer_events", "Events received, bookmarks included.", by_resource, registry=registry
        )
        self._age = Gauge(
            "informer_last_event_age_seconds",
            "Longest time of a cache since its last list, event or bookmark (one a minute).",
            by_resource,
            registry=registry,
        )
        #: By resource and informer: the objects in the cache, and the loop time of the last list or event.
        self._caches: dict[tuple[str, str], tuple[int, float]] = {}
        metrics.on_scrape(self._refresh)

    def on_restart(self, resource: str, operation: str, reason: str) -> None:
        """Count a list that replaced the cache, or a watch that ended."""
        self._restarts.labels(resource, "closed").inc(0)
        (self._relists if operation == "list" else self._restarts).labels(resource, reason).inc()

    def on_progress(self, resource: str, informer: str, events: int, objects: int) -> None:
        """Count events, and remember the size of the cache."""
        self._events.labels(resource).inc(events)
        self._caches[resource, informer] = objects, loop_time()

    def on_stop(self, resource: str, informer: str) -> None:
        """Forget the informer's cache."""
        self._caches.pop((resource, informer), None)

    def _refresh(self) -> None:
        self._objects.clear()
        self._age.clear()
        oldest: dict[str, float] = {}
        for (resource, _), (objects, at) in self._caches.items():
            self._objects.labels(resource).inc(objects)
            oldest[resource] = min(at, oldest.get(resource, at))
        now = loop_time()
        for resource, at in oldest.items():
            self._age.labels(resource).set(now - at)
