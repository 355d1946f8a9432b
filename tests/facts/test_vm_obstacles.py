"""The reasons for which a VM stays on a node that KubeVirt evacuates."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.vm_obstacles import VMObstacle, staying, vm_obstacle

row = pytest.param
STOP, MIGRATE = "virtctl stop db -n ns", "Migrate it: virtctl migrate db -n ns"
IMMOVABLE = {"type": "LiveMigratable", "status": "False"}


def instance(*conditions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "db", "namespace": "ns"}, "spec": spec, "status": {"conditions": [*conditions]}}


def migration(phase: str, name: str = "m", **state: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase, "migrationState": state}}


@pytest.mark.parametrize(
    ("found", "why", "ways_out"),
    [
        row(instance(), "", (), id="KubeVirt moves it"),
        row(instance({**IMMOVABLE, "status": "True"}), "", (), id="migratable"),
        row(instance({**IMMOVABLE, "status": "Unknown"}), "", (), id="unknown"),
        row(instance(evictionStrategy="LiveMigrateIfPossible"), "", (), id="strategy of Harvester"),
        row(
            instance(evictionStrategy="None"),
            "its eviction strategy is None",
            (MIGRATE, f"Or stop it: {STOP}"),
            id="strategy None",
        ),
        row(
            instance({**IMMOVABLE, "reason": "SEV", "message": "no\nway"}, evictionStrategy="None"),
            "KubeVirt cannot migrate it: SEV: no way",
            (f"Stop the VM: {STOP}",),
            id="not migratable",
        ),
        row(
            instance(IMMOVABLE),
            "KubeVirt cannot migrate it: LiveMigratable is False",
            (f"Stop the VM: {STOP}",),
            id="without a reason",
        ),
    ],
)
def test_vm_that_only_its_user_moves(found: dict[str, Any], why: str, ways_out: tuple[str, ...]) -> None:
    expected = VMObstacle(why=why, ways_out=ways_out, needs_user=True) if why else None
    assert staying(found) == expected
    assert expected is None or vm_obstacle(found, [migration("Failed")]) == expected


@pytest.mark.parametrize(
    ("migrations", "why", "ways_out", "waits"),
    [
        row([], "it has no migration", (MIGRATE,), 1, id="no migration"),
        row([migration("")], "migration m has not begun", (), 1, id="new"),
        row([migration("Running")], "migration m is Running", (f"Stop the VM: {STOP}",), 0, id="running"),
        row([migration("Failed", failureReason="x\ny")], "migration m is Failed: x y", (MIGRATE,), 1, id="failed"),
        row([migration("Failed", "a"), migration("Pending")], "migration m is Pending", None, 0, id="repeated"),
        row([migration("Pending"), migration("Failed", "a")], "migration m is Pending", None, 0, id="one is active"),
    ],
)
def test_vm_that_kubevirt_moves(migrations: list[Any], why: str, ways_out: tuple[str, ...] | None, waits: int) -> None:
    found = vm_obstacle(instance(), migrations)
    assert (found.why, found.needs_controller, found.needs_user) == (why, bool(waits), False)
    assert ways_out is None or found.ways_out == ways_out


def test_vm_that_stops_comes_first() -> None:
    stopping = instance(IMMOVABLE) | {"metadata": {"name": "db", "namespace": "ns", "deletionTimestamp": "x"}}
    found = vm_obstacle(stopping, [migration("Running")])
    force = f"If its system does not shut down: {STOP} --force --grace-period=0"
    assert found == VMObstacle(why="it is stopping", ways_out=(force,))
