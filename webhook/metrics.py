"""Metrics of the webhook: reviews by operation and decision, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from webhook.check import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.runtime.metrics import Metrics
    from webhook.review import Verdict

#: Values of the label `operation`; UNKNOWN is any other operation, and a request that is not a review.
OPERATIONS = ("CREATE", "UPDATE", "DELETE")
UNKNOWN = "unknown"
#: Seconds, up to the time-out of the API server.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 8.0, 10.0)


class WebhookMetrics:
    """The metrics on one registry, at 0 for each operation and each of these checks."""

    def __init__(self, metrics: Metrics, *, checks: Iterable[str]) -> None:
        registry = metrics.registry
        prefix, labels = "harvester_upgrade_admission", ("operation", "allowed")
        self._requests = Counter(f"{prefix}_requests", "Reviews of plans.", labels, registry=registry)
        self._seconds = Histogram(
            f"{prefix}_duration_seconds", "Duration of a review.", labels, buckets=BUCKETS, registry=registry
        )
        self._ready = Gauge(f"{prefix}_ready", "1 while the webhook is served with a certificate.", registry=registry)
        self._expires = Gauge(
            f"{prefix}_certificate_expiration_timestamp_seconds",
            "When the served certificate expires; 0 before it is served.",
            registry=registry,
        )
        self.in_flight = Gauge(f"{prefix}_requests_in_flight", "Reviews in progress.", registry=registry)
        self._checks = Counter(f"{prefix}_checks", "Checks of plans.", ("check", "outcome"), registry=registry)
        self._findings = Counter(f"{prefix}_check_findings", "Findings of checks.", ("check",), registry=registry)
        self._check_seconds = Histogram(
            f"{prefix}_check_duration_seconds", "Duration of a check.", ("check",), buckets=BUCKETS, registry=registry
        )
        for operation in (*OPERATIONS, UNKNOWN):
            for allowed in ("true", "false"):
                self._requests.labels(operation, allowed)
                self._seconds.labels(operation, allowed)
        for check in checks:
            self._findings.labels(check)
            self._check_seconds.labels(check)
            for outcome in Outcome:
                self._checks.labels(check, outcome)

    def served(self, *, is_ready: bool, expires_at: float) -> None:
        """Record the webhook's readiness, and the expiry of its certificate in Unix time."""
        self._ready.set(is_ready)
        self._expires.set(expires_at)

    def record(self, operation: str, verdict: Verdict, *, seconds: float) -> None:
        """Record a review."""
        labels = (operation if operation in OPERATIONS else UNKNOWN, str(verdict.is_allowed).lower())
        self._requests.labels(*labels).inc()
        self._seconds.labels(*labels).observe(seconds)
        for result in verdict.checks:
            self._checks.labels(result.name, result.outcome).inc()
            self._findings.labels(result.name).inc(len(result.findings))
            self._check_seconds.labels(result.name).observe(result.seconds)

    def record_bad(self, *, seconds: float) -> None:
        """Record a request that is not a review."""
        self._requests.labels(UNKNOWN, "false").inc()
        self._seconds.labels(UNKNOWN, "false").observe(seconds)
