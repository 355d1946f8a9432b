from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.cluster.vm_world import (
    FIXED,
    FREE,
    break_volumes,
    messages,
    nodes_of_vms,
    recorded,
    strategy,
    vm_world,
)
from tests.support.managers.sweep import Sweep
from tests.support.toolkit.toolkit import NODE, PLAN, ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import count_points, run_killed
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.api.keys import ANNOTATION_ON_MIGRATION_FAILURE, HARVESTER_SYSTEM
from upgrade_manager.api.names import ledger_config_map
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, NODES, UPGRADE_PLANS, VIRTUAL_MACHINES
from upgrade_manager.toolkit.run.errors import StepFailed, StepTimedOut

COMMAND = "node pre-drain"
DROP_INS = "/run/systemd/system/rancher-system-agent.service.d"
MAX_PODS = "/etc/rancher/rke2/config.yaml.d/99-max-pods.yaml"


async def assert_ready(world: ToolkitWorld) -> None:
    """Check that the node can be drained, and that nothing of it is lost."""
    assert NODE not in (await nodes_of_vms(world)).values()
    taints = objects.spec(await world.client.get(NODES, NODE))["taints"]
    assert [taint["key"] for taint in taints] == ["kubevirt.io/drain"]
    assert not world.tree.exists(DROP_INS)
    assert world.tree.read(MAX_PODS) == 'kubelet-arg+:\n- "max-pods=200"\n'
    assert world.programs.state.unit_drop_ins == {"rancher-system-agent.service": []}


async def test_golden_run(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        listing = await transcript(world, COMMAND)
        assert listing == golden("pre-drain", listing)
        await assert_ready(world)
        assert await recorded(world) == {NODE: "default/fixed"}
        assert await strategy(world, "fixed") == "Halted"
        assert await strategy(world, "elsewhere") == "Always"
        assert await messages(world, "RestoreVMConfigMapCreated") == [
            "ConfigMap harvester-system/demo-restore-vm created"
        ]
        assert await messages(world, "VMShutdownCompleted") == [
            "Shutdown completed for 1 VM(s) on node node-0, success: 1, failed: 0"
        ]


async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with vm_world(tmp_path / "whole") as world:
        points = await count_points(world, COMMAND)
        assert points > 10
    for at in sweep.points(0, points - 1, stride=1):
        async with vm_world(tmp_path / str(at)) as world:
            where = await run_killed(world, COMMAND, at=at)
            assert where
            was_stopped = await strategy(world, "fixed") == "Halted"
            listing = await transcript(world, COMMAND)
            assert ("/virtualmachines/fixed/stop" in listing) is not was_stopped, where
            await assert_ready(world)
            assert await recorded(world) == {NODE: "default/fixed"}, where


@pytest.mark.full
async def test_killed_at_any_time_no_vm_is_lost(tmp_path: Path, sweep: Sweep) -> None:
    """A VM that stops slowly is found by no later run, once it is down."""
    for at in sweep.points(0, 30, stride=1):
        async with vm_world(tmp_path / str(at), FIXED, {**FIXED, "name": "other"}, durations={"pod_stop": 70}) as world:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(at * 0.2):
                    await world.run(COMMAND)
            await world.run(COMMAND)
            await assert_ready(world)
            assert sorted((await recorded(world) or {})[NODE].split(",")) == ["default/fixed", "default/other"], at


async def test_second_run_changes_nothing(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        await world.run(COMMAND)
        listing = await transcript(world, COMMAND)
        assert "    api" not in listing
        assert "    host" not in listing
        assert "    file" not in listing


async def test_without_restore_vm_vms_are_stopped_and_not_recorded(tmp_path: Path) -> None:
    async with vm_world(tmp_path, restores=False) as world:
        await world.run(COMMAND)
        await assert_ready(world)
        assert await recorded(world) is None
        assert await strategy(world, "fixed") == "Halted"
        assert await messages(world, "VMShutdownCompleted") == [
            "Shutdown completed for 1 VM(s) on node node-0, success: 1, failed: 0"
        ]


async def test_only_node_for_vms_stops_all(tmp_path: Path) -> None:
    machines = [FIXED, FREE]
    async with vm_world(
        tmp_path, *machines, scenario="witness", nodes={"count": 3, "management": 3, "witness": [1, 2]}
    ) as world:
        await world.run(COMMAND)
        await assert_ready(world)
        assert await recorded(world) == {NODE: "default/fixed,default/free"}


async def test_migration_that_fails_stops_and_records_the_vm(tmp_path: Path) -> None:
    async with vm_world(tmp_path, {**FREE, "failing_migrations": 10}) as world:
        await own_toolkit(world, "Stop")
        await world.run(COMMAND)
        await assert_ready(world)
        assert await strategy(world, "free") == "Halted"
        assert await recorded(world) == {NODE: "default/free"}


async def own_toolkit(world: ToolkitWorld, policy: str) -> None:
    """Record our toolkit, with that policy."""
    image = {"toolkitImage": {"repository": "me/own", "tag": "v9", "kind": "own"}}
    await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"status": image}), subresource="status")
    option = {"nodeUpgradeOption": {"onMigrationFailure": policy}}
    await world.client.patch(UPGRADE_PLANS, PLAN, MergePatch({"spec": option}))


