"""The pre-drain Job and the finders explain the same wait alike."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, create, find, named, node
from tests.support.cluster.nodes import job_state
from tests.support.cluster.vm_world import FREE, set_instance, vm_world
from tests.support.toolkit.toolkit import NODE
from tests.support.toolkit.volume_world import volume_world
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.blockers import leftover_budgets, migrations, node_return, volumes
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.wait import EvacuationWait, LostNodeWait, RebootWait
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.migrations import TARGET_LABEL
from upgrade_manager.facts.vm_obstacles import NODE_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    LONGHORN_ENGINES,
    LONGHORN_REPLICAS,
    LONGHORN_VOLUMES,
    MIGRATIONS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from upgrade_manager.nodes.drain import await_reboot, lost
from upgrade_manager.nodes.model import NodeView
from upgrade_manager.toolkit.vms import vm_stop
from upgrade_manager.toolkit.vms.evacuation import budgets_remaining, vms_remaining
from upgrade_manager.toolkit.vms.longhorn_gate import unsafe_volumes
from webhook.checks.vms import CHECK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.blockers.conftest import FakeView
    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.blockers.finder import Row
    from upgrade_manager.blockers.wait import ReturnWait
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.nodes.model import Decision

row = pytest.param


async def show(view: FakeView, world: ToolkitWorld, *resources: Resource) -> None:
    """Let the finder see the world in which the Job runs."""
    for resource in resources:
        view.found[resource.kind] = [*(await world.client.list(resource)).items]


def of_evacuation(finders: Sequence[Row], view: FakeView, *, is_running: bool) -> Sequence[Blocker]:
    """Return the blockers of a node whose VMs are to leave since an hour."""
    since = view.ago(3600)
    wait = EvacuationWait(
        name=NODE,
        node=NODE,
        since=since,
        released=since,
        is_running=is_running,
        is_at_gate=is_running,
        at_budgets=since,
    )
    return find_blockers(finders, view, [wait], []).blockers


@pytest.mark.rule("blockers: a volume that lacks replicas is named while the pre-drain Job waits for it")
@pytest.mark.parametrize(
    ("settings", "count"),
    [
        row({"nodes": 2, "robustness": "degraded", "modes": "RW RW"}, 0, id="two nodes with three replicas"),
        row({"nodes": 2, "robustness": "degraded", "modes": "RW"}, 1, id="two nodes with one replica"),
        row({"nodes": 2, "robustness": "healthy", "modes": "RW WO"}, 1, id="two nodes, one is rebuilt"),
        row({"nodes": 3, "robustness": "degraded"}, 1, id="three nodes, no replica on this one"),
        row({"nodes": 3, "robustness": "degraded", "state": "stopped"}, 0, id="three nodes, a VM that is off"),
        row({"nodes": 3, "robustness": "unknown"}, 1, id="three nodes, unknown"),
        row({"nodes": 3}, 0, id="three nodes, healthy"),
    ],
)
async def test_volume_is_a_blocker_if_the_gate_waits(
    view: FakeView, tmp_path: Path, settings: dict[str, Any], count: int
) -> None:
    async with volume_world(tmp_path, **settings) as world:
        gate = await unsafe_volumes(world.context())
        await show(view, world, NODES, LONGHORN_ENGINES, LONGHORN_REPLICAS, LONGHORN_VOLUMES)
        found = of_evacuation(volumes.FINDERS, view, is_running=True)
    assert (gate.startswith(f"{count} volumes"), len(found)) == (bool(count), count)


def _labelled(name: str) -> Object:
    """Return an instance of another node that migrates to a third one."""
    labels = {"kubevirt.io/nodeName": "node-1", "kubevirt.io/migrationTargetNodeName": "node-2"}
    state = {"migrationState": {"targetNode": "node-2"}}
    status = {"nodeName": "node-1", "phase": "Running", **state}
    return named(name, "default", labels=labels, spec={"domain": {"devices": {}}}, status=status)


def _migration(vm: str, phase: str) -> Object:
    labels = {"kubevirt.io/vmi-name": vm}
    return named(f"of-{vm}", "default", labels=labels, spec={"vmiName": vm}, status={"phase": phase})


@pytest.mark.rule("blockers: VMs that wait for others' migrations are not named")
@pytest.mark.parametrize(
    ("migrations_", "elsewhere", "reason"),
    [
        row([], 0, "it has no migration", id="no migration"),
        row([], 4, "it has no migration", id="free slots in the cluster"),
        row([], 5, "KubeVirt migrates other VMs first", id="no free slot in the cluster"),
        row([("other", "Running")], 0, "KubeVirt migrates other VMs first", id="another VM moves"),
        row([("other", "Pending")], 0, "KubeVirt migrates other VMs first", id="another VM is about to move"),
        row([("other", "Failed")], 0, "it has no migration", id="the migration of another VM has failed"),
        row([("far", "Running")], 0, "it has no migration", id="one VM of another node moves"),
        row([("free", "Pending")], 0, "migration of-free is Pending", id="only its own migration is pending"),
    ],
)
async def test_vm_is_queued_in_the_job_if_no_blocker_names_it(
    view: FakeView, tmp_path: Path, migrations_: list[tuple[str, str]], elsewhere: int, reason: str
) -> None:
    async with vm_world(tmp_path, FREE, {**FREE, "name": "other"}, actors=False) as world:
        view.now = world.context().now()
        for number in range(elsewhere):
            await create(world.client, VIRTUAL_MACHINE_INSTANCES, _labelled(f"far-{number}"))
        for vm, phase in migrations_:
            await create(world.client, MIGRATIONS, _migration(vm, phase))
        job = await vms_remaining(world.context())
        await show(view, world, MIGRATIONS)
        for selector in (f"{NODE_LABEL}={NODE}", TARGET_LABEL, f"{TARGET_LABEL}={NODE}"):
            listed = await world.client.list(VIRTUAL_MACHINE_INSTANCES, label_selector=selector)
            view.selected[selector] = [*listed.items]
        found = [one.message for one in of_evacuation(migrations.FINDERS, view, is_running=False)]
    assert f"default/free ({reason})" in job
    is_named = reason == "it has no migration"
    assert any("/free: " in one and reason in one for one in found) is is_named


IMMOVABLE = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}


@pytest.mark.rule("blockers: a VM that does not leave its node is named with its migration and a command")
@pytest.mark.parametrize(
    ("change", "commands"),
    [
        row({"spec": {"evictionStrategy": "None"}}, ["virtctl migrate", "virtctl stop"], id="strategy None"),
        row({"spec": {"evictionStrategy": "External"}}, ["virtctl migrate", "virtctl stop"], id="External"),
        row({"status": {"conditions": [IMMOVABLE]}}, ["virtctl stop"], id="not migratable"),
    ],
)
async def test_vm_that_only_its_user_moves_has_one_remedy(
    view: FakeView, tmp_path: Path, change: Object, commands: list[str]
) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await set_instance(world, "free", change)
        job = await vms_remaining(world.context())
        await show(view, world, VIRTUAL_MACHINE_INSTANCES)
        (blocker,) = of_evacuation(migrations.FINDERS, view, is_running=False)
    for command in ("virtctl migrate", "virtctl stop"):
        assert (command in job, command in blocker.remedy) == (command in commands, command in commands)
    assert blocker.message.partition("(")[2].removesuffix(")") in job
    assert blocker.remedy in job


@pytest.mark.rule("blockers: an instance without a VirtualMachine has one remedy for Job, finder and webhook")
async def test_instance_without_a_machine_has_one_remedy(view: FakeView, tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await set_instance(world, "free", {"metadata": {"ownerReferences": None}, "spec": {"evictionStrategy": "None"}})
        await world.client.delete(VIRTUAL_MACHINES, "free", namespace="default")
        (instance,) = (await world.client.list(VIRTUAL_MACHINE_INSTANCES)).items
        job, context = await vms_remaining(world.context()), world.context()
        stop = await vm_stop.stop(context, await vm_stop.read(context, [instance]), restores=False)
        (stopped,) = stop.running.values()
        await show(view, world, VIRTUAL_MACHINE_INSTANCES)
        (blocker,) = of_evacuation(migrations.FINDERS, view, is_running=False)
    devices = {**instance, "spec": {"nodeSelector": {}}}
    reader = MemoryReader({NODES: [node("a"), node("b")], VIRTUAL_MACHINE_INSTANCES: [devices]})
    (refusal,) = await find(CHECK, reader)
    assert blocker.remedies[-1].command == "kubectl delete vmi -n default free"
    assert all(text.rstrip(")").endswith(blocker.remedy) for text in (job, stopped))
    assert refusal.endswith(blocker.remedy)


async def test_migration_that_brought_a_vm_does_not_explain_its_stay(view: FakeView, tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        metadata = {"name": "kubevirt-evacuation-arrival", "namespace": "default"}
        arrival = {"apiVersion": MIGRATIONS.api_version, "kind": MIGRATIONS.kind, "metadata": metadata}
        await world.client.create(MIGRATIONS, {**arrival, "spec": {"vmiName": "free"}}, namespace="default")
        ended = MergePatch({"status": {"phase": "Succeeded"}})
        await world.client.patch(MIGRATIONS, metadata["name"], ended, namespace="default", subresource="status")
        job = await vms_remaining(world.context())
        await show(view, world, VIRTUAL_MACHINE_INSTANCES, MIGRATIONS)
        (blocker,) = of_evacuation(migrations.FINDERS, view, is_running=False)
    assert "arrival" not in job
    assert "it has no migration" in job
    assert "it has no migration" in blocker.message


ORPHAN = "kubevirt-disruption-budget-x"
OLD_MIGRATION = "kubevirt-migration-pdb-kubevirt-evacuation-x"


@pytest.mark.rule("blockers: a PodDisruptionBudget that KubeVirt leaves behind is named while the pre-drain Job waits")
@pytest.mark.parametrize(
    ("name", "owner", "count"),
    [
        row(ORPHAN, "uid-of-a-deleted-vm", 1, id="of a deleted VM"),
        row(ORPHAN, "free", 0, id="of a running VM"),
        row(OLD_MIGRATION, "", 1, id="of an evacuation, KubeVirt before 1.5"),
        row(OLD_MIGRATION, "free", 1, id="of an evacuation of a running VM"),
        row("of-a-user", "", 0, id="of a user"),
    ],
)
async def test_budget_is_a_blocker_if_the_job_waits(
    view: FakeView, tmp_path: Path, name: str, owner: str, count: int
) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        instance = await world.client.get(VIRTUAL_MACHINE_INSTANCES, "free", namespace="default")
        uid = objects.uid(instance) if owner == "free" else owner
        reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "free", "uid": uid}
        budget = named(name, "default", spec={"minAvailable": 1})
        budget["metadata"]["ownerReferences"] = [reference] if owner else []
        await create(world.client, POD_DISRUPTION_BUDGETS, budget)
        job = await budgets_remaining(world.context())
        await show(view, world, VIRTUAL_MACHINE_INSTANCES)
        # The garbage collector removes a budget whose owner does not exist.
        view.found[POD_DISRUPTION_BUDGETS.kind] = [budget]
        found = of_evacuation(leftover_budgets.FINDERS, view, is_running=True)
    command = f"kubectl delete pdb -n default {name}"
    assert (job.endswith(command), [one.remedy for one in found]) == (
        bool(count),
        [f"Delete it: {command}"] * count,
    )


@pytest.mark.parametrize("os_image", ["old", "new"])
@pytest.mark.parametrize("kind", [RebootWait, LostNodeWait])
def test_message_and_blocker_give_a_reboot_the_same_time(view: FakeView, os_image: str, kind: type[ReturnWait]) -> None:
    node = NodeView(name=NODE, state=None, os_image=os_image, ready=False, pending_os="new", jobs={})
    shown = await_reboot(node, "new").progress.partition("If it takes over ")[2]
    seconds = float(shown.partition(" min")[0]) * 60
    for age, count in ((seconds - 1, 0), (seconds, 1)):
        since = view.ago(age)
        wait = kind(name=NODE, node=NODE, since=since, release_os="new", ready_changed=since)
        assert len(find_blockers(node_return.FINDERS, view, [wait], []).blockers) == count


@pytest.mark.rule("blockers: the progress and the blocker of a node give the same reason")
@pytest.mark.parametrize(("os_image", "is_ready"), [("old", False), ("old", True), ("new", False)])
@pytest.mark.parametrize(
    ("kind", "explain"), [(RebootWait, await_reboot), (LostNodeWait, partial(lost, state=NodeState.POST_DRAINED))]
)
def test_message_and_blocker_explain_a_node_that_is_not_back(
    view: FakeView,
    kind: type[ReturnWait],
    explain: Callable[[NodeView, str], Decision | None],
    os_image: str,
    *,
    is_ready: bool,
) -> None:
    since = view.time(60)
    ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": since}
    view.found["Node"] = [{"status": {"nodeInfo": {"osImage": os_image}, "conditions": [ready]}}]
    job = job_state(Progress.COMPLETE, completed=view.time(3600), boot_id="a")
    node = NodeView(
        name=NODE,
        state=None,
        os_image=os_image,
        ready=is_ready,
        ready_since=since,
        boot_id="b",
        pending_os="new",
        jobs={JobType.POST_DRAIN: job},
    )
    wait = kind(
        name=NODE,
        node=NODE,
        since=view.ago(3600),
        release_os="new",
        ready_changed=view.ago(60),
        is_ready=is_ready,
        has_rebooted=node.has_rebooted,
    )
    (blocker,) = find_blockers(node_return.FINDERS, view, [wait], []).blockers
    decision = explain(node, "new")
    assert decision is not None
    assert blocker.message.removeprefix(f"Node {NODE}: ") in decision.progress
    assert decision.progress.rpartition(". ")[2].removeprefix("If it takes over 30 min: ") in blocker.remedy
