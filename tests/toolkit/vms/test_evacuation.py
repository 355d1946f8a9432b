from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.cluster.vm_world import FREE, nodes_of_vms, recorded, set_instance, strategy, vm_world
from tests.support.toolkit.toolkit import NODE, PLAN, ToolkitWorld
from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component, JobType
from upgrade_manager.api.names import component_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    JOBS,
    MIGRATIONS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
)
from upgrade_manager.toolkit.run.errors import StepTimedOut
from upgrade_manager.toolkit.vms.evacuation import budgets_remaining, stop_stranded_vms, vms_remaining

EVACUATION = "kubevirt-evacuation-abcde"
COMMAND = "node pre-drain"


async def migrate(
    world: ToolkitWorld, *, name: str = EVACUATION, phase: str = "Failed", source: str | None = NODE, vm: str = "free"
) -> None:
    annotations = {"kubevirt.io/evacuationMigration": source} if source else {}
    migration = named(name, "default", annotations=annotations, spec={"vmiName": vm}, status={"phase": phase})
    await create(world.client, MIGRATIONS, migration)


async def begin_drain(world: ToolkitWorld) -> None:
    """Create the pre-drain Job of the node; its creation is the beginning of the drain."""
    await asyncio.sleep(5)
    name = component_name(PLAN, Component.NODE_UPGRADE, job_type=JobType.PRE_DRAIN, node=NODE)
    containers = [{"name": "apply", "image": "toolkit"}]
    pod = {"restartPolicy": "Never", "containers": containers}
    await create(world.client, JOBS, named(name, HARVESTER_SYSTEM, spec={"suspend": True, "template": {"spec": pod}}))


async def is_stopped(world: ToolkitWorld) -> bool:
    """Look for stranded VMs once, with the policy Stop; return True if the VM was stopped, which must be recorded."""
    stop = MergePatch({"spec": {"nodeUpgradeOption": {"onMigrationFailure": "Stop"}}})
    await world.client.patch(UPGRADE_PLANS, PLAN, stop)
    await stop_stranded_vms(world.context())
    stopped = await strategy(world, "free") == "Halted"
    assert (await recorded(world) is not None) is stopped
    return stopped


@pytest.mark.parametrize(
    ("migration", "stopped"),
    [
        pytest.param({}, True, id="failed"),
        pytest.param({"source": None}, True, id="without-annotation"),
        pytest.param({"source": "node-1"}, False, id="from-another-node"),
        pytest.param({"name": "by-hand"}, False, id="of-a-user"),
        pytest.param({"name": "kubevirt-workload-update-x"}, False, id="workload-update"),
        pytest.param({"vm": "other"}, False, id="of-another-vm"),
        pytest.param({"phase": "Pending"}, False, id="pending"),
        pytest.param({"phase": "Running"}, False, id="running"),
        pytest.param({"phase": "Succeeded"}, False, id="succeeded"),
        pytest.param({"phase": "Unheard"}, False, id="unknown-phase"),
    ],
)
async def test_vm_with_a_failed_evacuation_is_stopped(tmp_path: Path, migration: dict[str, Any], stopped: bool) -> None:  # noqa: FBT001  # a case
    async with vm_world(tmp_path, FREE, durations={"migration": 1e7}) as world:
        await begin_drain(world)
        await migrate(world, **migration)
        assert await is_stopped(world) is stopped


async def test_migration_before_the_drain_does_not_count(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE) as world:
        await migrate(world)
        await begin_drain(world)
        assert not await is_stopped(world)


