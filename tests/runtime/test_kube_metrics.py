from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry

from upgrade_manager.runtime.kube_metrics import InformerMetrics, RequestMetrics
from upgrade_manager.runtime.metrics import Metrics


async def test_requests_are_counted_and_timed() -> None:
    metrics = Metrics(CollectorRegistry())
    requests = RequestMetrics(metrics)
    for code in ("200", "200", "<error>"):
        requests.on_response("GET", "10.53.0.1:443", code, 0.3)

    def sample(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"rest_client_{name}", {"host": "10.53.0.1:443", **labels})

    assert sample("requests_total", code="200", method="GET") == 2
    assert sample("requests_total", code="<error>", method="GET") == 1
    assert sample("request_duration_seconds_bucket", verb="GET", le="0.25") == 0
    assert sample("request_duration_seconds_bucket", verb="GET", le="0.5") == 3


async def test_caches_and_their_watches_are_measured_by_resource() -> None:
    metrics = Metrics(CollectorRegistry())
    informers = InformerMetrics(metrics)

    def sample(name: str, **labels: str) -> float | None:
        metrics.refresh()
        return metrics.registry.get_sample_value(f"informer_{name}", {"resource": "nodes", **labels})

    assert sample("last_event_age_seconds") is None
    informers.on_progress("nodes", "one", 0, 3)
    informers.on_restart("nodes", "list", "start")
    assert sample("relists_total", reason="start") == 1
    assert sample("watch_restarts_total", reason="closed") == 0
    assert sample("events_total") == 0
    assert sample("objects") == 3
    await asyncio.sleep(40)
    assert sample("last_event_age_seconds") == 40
    informers.on_progress("nodes", "one", 2, 3)
    await asyncio.sleep(5)
    assert sample("last_event_age_seconds") == 5
    assert sample("events_total") == 2
    informers.on_restart("nodes", "watch", "expired")
    informers.on_progress("nodes", "one", 0, 3)
    informers.on_restart("nodes", "list", "expired")
    assert sample("watch_restarts_total", reason="expired") == sample("relists_total", reason="expired") == 1
    assert sample("last_event_age_seconds") == 0


async def test_informers_of_one_kind_share_their_series() -> None:
    metrics = Metrics(CollectorRegistry())
    informers = InformerMetrics(metrics)

    def samples() -> tuple[float | None, float | None]:
        metrics.refresh()
        names = ("informer_objects", "informer_last_event_age_seconds")
        objects, age = (metrics.registry.get_sample_value(name, {"resource": "jobs.batch"}) for name in names)
        return objects, age

    informers.on_progress("jobs.batch", "one", 0, 3)
    await asyncio.sleep(40)
    informers.on_progress("jobs.batch", "two", 0, 5)
    assert samples() == (8, 40)
    informers.on_stop("jobs.batch", "one")
    informers.on_progress("jobs.batch", "never scraped", 0, 0)
    informers.on_stop("jobs.batch", "never scraped")
    informers.on_stop("jobs.batch", "never synced")
    await asyncio.sleep(1)
    assert samples() == (5, 1)
    informers.on_stop("jobs.batch", "two")
    assert samples() == (None, None)
