from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.remedy import saving
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.migrations import FINDERS
from upgrade_manager.blockers.wait import EvacuationWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
OWNED: dict[str, Any] = {"ownerReferences": [{"kind": "VirtualMachine"}]}
CREATED = "2026-01-01T10:00:00Z"


def blockers(
    view: FakeView,
    *,
    age: float = 600,
    node: str = "n1",
    running: bool = False,
    evacuating: bool = False,
    waited: float = 0,
    policies: str = "",
) -> Sequence[Blocker]:
    """Return the blockers of VMs that may leave for so many seconds, after the Job has waited for others."""
    since = view.ago(age)
    began = view.ago(age + waited)
    wait = EvacuationWait(
        name=node,
        node=node,
        since=began,
        released=since,
        is_running=running,
        is_evacuating=evacuating,
        invalid_policies=policies,
    )
    return find_blockers(FINDERS, view, [wait], []).blockers


def instance(name: str = "db01", *, phase: str = "Running", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": CREATED, **OWNED, **fields.pop("metadata", {})}
    return {"metadata": metadata, "status": {"phase": phase, **fields}}


def migration(phase: str, *, name: str = "m", created: str = "2026-01-01T11:00:00Z", **state: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": created}
    return {
        "metadata": metadata,
        "spec": {"vmiName": "db01"},
        "status": {"phase": phase, "migrationState": state},
    }


def fixed(**condition: Any) -> dict[str, Any]:
    return instance(conditions=[{"type": "LiveMigratable", "status": "False", **condition}])


RESTART = "kubectl -n harvester-system rollout restart deploy/virt-controller"
MIGRATE = (
    "(1) Migrate it: virtctl migrate db01 -n ns (2) If the migration does not begin, restart KubeVirt's controller: "
    f"{RESTART} (3) Or stop it: virtctl stop db01 -n ns (4) Undo it after the upgrade: virtctl start db01 -n ns"
)
AGAIN = "Undo it after the upgrade: virtctl start db01 -n ns"
EITHER = f"(1) Migrate it: virtctl migrate db01 -n ns (2) Or stop it: virtctl stop db01 -n ns (3) {AGAIN}"
STOP = f"(1) Stop the VM: virtctl stop db01 -n ns (2) {AGAIN}"
LAST = "If nothing else helps, stop the VM: virtctl stop db01 -n ns"
WAITS = f"(1) Show why: kubectl describe vmim -n ns m (2) {LAST} (3) {AGAIN}"
CANCEL = "If it makes no progress, let KubeVirt begin again: virtctl migrate-cancel db01 -n ns"
MOVES = f"(1) Show its progress: kubectl describe vmim -n ns m (2) {CANCEL} (3) {LAST} (4) {AGAIN}"
FORCE = "If its system does not shut down, force it: virtctl stop db01 -n ns --force --grace-period=0"
BARE_REMEDY = (
    f"(1) Save the instance: {saving('kubectl get vmi -n ns db01 -o yaml', 'vmi-ns-db01.yaml')} "
    "(2) Delete it: kubectl delete vmi -n ns db01 (3) If the migration does not begin, "
    f"restart KubeVirt's controller: {RESTART}"
)
STRATEGY = {**instance(), "spec": {"evictionStrategy": "None"}}
BARE = {"metadata": {"name": "db01", "namespace": "ns"}, "status": 1}
ARRIVED = migration("Succeeded", name="arrived", created="2026-01-01T11:30:00Z")
OLD = migration("Failed", name="old", created="2026-01-01T09:00:00Z")


@pytest.mark.rule("blockers: a VM that does not leave its node is named with its migration and a command")
@pytest.mark.parametrize(
    ("found", "migrations", "why", "remedy"),
    [
        row(instance(), [], "it has no migration", MIGRATE, id="no migration"),
        row(instance(), [OLD], "it has no migration", MIGRATE, id="only of an earlier VM"),
        row(instance(), [ARRIVED], "it has no migration", MIGRATE, id="none since it came to the node"),
        row(instance(), [migration("Pending")], "migration m is Pending", WAITS, id="pending"),
        row(
            instance(),
            [migration("")],
            "migration m has not begun",
            f"Restart KubeVirt's controller: {RESTART}",
            id="new",
        ),
        row(
            instance(),
            [migration("Running", name="b", created="2026-01-01T11:30:00Z"), migration("Failed", name="a")],
            "migration b is Running; migration a is Failed",
            MOVES.replace("ns m ", "ns b "),
            id="the newest runs",
        ),
        row(
            instance(),
            [migration("Failed", failureReason="target pod\x07 unschedulable.")],
            "migration m is Failed: target pod unschedulable",
            MIGRATE,
            id="failed",
        ),
        row(instance(), [migration("Failed")], "migration m is Failed", MIGRATE, id="failed without words"),
        row(
            fixed(reason="HostDeviceNotLiveMigratable", message="VMI uses a PCI host device"),
            [],
            "KubeVirt cannot migrate it: HostDeviceNotLiveMigratable: VMI uses a PCI host device",
            STOP,
            id="cannot migrate",
        ),
        row(fixed(), [], "KubeVirt cannot migrate it: LiveMigratable is False", STOP, id="without words"),
        row(STRATEGY, [], "its eviction strategy is None", EITHER, id="strategy"),
        row(instance(metadata={"deletionTimestamp": "x"}), [], "it is stopping", FORCE, id="stopping"),
        row(
            {"metadata": {"name": "db01", "namespace": "ns"}, "status": 1},
            [],
            "it has no migration",
            BARE_REMEDY,
            id="bare",
        ),
    ],
)
def test_vm_that_stays(view: FakeView, found: dict[str, Any], migrations: list[Any], why: str, remedy: str) -> None:
    view.found["VirtualMachineInstance"], view.found["VirtualMachineInstanceMigration"] = [found], migrations
    view.found["Deployment"] = [AVAILABLE]
    (blocker,) = blockers(view)
    assert (blocker.reason, blocker.kind, blocker.name) == ("MigrationStuck", "VirtualMachineInstance", "db01")
    assert blocker.message == f"VirtualMachineInstance ns/db01: it does not leave node n1 ({why})"
    assert (blocker.remedy, blocker.node, blocker.since) == (remedy, "n1", view.ago(600))


@pytest.mark.rule("nodes: an invalid policy of a VM is named where the VM holds up its node, as by an event")
def test_invalid_policy_of_the_vm_is_named(view: FakeView) -> None:
    view.found["VirtualMachineInstance"], view.found["Deployment"] = [instance(), instance("web")], [AVAILABLE]
    first, other = blockers(view, policies='{"ns/db01":"stop"}')
    assert first.message.endswith(
        "(it has no migration; its annotation management.harvesterhci.io/on-migration-failure is 'stop', which is "
        "neither Wait nor Stop, so that the upgrade does not stop it)"
    )
    assert first.remedy.startswith(
        "(1) Correct the annotation of the VirtualMachine, or remove it (2) Migrate it: virtctl migrate db01 -n ns (3) "
    )
    assert other.message.endswith("(it has no migration)")


def test_outage_comes_before_the_annotation(view: FakeView) -> None:
    view.found["VirtualMachineInstance"], view.found["Deployment"] = [instance()], [{"spec": {"replicas": 0}}]
    (blocker,) = blockers(view, policies='{"ns/db01":"stop"}')
    assert "is scaled to 0 replicas; its annotation " in blocker.message
    assert [one.text for one in blocker.remedies] == [
        "Start it",
        "Correct the annotation of the VirtualMachine, or remove it",
    ]


def test_controller_that_does_not_run_is_named(view: FakeView) -> None:
    view.found["VirtualMachineInstance"], view.found["Deployment"] = [instance()], [{"spec": {"replicas": 0}}]
    (blocker,) = blockers(view)
    assert blocker.message.endswith(
        "(it has no migration; Deployment harvester-system/virt-controller is scaled to 0 replicas)"
    )
    scale = "kubectl -n harvester-system scale deploy/virt-controller --replicas"
    assert blocker.remedy == f"Start it: {scale}=1"
    view.found["VirtualMachineInstance"] = [fixed()]
    assert [one.remedy for one in blockers(view)] == [STOP]


def test_unreadable_controller_does_not_matter(view: FakeView) -> None:
    view.found["VirtualMachineInstance"], view.errors["Deployment"] = [instance()], "no rights"
    assert [one.remedy for one in blockers(view)] == [MIGRATE]


@pytest.mark.parametrize(
    ("taints", "found"),
    [
        row([{"key": "kubevirt.io/drain", "effect": "NoSchedule"}], ["db01"], id="evacuated"),
        row([{"key": "node.kubernetes.io/unschedulable"}, None], [], id="the Job waits for volumes"),
        row(None, [], id="no taints"),
    ],
)
def test_vms_may_stay_until_the_node_is_evacuated(view: FakeView, taints: object, found: list[str]) -> None:
    view.found["Node"], view.found["VirtualMachineInstance"] = [{"spec": {"taints": taints}}], [instance()]
    assert [one.name for one in blockers(view, running=True)] == found


TAINT = "kubectl taint node n1 kubevirt.io/drain=draining:NoSchedule --overwrite"


@pytest.mark.rule("blockers: a VM that stays because another client removes the drain taint is named")
def test_vm_that_stays_without_the_taint_is_named(view: FakeView) -> None:
    view.found["Node"], view.found["VirtualMachineInstance"] = [{"spec": {}}], [instance(), fixed()]
    view.found["VirtualMachineInstance"][1]["metadata"]["name"] = "fixed"
    view.found["Deployment"] = [AVAILABLE]
    blocker, other = blockers(view, running=True, evacuating=True)
    assert blocker.message == (
        "VirtualMachineInstance ns/db01: it does not leave node n1 (it has no migration; another client removes taint "
        "kubevirt.io/drain of the node)"
    )
    assert blocker.remedy == f"(1) Stop the client that removes it (2) Set it again: {TAINT}"
    assert "taint" not in other.message


@pytest.mark.parametrize("taints", [None, [{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]], ids=["wiped", "set"])
def test_controller_that_is_off_comes_before_the_taint(view: FakeView, taints: object) -> None:
    view.found["Node"], view.found["VirtualMachineInstance"] = [{"spec": {"taints": taints}}], [instance()]
    view.found["Deployment"] = [{"status": {"availableReplicas": 0}}]
    (blocker,) = blockers(view, running=True, evacuating=True)
    assert "virt-controller" in blocker.message
    assert "taint" not in blocker.message


def test_vm_that_stays_with_the_taint_has_its_own_remedy(view: FakeView) -> None:
    taints = [{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]
    view.found["Node"], view.found["VirtualMachineInstance"] = [{"spec": {"taints": taints}}], [instance()]
    view.found["Deployment"] = [AVAILABLE]
    assert [one.remedy for one in blockers(view, running=True, evacuating=True)] == [MIGRATE]


@pytest.mark.rule("blockers: a VM whose migration to a node holds the node's drain up is named")
def test_vm_that_migrates_to_the_node_is_named(view: FakeView) -> None:
    state = {"targetNode": "n1"}
    view.found["VirtualMachineInstance"] = [instance("coming", nodeName="n2", migrationState=state)]
    *_, blocker = blockers(view, policies='{"ns/coming":"stop"}')
    assert blocker.message == (
        "VirtualMachineInstance ns/coming: the drain of node n1 waits for it (it migrates to this node)"
    )
    assert blocker.remedy == "Cancel its migration: virtctl migrate-cancel coming -n ns"
    assert [one.label_selector for one in view.read][-1] == "kubevirt.io/migrationTargetNodeName=n1"


YOUNG, LATE = "2026-01-01T11:50:01Z", "2026-01-01T11:50:00Z"
#: Of migrations that KubeVirt has not begun.
NEW, IDLE = "2026-01-01T11:59:01Z", "2026-01-01T11:59:00Z"
AVAILABLE = {"status": {"availableReplicas": 1}}


@pytest.mark.parametrize(
    ("migrations", "found"),
    [
        row([migration("Running", created=YOUNG)], ["fixed"], id="one moves, another is queued"),
        row(
            [migration("", name="b", created=NEW), migration("Failed", name="f"), ARRIVED],
            ["fixed"],
            id="one that has moved before",
        ),
        row([migration("Running", created=LATE)], ["db01", "fixed"], id="it takes long, another is queued"),
        row([migration("", created=IDLE)], ["db01", "queued", "fixed"], id="it does not begin"),
        row(
            [migration("Pending", name="b", created=YOUNG), migration("Failed", name="a", created=YOUNG)],
            ["db01", "queued", "fixed"],
            id="it is repeated",
        ),
        row([migration("Failed", created=YOUNG)], ["db01", "queued", "fixed"], id="it has failed"),
        row([migration("Failed", created=YOUNG), ARRIVED], ["db01", "queued", "fixed"], id="it has moved and failed"),
    ],
)
def test_vms_that_move_one_after_the_other_are_not_stuck(
    view: FakeView, migrations: list[Any], found: list[str]
) -> None:
    stays = {**instance("fixed"), "spec": {"evictionStrategy": "External"}}
    view.found["VirtualMachineInstance"] = [instance(), instance("queued"), stays]
    view.found["VirtualMachineInstanceMigration"] = migrations
    assert [one.name for one in blockers(view)] == found


SLOW, FAST = {"completionTimeoutPerGiB": 75}, {"completionTimeoutPerGiB": 74}
MEMORY: dict[str, Any] = {"spec": {"domain": {"memory": {"guest": "16Gi"}}}}


@pytest.mark.rule("blockers: a migration is slow beyond ten minutes and the time that KubeVirt lets it take")
@pytest.mark.parametrize(
    ("settings", "found"),
    [
        row({}, [], id="KubeVirt's default"),
        row(SLOW, [], id="it may take twenty minutes"),
        row(FAST, ["db01"], id="it takes longer than it may"),
        row(None, [], id="KubeVirt cannot be read"),
    ],
)
def test_migration_of_twenty_minutes_is_not_stuck(view: FakeView, settings: Any, found: list[str]) -> None:
    view.found["VirtualMachineInstance"] = [instance() | MEMORY]
    view.found["VirtualMachineInstanceMigration"] = [migration("Running", created="2026-01-01T11:40:01Z")]
    if settings is None:
        view.errors["KubeVirt"] = "no rights"
    kubevirt = {"metadata": {"name": "kubevirt"}, "spec": {"configuration": {"migrations": settings}}}
    view.found["KubeVirt"] = [kubevirt]
    assert [one.name for one in blockers(view, age=1800)] == found


@pytest.mark.rule("blockers: VMs that wait for others' migrations are not named")
@pytest.mark.parametrize(("others", "found"), [(1, ["db01"]), (2, [])])
def test_vm_that_waits_for_the_clusters_slots_is_not_stuck(view: FakeView, others: int, found: list[str]) -> None:
    moving = [instance(f"m{number}", nodeName="n2", migrationState={"targetNode": "n3"}) for number in range(others)]
    view.selected["kubevirt.io/migrationTargetNodeName"] = moving
    view.selected["kubevirt.io/migrationTargetNodeName=n1"] = []
    view.found["VirtualMachineInstance"] = [instance()]
    view.found["VirtualMachineInstanceMigration"] = [migration("Pending", created=LATE)]
    limits = {"configuration": {"migrations": {"parallelMigrationsPerCluster": 2}}}
    view.found["KubeVirt"] = [{"metadata": {"name": "kubevirt"}, "spec": limits}]
    assert [one.name for one in blockers(view)] == found


def test_only_migrations_of_these_vms_are_watched(view: FakeView) -> None:
    long_name = "x" * 64
    view.found["VirtualMachineInstance"] = [
        instance("b"),
        instance("a"),
        instance(long_name),
        instance("c", phase="Failed"),
    ]
    assert [one.name for one in blockers(view)] == ["b", "a", long_name]
    assert [one.label_selector for one in view.read if one.label_selector] == [
        "kubevirt.io/nodeName=n1",
        "kubevirt.io/vmi-name in (a,b)",
        "kubevirt.io/migrationTargetNodeName",
        "kubevirt.io/migrationTargetNodeName=n1",
    ]


@pytest.mark.parametrize(
    ("age", "node", "instances", "reads"),
    [
        row(599, "n1", [instance()], 0, id="not overdue"),
        row(600, "n1", [], 2, id="empty node"),
        row(600, "n1", [instance(phase="Succeeded"), instance(phase="Failed")], 2, id="ended"),
        row(600, "n" * 64, [instance()], 0, id="name that is not a label value"),
    ],
)
def test_evacuation_that_is_not_stuck(view: FakeView, age: float, node: str, instances: list[Any], reads: int) -> None:
    view.found["VirtualMachineInstance"] = instances
    assert blockers(view, age=age, node=node) == []
    assert len(view.read) == reads


def test_wait_for_volumes_before_the_evacuation_does_not_count(view: FakeView) -> None:
    view.found["VirtualMachineInstance"] = [instance()]
    assert blockers(view, age=599, waited=3600) == []
    (found,) = blockers(view, age=600, waited=3600)
    assert found.since == view.ago(600)