async def in_ledger(world: ToolkitWorld) -> list[str]:
    """Return the VMs that were recorded before their stop."""
    found = await world.client.find(CONFIG_MAPS, ledger_config_map(PLAN), namespace=HARVESTER_SYSTEM)
    return sorted(key.removeprefix("StoppedVM.default.") for key in objects.mapping(found, "data"))


@pytest.mark.rule("nodes: the toolkit's Jobs record each VM in the ConfigMap PLAN-ledger before they stop it")
@pytest.mark.full
async def test_killed_at_every_effect_each_stop_is_recorded(tmp_path: Path, sweep: Sweep) -> None:
    machines = [FIXED, {**FREE, "failing_migrations": 1000}]
    async with vm_world(tmp_path / "whole", *machines) as world:
        await own_toolkit(world, "Stop")
        points = await count_points(world, COMMAND)
    for at in sweep.points(0, points - 1, stride=1):
        async with vm_world(tmp_path / str(at), *machines) as world:
            await own_toolkit(world, "Stop")
            where = await run_killed(world, COMMAND, at=at)
            off = [name for name in ("fixed", "free") if await strategy(world, name) == "Halted"]
            assert set(off) <= set(await in_ledger(world)), where
            assert set(off) <= {
                one.rpartition("/")[2] for one in (await recorded(world) or {}).get(NODE, "").split(",")
            }
            await world.run(COMMAND)
            await assert_ready(world)
            assert await in_ledger(world) == ["fixed", "free"], where


@pytest.mark.full
@pytest.mark.rule("nodes: a VM whose migration fails is stopped by its user, by its annotation or by Stop alone")
async def test_killed_while_it_waits_the_next_run_waits_on(tmp_path: Path) -> None:
    async with vm_world(tmp_path, {**FREE, "failing_migrations": 1000}) as world:
        await own_toolkit(world, "Wait")
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(900):
                    await world.run(COMMAND)
            assert (await strategy(world, "free"), await in_ledger(world)) == ("Always", [])
        await own_toolkit(world, "Stop")
        async with asyncio.timeout(60):
            await world.run(COMMAND)
        assert (await strategy(world, "free"), await in_ledger(world)) == ("Halted", ["free"])


@pytest.mark.parametrize("value", ["stop", "", "Never"])
@pytest.mark.full
async def test_annotation_that_is_not_valid_stops_no_vm(tmp_path: Path, value: str) -> None:
    async with vm_world(tmp_path, {**FREE, "failing_migrations": 1000}) as world:
        await own_toolkit(world, "Stop")
        patch = MergePatch({"metadata": {"annotations": {ANNOTATION_ON_MIGRATION_FAILURE: value}}})
        await world.client.patch(VIRTUAL_MACHINES, "free", patch, namespace="default")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(900):
                await world.run(COMMAND)
        assert await strategy(world, "free") == "Always"
        (found,) = await messages(world, "AnnotationInvalid")
        assert found.endswith(
            f"is neither Wait nor Stop, so that the upgrade does not stop these VMs: default/free ({value!r})"
        )


async def test_degraded_volume_times_out_before_a_vm_is_stopped(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, actors=False) as world:
        names = await break_volumes(world)
        with pytest.raises(StepTimedOut) as error:
            await world.run(COMMAND, poll=600.0)
        begin, _, end = str(error.value).partition(". For the first one: (1) ")
        assert begin == (
            "wait-for-volumes: not done after 720 min: 1 volumes: default/fixed-disk-0 "
            f"(volume {names[0]}: its robustness is degraded instead of healthy)"
        )
        assert end.endswith(f"in a shell on node {NODE}: touch /usr/local/harvester-upgrade/skip-{names[0]}")
        assert await strategy(world, "fixed") == "Always"
        assert not objects.spec(await world.client.get(NODES, NODE)).get("taints")


async def test_system_agent_that_fails_ends_the_command(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        world.programs.state.failing = {"systemctl restart": "Job for rancher-system-agent.service failed"}
        with pytest.raises(StepFailed, match=r"^restore-system-agent: systemctl returned 1: Job for rancher-sys"):
            await world.run(COMMAND)
        assert await strategy(world, "fixed") == "Always"
        world.programs.state.failing = {}
        await world.run(COMMAND)
        await assert_ready(world)
