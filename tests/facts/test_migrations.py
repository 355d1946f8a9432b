"""The time that KubeVirt lets a migration take, and its limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from upgrade_manager.facts.migrations import MigrationLimits, completion_time, has_begun, is_slow
from upgrade_manager.facts.quantities import read_quantity

row = pytest.param
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GIB_16: dict[str, Any] = {"spec": {"domain": {"memory": {"guest": "16Gi"}}}}


def migration(phase: str = "Running", *, minutes: float, created: float = 600) -> dict[str, Any]:
    """Return a migration that began so many minutes ago."""
    began, earlier = (f"{NOW - timedelta(minutes=age):%Y-%m-%dT%H:%M:%SZ}" for age in (minutes, created))
    state = {"startTimestamp": began}
    return {"metadata": {"creationTimestamp": earlier}, "status": {"phase": phase, "migrationState": state}}


@pytest.mark.parametrize(
    ("instance", "limits", "minutes"),
    [
        row({}, {}, 10, id="unknown memory"),
        row({"spec": {"domain": {"memory": {"guest": "2Gi"}}}}, {}, 10, id="little memory"),
        row(GIB_16, {}, 40, id="by memory"),
        row(GIB_16, {"per_gib": 300}, 80, id="with KubeVirt's setting"),
        row({**GIB_16, "status": {"memory": {"guestCurrent": "32Gi"}}}, {}, 80, id="memory was added"),
        row({"spec": {"domain": {"resources": {"requests": {"memory": "8Gi"}}}}}, {}, 20, id="by requests"),
        row({"spec": {"domain": {"resources": {"limits": {"memory": "8Gi"}}}}}, {}, 20, id="by limits"),
        row({"spec": {"domain": {"memory": {"guest": "much"}}}}, {}, 10, id="invalid"),
    ],
)
@pytest.mark.rule("blockers: a migration is slow beyond ten minutes and the time that KubeVirt lets it take")
def test_migration_may_take_time_by_memory(instance: Any, limits: dict[str, int], minutes: float) -> None:
    found = MigrationLimits(**limits)
    assert completion_time(instance, found) == timedelta(minutes=minutes)
    assert not is_slow(instance, migration(minutes=minutes - 1), limits=found, now=NOW)
    assert is_slow(instance, migration(minutes=minutes), limits=found, now=NOW)


def test_migration_without_a_start_counts_from_its_creation() -> None:
    raw = migration(minutes=0, created=9)
    del raw["status"]["migrationState"]
    limits = MigrationLimits()
    assert not is_slow({}, raw, limits=limits, now=NOW)
    del raw["metadata"]["creationTimestamp"]
    assert is_slow({}, raw, limits=limits, now=NOW)


@pytest.mark.parametrize(
    ("phase", "begun"),
    [("", False), ("Pending", False), ("Scheduling", True), ("Running", True), ("Succeeded", False), ("Failed", False)],
)
def test_migration_that_waits_for_others_has_not_begun(phase: str, *, begun: bool) -> None:
    assert has_begun({"status": {"phase": phase}}) is begun


@pytest.mark.parametrize(
    ("migrations", "expected"),
    [
        row(None, MigrationLimits(per_gib=150, in_cluster=5), id="KubeVirt's defaults"),
        row({"completionTimeoutPerGiB": 800}, MigrationLimits(per_gib=800, in_cluster=5), id="one is set"),
        row({"parallelMigrationsPerCluster": 1}, MigrationLimits(per_gib=150, in_cluster=1), id="another is set"),
    ],
)
def test_limits_of_kubevirt(migrations: Any, expected: MigrationLimits) -> None:
    assert MigrationLimits.of({"spec": {"configuration": {"migrations": migrations}}}) == expected
    assert MigrationLimits.of(None) == MigrationLimits()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("16Gi", 16 * 1024**3),
        ("1.5Gi", 1.5 * 1024**3),
        ("512M", 512 * 1000**2),
        ("2k", 2000),
        ("1Ki", 1024),
        ("1000m", 1),
        ("7", 7),
        ("1e3", None),
        ("Gi", None),
        ("", None),
        ("-1Gi", None),
    ],
)
def test_quantity_is_read(text: str, number: float | None) -> None:
    assert read_quantity(text) == number
