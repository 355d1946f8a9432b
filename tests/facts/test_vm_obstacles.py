"""The reasons for which a VM stays on a node that KubeVirt evacuates."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.vm_obstacles import VMObstacle, arriving, staying, stopping, vm_obstacle, without_machine

row = pytest.param
DELETE = "Delete it: kubectl delete vmi -n ns db"
STOP, MIGRATE = "virtctl stop db -n ns", "Migrate it: virtctl migrate db -n ns"
METADATA: dict[str, Any] = {"name": "db", "namespace": "ns", "ownerReferences": [{"kind": "VirtualMachine"}]}
IMMOVABLE = {"type": "LiveMigratable", "status": "False"}


def instance(*conditions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {**METADATA}, "spec": spec, "status": {"conditions": [*conditions]}}


def migration(phase: str, name: str = "m", **state: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name}, "status": {"phase": phase, "migrationState": state}}


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


LAST = f"If nothing else helps, stop the VM: {STOP}"
DESCRIBE = "kubectl describe vmim -n ns m"
WAITS = (f"Show why: {DESCRIBE}", LAST)
CANCEL = "If it makes no progress, let KubeVirt begin again: virtctl migrate-cancel db -n ns"
MOVES = (f"Show its progress: {DESCRIBE}", CANCEL, LAST)


@pytest.mark.rule("blockers: a VM that migrates is shown first and stopped last")
@pytest.mark.parametrize(
    ("migrations", "why", "ways_out", "waits"),
    [
        row([], "it has no migration", (MIGRATE,), 1, id="no migration"),
        row([migration("")], "migration m has not begun", (), 1, id="new"),
        row([migration("Running")], "migration m is Running", MOVES, 0, id="running"),
        row([migration("Pending")], "migration m is Pending", WAITS, 0, id="pending"),
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
    found = vm_obstacle(
        instance(IMMOVABLE) | {"metadata": METADATA | {"deletionTimestamp": "x"}}, [migration("Running")]
    )
    force = f"If its system does not shut down: {STOP} --force --grace-period=0"
    assert found == VMObstacle(why="it is stopping", ways_out=(force,))


@pytest.mark.parametrize("owners", [[], [{"kind": "VirtualMachineInstanceReplicaSet"}], None])
@pytest.mark.parametrize(
    "change",
    [
        row({"spec": {"evictionStrategy": "None"}}, id="strategy None"),
        row({"status": {"conditions": [IMMOVABLE]}}, id="not migratable"),
        row({}, id="KubeVirt moves it"),
    ],
)
def test_instance_without_a_machine_is_deleted(owners: object, change: dict[str, Any]) -> None:
    bare = instance() | {"metadata": METADATA | {"ownerReferences": owners}} | change
    for migrations in ([], [migration("Failed")]):
        assert vm_obstacle(bare, migrations).ways_out == (DELETE,)
    last = f"If nothing else helps, {DELETE[0].lower()}{DELETE[1:]}"
    assert vm_obstacle(bare, [migration("Running")]).ways_out[-1] == last
    expected = VMObstacle(why="it has no VirtualMachine", ways_out=(DELETE,), needs_user=True)
    assert (stopping(bare), without_machine(bare)) == (expected, expected)
    bare["metadata"]["deletionTimestamp"] = "x"
    assert [one.rpartition(": ")[2] for one in vm_obstacle(bare, []).ways_out] == ["virtctl console db -n ns"]


def test_vm_is_queued_while_kubevirt_moves_others() -> None:
    queued = VMObstacle(why="KubeVirt migrates other VMs first", is_queued=True)
    for migrations in ([], [migration("")], [migration("Pending")]):
        assert vm_obstacle(instance(), migrations, others_move=True) == queued
    assert not vm_obstacle(instance(), [migration("Running")], others_move=True).is_queued
    assert not vm_obstacle(instance(), [migration("Failed")], others_move=True).is_queued
    assert not vm_obstacle(instance(IMMOVABLE), [], others_move=True).is_queued


@pytest.mark.parametrize(
    ("state", "node", "waits"),
    [
        ({"targetNode": "n1"}, "n2", True),
        ({"targetNode": "n1"}, "n1", False),
        ({"targetNode": "n3"}, "n2", False),
        ({"targetNode": "n1", "completed": True}, "n2", False),
        ({"targetNode": "n1", "failed": True}, "n2", False),
        (None, "n2", False),
    ],
)
def test_drain_waits_for_unfinished_migrations_to_its_node(state: object, node: str, *, waits: bool) -> None:
    found = arriving({"metadata": METADATA, "status": {"nodeName": node, "migrationState": state}}, "n1")
    cancel = "Cancel its migration: virtctl migrate-cancel db -n ns"
    assert found == (VMObstacle(why="it migrates to this node", ways_out=(cancel,)) if waits else None)
