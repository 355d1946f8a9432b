from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from tests.support.managers.runtime import new_queue
from upgrade_manager.runtime.metrics import QUEUE_BUCKETS, RECONCILE_BUCKETS, Metrics

#: Type and labels by name: those of runtime.md 4.4, without the priority of `workqueue_depth`, and the loop's lag.
FAMILIES = {
    "workqueue_depth": ("gauge", ("name", "controller")),
    "workqueue_adds": ("counter", ("name", "controller")),
    "workqueue_retries": ("counter", ("name", "controller")),
    "workqueue_queue_duration_seconds": ("histogram", ("name", "controller")),
    "workqueue_work_duration_seconds": ("histogram", ("name", "controller")),
    "workqueue_unfinished_work_seconds": ("gauge", ("name", "controller")),
    "workqueue_longest_running_processor_seconds": ("gauge", ("name", "controller")),
    "controller_runtime_reconcile": ("counter", ("controller", "result")),
    "controller_runtime_reconcile_errors": ("counter", ("controller",)),
    "controller_runtime_terminal_reconcile_errors": ("counter", ("controller",)),
    "controller_runtime_reconcile_panics": ("counter", ("controller",)),
    "controller_runtime_reconcile_timeouts": ("counter", ("controller",)),
    "controller_runtime_reconcile_time_seconds": ("histogram", ("controller",)),
    "controller_runtime_max_concurrent_reconciles": ("gauge", ("controller",)),
    "controller_runtime_active_workers": ("gauge", ("controller",)),
    "leader_election_master_status": ("gauge", ("name",)),
    "leader_election_slowpath": ("counter", ("name",)),
    "event_loop_lag_seconds": ("histogram", ()),
}


def all_metrics() -> Metrics:
    metrics = Metrics(CollectorRegistry())
    metrics.queue("plans")
    metrics.controller("plans")
    metrics.reconciles("plans")
    metrics.leader_election("lease")
    return metrics


def test_series_are_controller_runtimes_and_start_at_zero() -> None:
    found = {family.name: family for family in all_metrics().registry.collect()}
    assert found.keys() == FAMILIES.keys()
    for name, (kind, labels) in FAMILIES.items():
        assert (name, found[name].type) == (name, kind)
        assert found[name].documentation.endswith(".")
        assert {frozenset(sample.labels) - {"le"} for sample in found[name].samples} == {frozenset(labels)}
        assert not any(sample.name.endswith("_created") for sample in found[name].samples)
        values = {sample.value for sample in found[name].samples}
        assert (name, values) == (name, {0})


def test_buckets_are_client_gos_and_controller_runtimes() -> None:
    assert pytest.approx([10.0**power for power in range(-8, 4)]) == QUEUE_BUCKETS
    assert len(RECONCILE_BUCKETS) == 40
    assert list(RECONCILE_BUCKETS) == sorted(RECONCILE_BUCKETS)
    assert (RECONCILE_BUCKETS[0], RECONCILE_BUCKETS[-1]) == (0.005, 60)


def test_two_managers_in_one_process_share_no_series() -> None:
    first, second = all_metrics(), all_metrics()
    first.queue("plans").adds.inc()
    assert second.registry.get_sample_value("workqueue_adds_total", {"name": "plans", "controller": "plans"}) == 0


async def test_queue_metrics_count_keys_and_durations() -> None:
    metrics = Metrics(CollectorRegistry())
    queue = new_queue(metrics=metrics)

    def sample(name: str) -> float | None:
        metrics.refresh()
        return metrics.registry.get_sample_value(f"workqueue_{name}", {"name": "plans", "controller": "plans"})

    for key in ("a", "a", "b"):
        queue.add(key)
    assert (sample("depth"), sample("adds_total")) == (2, 2)
    await asyncio.sleep(5)
    key = await queue.get()
    assert (sample("depth"), sample("queue_duration_seconds_sum")) == (1, 5)
    queue.add(key)
    queue.add(key)
    assert sample("adds_total") == 3
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(1)
    assert (sample("unfinished_work_seconds"), sample("longest_running_processor_seconds")) == (4, 3)
    queue.add_rate_limited("c")
    queue.add_after("d", 0)
    assert sample("retries_total") == 1
    queue.done(key)
    assert (sample("work_duration_seconds_count"), sample("work_duration_seconds_sum")) == (1, 3)
