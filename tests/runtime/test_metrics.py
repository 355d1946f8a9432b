from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from upgrade_manager.runtime.lanes import Priority
from upgrade_manager.runtime.metrics import QUEUE_BUCKETS, RECONCILE_BUCKETS, Metrics
from upgrade_manager.runtime.rate_limiter import ItemExponential
from upgrade_manager.runtime.workqueue import WorkQueue

#: Name, type and labels of the reference (4.4), and of our own.
FAMILIES = {
    "workqueue_depth": ("gauge", ("name", "controller", "priority")),
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


def all_used() -> Metrics:
    metrics = Metrics(CollectorRegistry())
    metrics.queue("plans")
    metrics.controller("plans")
    metrics.leader("lease")
    return metrics


@pytest.mark.parametrize("name", FAMILIES)
def test_names_types_and_labels_are_the_references(name: str) -> None:
    kind, labels = FAMILIES[name]
    family = next(family for family in all_used().registry.collect() if family.name == name)
    assert family.type == kind
    assert family.documentation.endswith(".")
    assert {frozenset(sample.labels) - {"le"} for sample in family.samples} == {frozenset(labels)}


def test_there_are_no_others() -> None:
    assert {family.name for family in all_used().registry.collect()} == set(FAMILIES)


def test_every_series_starts_at_zero() -> None:
    for family in all_used().registry.collect():
        values = {sample.value for sample in family.samples if not sample.name.endswith("_created")}
        assert values == {0}, family.name


def test_buckets_are_the_references() -> None:
    assert pytest.approx([10.0**power for power in range(-8, 4)]) == QUEUE_BUCKETS
    assert len(RECONCILE_BUCKETS) == 40
    assert list(RECONCILE_BUCKETS) == sorted(RECONCILE_BUCKETS)
    assert (RECONCILE_BUCKETS[0], RECONCILE_BUCKETS[-1]) == (0.005, 60)


def test_two_managers_in_one_process_share_nothing() -> None:
    first, second = all_used(), all_used()
    first.queue("plans").added()
    assert second.registry.get_sample_value("workqueue_adds_total", {"name": "plans", "controller": "plans"}) == 0


async def test_a_queue_is_measured() -> None:
    metrics = Metrics(CollectorRegistry())
    queue: WorkQueue[str] = WorkQueue(
        "plans", limiter=ItemExponential(base=1), metrics=metrics.queue("plans", controller="upgradeplan")
    )
    labels = {"name": "plans", "controller": "upgradeplan"}

    def sample(name: str, **more: str) -> float | None:
        metrics.refresh()
        return metrics.registry.get_sample_value(f"workqueue_{name}", labels | more)

    queue.add("a")
    queue.add("a")
    queue.add("b", priority=Priority.LOW)
    queue.add("c", priority=Priority.LOW)
    queue.add("c")
    assert (sample("depth", priority="0"), sample("depth", priority="-100")) == (2, 1)
    assert sample("adds_total") == 3
    await asyncio.sleep(5)
    key = await queue.get()
    assert sample("depth", priority="0") == 1
    assert sample("queue_duration_seconds_sum") == 5
    queue.add(key)
    queue.add(key)
    assert sample("adds_total") == 4
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(1)
    assert (sample("unfinished_work_seconds"), sample("longest_running_processor_seconds")) == (4, 3)
    queue.add_rate_limited("d")
    queue.add_after("e", 0)
    assert sample("retries_total") == 1
    queue.done(key)
    assert (sample("work_duration_seconds_count"), sample("work_duration_seconds_sum")) == (1, 3)


def test_the_process_is_measured_when_asked_for() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.watch_process()
    assert (metrics.registry.get_sample_value("process_resident_memory_bytes") or 0) > 0