async def test_migration_of_an_earlier_instance_does_not_count(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await begin_drain(world)
        await migrate(world)
        await asyncio.sleep(5)
        old = await world.client.get(VIRTUAL_MACHINE_INSTANCES, "free", namespace="default")
        await world.client.delete(VIRTUAL_MACHINE_INSTANCES, "free", namespace="default")
        body = {key: old[key] for key in ("spec", "status")}
        await create(
            world.client, VIRTUAL_MACHINE_INSTANCES, named("free", "default", labels=old["metadata"]["labels"], **body)
        )
        await stop_stranded_vms(world.context())
        assert await recorded(world) is None


async def test_vm_that_is_being_copied_is_not_stopped(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, durations={"migration": 1e7}) as world:
        await begin_drain(world)
        await migrate(world)
        await migrate(world, name="kubevirt-evacuation-fghij", phase="Running")
        assert not await is_stopped(world)


async def test_without_a_job_the_drain_begins_with_the_plan(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE) as world:
        await migrate(world)
        assert await is_stopped(world)


def states(text: str) -> str:
    return text.removeprefix("VMs on node node-0: default/free (").removesuffix(")")


@pytest.mark.parametrize(
    ("change", "state"),
    [
        pytest.param({}, "it has no migration", id="waiting"),
        pytest.param(
            {
                "status": {
                    "conditions": [{"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}]
                }
            },
            "KubeVirt cannot migrate it: DisksNotLiveMigratable. (1) Stop the VM: virtctl stop free -n default "
            "(2) Undo it after the upgrade: virtctl start free -n default",
            id="not-migratable",
        ),
        pytest.param(
            {"spec": {"evictionStrategy": "None"}},
            "its eviction strategy is None. (1) Migrate it: virtctl migrate free -n default "
            "(2) Or stop it: virtctl stop free -n default (3) Undo it after the upgrade: virtctl start free -n default",
            id="eviction-strategy",
        ),
        pytest.param({"metadata": {"finalizers": ["example.com/hold"]}}, "it is stopping", id="deleting"),
    ],
)
async def test_remaining_vm_is_named_with_its_state(tmp_path: Path, change: Object, state: str) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await set_instance(world, "free", change)
        if "metadata" in change:
            await world.client.delete(VIRTUAL_MACHINE_INSTANCES, "free", namespace="default")
        assert states(await vms_remaining(world.context())) == state


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_ended_instance_does_not_count(tmp_path: Path, phase: str) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await set_instance(world, "free", {"status": {"phase": phase}})
        assert await vms_remaining(world.context()) == ""


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        pytest.param({"targetNode": NODE}, True, id="unfinished"),
        pytest.param({"targetNode": NODE, "completed": True}, False, id="completed"),
        pytest.param({"targetNode": NODE, "completed": True, "failed": True}, False, id="failed"),
        pytest.param({"targetNode": NODE, "failed": True}, False, id="failed, not completed"),
        pytest.param({"targetNode": "node-2"}, False, id="to-another-node"),
        pytest.param(None, False, id="no-migration"),
    ],
)
async def test_migration_to_the_node_is_awaited(tmp_path: Path, state: Object | None, waits: bool) -> None:  # noqa: FBT001  # a case
    async with vm_world(tmp_path, {**FREE, "node": "node-1"}, actors=False) as world:
        labels = {"kubevirt.io/migrationTargetNodeName": NODE}
        await set_instance(world, "free", {"metadata": {"labels": labels}, "status": {"migrationState": state}})
        expected = "VMs on node node-0: default/free (it migrates to this node)" if waits else ""
        assert await vms_remaining(world.context()) == expected


async def test_vm_that_has_just_arrived_is_named_once(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        labels = {"kubevirt.io/migrationTargetNodeName": NODE}
        status = {"migrationState": {"targetNode": NODE}}
        await set_instance(world, "free", {"metadata": {"labels": labels}, "status": status})
        assert await vms_remaining(world.context()) == "VMs on node node-0: default/free (it has no migration)"


async def budget(world: ToolkitWorld, name: str, *, owner: str = "") -> None:
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "free", "uid": owner}
    obj = named(name, "default", spec={"minAvailable": 1})
    obj["metadata"]["ownerReferences"] = [reference] if owner else []
    await create(world.client, POD_DISRUPTION_BUDGETS, obj)


async def test_budgets_of_ended_migrations_and_vms_are_awaited(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        instance = await world.client.get(VIRTUAL_MACHINE_INSTANCES, "free", namespace="default")
        await budget(world, "of-a-user")
        await budget(world, "kubevirt-disruption-budget-live", owner=objects.uid(instance))
        assert await budgets_remaining(world.context()) == ""
        await budget(world, f"kubevirt-migration-pdb-{EVACUATION}")
        await budget(world, "kubevirt-disruption-budget-orphan", owner="uid-of-a-deleted-vm")
        assert await budgets_remaining(world.context()) == (
            "PodDisruptionBudgets left over from ended VMs or migrations: default/kubevirt-disruption-budget-orphan, "
            f"default/kubevirt-migration-pdb-{EVACUATION}. If they stay, delete them: "
            "kubectl delete pdb -n default kubevirt-disruption-budget-orphan"
        )


async def test_budget_of_a_deleted_vm_alone_is_awaited(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE, actors=False) as world:
        await budget(world, "kubevirt-disruption-budget-orphan", owner="uid-of-a-deleted-vm")
        assert "default/kubevirt-disruption-budget-orphan." in await budgets_remaining(world.context())


async def test_budget_that_stays_times_out(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE) as world:
        await budget(world, f"kubevirt-migration-pdb-{EVACUATION}")
        with pytest.raises(StepTimedOut, match=r"^wait-for-disruption-budgets: not done after 30 min: PodDisruption"):
            await world.run(COMMAND)
        await world.client.delete(POD_DISRUPTION_BUDGETS, f"kubevirt-migration-pdb-{EVACUATION}", namespace="default")
        await world.run(COMMAND)


async def wipe_taints(world: ToolkitWorld) -> None:
    """Remove the node's taints again and again, as Harvester's node-down controller does with the drain taint."""
    while True:
        await asyncio.sleep(0.01)
        node = await world.client.get(NODES, NODE)
        if objects.items(node, "spec", "taints"):
            await world.client.patch(NODES, NODE, MergePatch({"spec": {"taints": None}}))


async def test_taint_that_another_client_wipes_is_set_again(tmp_path: Path) -> None:
    machines = [{**FREE, "name": f"free-{number}"} for number in range(6)]
    async with vm_world(tmp_path, *machines) as world:
        wiping = asyncio.create_task(wipe_taints(world))
        try:
            await world.run(COMMAND)
        finally:
            wiping.cancel()
        assert NODE not in (await nodes_of_vms(world)).values()
        assert {await strategy(world, f"free-{number}") for number in range(6)} == {"Always"}


@pytest.mark.full
async def test_vm_without_a_target_is_awaited_for_any_time(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FREE) as world:
        taints = [{"key": "example.com/full", "effect": "NoSchedule"}]
        for name in ("node-1", "node-2"):
            await world.client.patch(NODES, name, MergePatch({"spec": {"taints": taints}}))
        run = asyncio.create_task(world.run(COMMAND, poll=60))
        await asyncio.sleep(24 * 3600)
        assert not run.done()
        assert await strategy(world, "free") == "Always"
        text = r"wait-for-evacuation: VMs on node node-0: default/free \(migration kubevirt-evacuation-\w+ is \w+\)"
        assert re.fullmatch(text, world.steps.waits[-1])
        for name in ("node-1", "node-2"):
            await world.client.patch(NODES, name, MergePatch({"spec": {"taints": None}}))
        await run
        assert NODE not in (await nodes_of_vms(world)).values()
