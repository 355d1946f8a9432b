"""VMs that users' PodDisruptionBudgets protect; on the real API server its own disruption controller counts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.cluster.launchers import launch, protect, set_least
from tests.support.cluster.vm_world import FIXED, set_instance, strategy, vm_world
from tests.support.toolkit.toolkit import NODE, PLAN, ToolkitWorld
from upgrade_manager.api.keys import ANNOTATION_FORBIDDEN_STOPS, HARVESTER_SYSTEM, Component, JobType
from upgrade_manager.api.names import component_name, ledger_config_map
from upgrade_manager.facts.forbidden_stops import read_report
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from upgrade_manager.toolkit.vms import vm_stop
from upgrade_manager.toolkit.vms.vm_shutdown import stop_immovable_vms

JOB = component_name(PLAN, Component.NODE_UPGRADE, job_type=JobType.PRE_DRAIN, node=NODE)
OTHER = {**FIXED, "name": "other"}


async def begin(world: ToolkitWorld, *names: str, least: int) -> None:
    """Create the Job, launcher Pods and their budget, with our toolkit recorded."""
    containers = [{"name": "apply", "image": "toolkit"}]
    pod = {"restartPolicy": "Never", "containers": containers}
    await create(world.client, JOBS, named(JOB, HARVESTER_SYSTEM, spec={"suspend": True, "template": {"spec": pod}}))
    image = {"toolkitImage": {"repository": "me/own", "tag": "v9", "kind": "own"}}
    await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"status": image}), subresource="status")
    for name in names:
        await launch(world.client, name, app="db", node=NODE)
    await protect(world.client, "db", least=least, app="db")


async def reported(world: ToolkitWorld) -> tuple[str, ...]:
    """Return the VMs that the Job names as protected."""
    job = await world.client.get(JOBS, JOB, namespace=HARVESTER_SYSTEM)
    found = read_report(objects.annotations_of(job).get(ANNOTATION_FORBIDDEN_STOPS))
    return found[1] if found else ()


async def entries(world: ToolkitWorld) -> list[str]:
    """Return the VMs that the ledger has recorded."""
    found = await world.client.find(CONFIG_MAPS, ledger_config_map(PLAN), namespace=HARVESTER_SYSTEM)
    return sorted(objects.mapping(found, "data")) if found else []


async def wait(seconds: float = 30.0) -> None:
    await asyncio.sleep(seconds)


@pytest.mark.full
@pytest.mark.rule("nodes: no VM is stopped against a user's PodDisruptionBudget, which KubeVirt's own are not")
async def test_protected_vm_runs_until_its_budget_permits(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, restores=False) as world:
        await begin(world, "fixed", least=1)
        run = asyncio.create_task(stop_immovable_vms(world.context(job=JOB)))
        # Longer than a VM may take to stop, which begins only once it may.
        await wait(2 * 3600)
        assert await strategy(world, "fixed") == "Always"
        assert (await reported(world), await entries(world)) == (("default/fixed",), [])
        await set_least(world.client, "db", 0)
        await asyncio.wait_for(run, 60)
        assert await strategy(world, "fixed") == "Halted"
        assert (await reported(world), await entries(world)) == ((), ["StoppedVM.default.fixed"])


async def test_budget_that_permits_one_stop_permits_no_second(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, OTHER, restores=False, durations={"pod_stop": 600}) as world:
        await begin(world, "fixed", "other", least=1)
        await wait(5)
        run = asyncio.create_task(stop_immovable_vms(world.context(job=JOB)))
        await wait(20)
        # The first VM stops for a minute, and its Pod counts as healthy until then.
        states = {name: await strategy(world, name) for name in ("fixed", "other")}
        assert sorted(states.values()) == ["Always", "Halted"]
        await wait(600)
        assert {name: await strategy(world, name) for name in ("fixed", "other")} == states
        assert await reported(world) == tuple(f"default/{name}" for name in states if states[name] == "Always")
        await set_least(world.client, "db", 0)
        await asyncio.wait_for(run, 600)


async def test_vm_that_its_user_stops_ends_the_wait(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, restores=False) as world:
        await begin(world, "fixed", least=1)
        run = asyncio.create_task(stop_immovable_vms(world.context(job=JOB)))
        await wait()
        await world.client.delete(VIRTUAL_MACHINE_INSTANCES, "fixed", namespace="default")
        await stop_by_hand(world)
        await asyncio.wait_for(run, 60)
        assert await entries(world) == []


async def stop_by_hand(world: ToolkitWorld) -> None:
    """Let the VM be off, as after its user's `virtctl stop`."""
    await world.client.patch(
        VIRTUAL_MACHINES, "fixed", MergePatch({"spec": {"runStrategy": "Halted"}}), namespace="default"
    )


async def test_report_keeps_its_time(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, OTHER, restores=False) as world:
        await begin(world, "fixed", least=1)
        times = []
        run = asyncio.create_task(stop_immovable_vms(world.context(job=JOB)))
        for _ in range(3):
            await wait()
            job = await world.client.get(JOBS, JOB, namespace=HARVESTER_SYSTEM)
            times.append(objects.annotations_of(job)[ANNOTATION_FORBIDDEN_STOPS])
        assert len(set(times)) == 1
        run.cancel()


async def test_instance_without_a_machine_is_not_recorded(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, restores=False, actors=False) as world:
        await begin(world, "fixed", least=0)
        await set_instance(world, "fixed", {"metadata": {"ownerReferences": None}})
        await world.client.delete(VIRTUAL_MACHINES, "fixed", namespace="default")
        (instance,) = (await world.client.list(VIRTUAL_MACHINE_INSTANCES)).items
        context = world.context(job=JOB)
        stopped = await vm_stop.stop(context, await vm_stop.read(context, [instance]), restores=False)
        assert [text.partition(".")[0] for text in stopped.running.values()] == ["it has no VirtualMachine"]
        assert (stopped.is_forbidden, await entries(world)) == (False, [])
