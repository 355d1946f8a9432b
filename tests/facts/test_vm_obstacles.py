"""The reasons for which a VM stays on a node that KubeVirt evacuates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from upgrade_manager.api.remedy import Remedy, saving
from upgrade_manager.facts.vm_obstacles import VMObstacle, arriving, staying, stopping, vm_obstacle, without_machine

row = pytest.param
STOP, START = "virtctl stop db -n ns", "virtctl start db -n ns"
MIGRATE = Remedy("Migrate it", command="virtctl migrate db -n ns")
SAVE = Remedy("Save the instance", command=saving("kubectl get vmi -n ns db -o yaml", "vmi-ns-db.yaml"))
DELETE = Remedy("Delete it", command="kubectl delete vmi -n ns db")
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
            (MIGRATE, Remedy("Or stop it", command=STOP, undo=START)),
            id="strategy None",
        ),
        row(
            instance({**IMMOVABLE, "reason": "SEV", "message": "no\nway"}, evictionStrategy="None"),
            "KubeVirt cannot migrate it: SEV: no way",
            (Remedy("Stop the VM", command=STOP, undo=START),),
            id="not migratable",
        ),
        row(
            instance(IMMOVABLE),
            "KubeVirt cannot migrate it: LiveMigratable is False",
            (Remedy("Stop the VM", command=STOP, undo=START),),
            id="without a reason",
        ),
    ],
)
def test_vm_that_only_its_user_moves(found: dict[str, Any], why: str, ways_out: tuple[Remedy, ...]) -> None:
    expected = VMObstacle(why=why, ways_out=ways_out, needs_user=True) if why else None
    assert staying(found) == expected
    assert expected is None or vm_obstacle(found, [migration("Failed")]) == expected


LAST = Remedy("If nothing else helps, stop the VM", command=STOP, undo=START)
DESCRIBE = "kubectl describe vmim -n ns m"
WAITS = (Remedy("Show why", command=DESCRIBE), LAST)
CANCEL = Remedy("If it makes no progress, let KubeVirt begin again", command="virtctl migrate-cancel db -n ns")
PENDING, FAILED = "migration m is Pending", "migration a is Failed"
MOVES = (Remedy("Show its progress", command=DESCRIBE), CANCEL, LAST)


@pytest.mark.rule("blockers: a VM that migrates is shown first and stopped last")
@pytest.mark.parametrize(
    ("migrations", "why", "ways_out", "waits"),
    [
        row([], "it has no migration", (MIGRATE,), 1, id="no migration"),
        row([migration("")], "migration m has not begun", (), 1, id="new"),
        row([migration("Running")], "migration m is Running", MOVES, 0, id="running"),
        row([migration("Pending")], "migration m is Pending", WAITS, 0, id="pending"),
        row([migration("Failed", failureReason="x\ny")], "migration m is Failed: x y", (MIGRATE,), 1, id="failed"),
        row([migration("Failed", "a"), migration("Pending")], f"{PENDING}; {FAILED}", None, 0, id="repeated"),
        row([migration("Pending"), migration("Failed", "a")], f"{PENDING}; {FAILED}", None, 0, id="one is active"),
    ],
)
def test_vm_that_kubevirt_moves(
    migrations: list[Any], why: str, ways_out: tuple[Remedy, ...] | None, waits: int
) -> None:
    found = vm_obstacle(instance(), migrations)
    assert (found.why, found.needs_controller, found.needs_user) == (why, bool(waits), False)
    assert ways_out is None or found.ways_out == ways_out
    stop = (Remedy("Or stop it", command=STOP, undo=START),)
    assert found.last_ways_out == (stop if MIGRATE in found.ways_out else ())


def test_vm_that_stops_comes_first() -> None:
    found = vm_obstacle(
        instance(IMMOVABLE) | {"metadata": METADATA | {"deletionTimestamp": "x"}}, [migration("Running")]
    )
    force = Remedy("If its system does not shut down, force it", command=f"{STOP} --force --grace-period=0")
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
        assert vm_obstacle(bare, migrations).ways_out == (SAVE, DELETE)
    last = replace(DELETE, text="If nothing else helps, delete it")
    assert vm_obstacle(bare, [migration("Running")]).ways_out[-2:] == (SAVE, last)
    expected = VMObstacle(why="it has no VirtualMachine", ways_out=(SAVE, DELETE), needs_user=True)
    assert (stopping(bare), without_machine(bare)) == (expected, expected)
    bare["metadata"]["deletionTimestamp"] = "x"
    assert [one.command for one in vm_obstacle(bare, []).ways_out] == ["virtctl console db -n ns"]


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
    cancel = Remedy("Cancel its migration", command="virtctl migrate-cancel db -n ns")
    assert found == (VMObstacle(why="it migrates to this node", ways_out=(cancel,)) if waits else None)
