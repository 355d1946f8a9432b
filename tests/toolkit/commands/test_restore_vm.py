from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.cluster.vm_world import FIXED, LIST, messages, nodes_of_vms, recorded, strategy, vm_world
from tests.support.managers.sweep import Sweep
from tests.support.random_runs.randomness import Highest, Lowest
from tests.support.toolkit.toolkit import NODE, PLAN, ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import count_points, run_killed
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Forbidden, NotFound, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, KUBEVIRTS, UPGRADE_PLANS
from upgrade_manager.toolkit.run.errors import StepFailed, StepTimedOut

NOT_RESTARTED = (
    "Job harvester-system/demo-node-upgrade-restore-vm-node-0: restarting VMs failed; the upgrade continues. "
    "Start the VMs that are off. Cause: "
)
COMMAND = "restore-vm"
OTHER: dict[str, Any] = {**FIXED, "name": "other"}


async def stop(world: ToolkitWorld) -> None:
    """Stop the node's VMs as pre-drain does."""
    await world.run("vm-live-migrate-detector", shutdown=True)


async def record(world: ToolkitWorld, listed: str) -> None:
    body = {"metadata": {"name": LIST, "namespace": HARVESTER_SYSTEM}, "data": {NODE: listed}}
    await world.client.create(CONFIG_MAPS, body)


async def set_kubevirt(world: ToolkitWorld, **status: Any) -> None:
    patch = MergePatch({"status": status})
    await world.client.patch(KUBEVIRTS, "kubevirt", patch, namespace=HARVESTER_SYSTEM, subresource="status")


async def test_golden_run(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, OTHER) as world:
        await stop(world)
        listing = await transcript(world, COMMAND)
        assert listing == golden("restore-vm", listing)
        await asyncio.sleep(60)
        assert set(await nodes_of_vms(world)) == {"fixed", "other"}
        assert await messages(world, "RestoreVMCompleted") == [
            "Restored 2 VMs for node node-0 during upgrade demo, success: 2, failed: 0"
        ]


async def test_killed_at_every_effect_the_next_run_ends_the_same(tmp_path: Path, sweep: Sweep) -> None:
    async with vm_world(tmp_path / "whole", FIXED, OTHER) as world:
        await stop(world)
        points = await count_points(world, COMMAND)
    for at in sweep.points(0, points - 1, stride=1):
        async with vm_world(tmp_path / str(at), FIXED, OTHER) as world:
            await stop(world)
            where = await run_killed(world, COMMAND, at=at)
            started = [name for name in ("fixed", "other") if await strategy(world, name) == "Always"]
            listing = await transcript(world, COMMAND)
            assert where
            assert not any(f"/{name}/start" in listing for name in started), where
            await asyncio.sleep(60)
            assert set(await nodes_of_vms(world)) == {"fixed", "other"}, where


@pytest.mark.parametrize("listed", [None, "", " , ,"])
async def test_no_listed_vm_needs_no_kubevirt(tmp_path: Path, listed: str | None) -> None:
    async with vm_world(tmp_path, actors=False) as world:
        if listed is not None:
            await record(world, listed)
        await world.client.delete(KUBEVIRTS, "kubevirt", namespace=HARVESTER_SYSTEM)
        await world.run(COMMAND)
        assert await messages(world, "RestoreVMCompleted") == [
            "Restored 0 VMs for node node-0 during upgrade demo, success: 0, failed: 0"
        ]


@pytest.mark.parametrize("strategy_before", ["Always", "Once", "Manual", "RerunOnFailure"])
async def test_each_run_strategy_is_started(tmp_path: Path, strategy_before: str) -> None:
    async with vm_world(tmp_path, {**FIXED, "run_strategy": strategy_before}) as world:
        await stop(world)
        assert await nodes_of_vms(world) == {}
        await world.run(COMMAND)
        await asyncio.sleep(60)
        assert set(await nodes_of_vms(world)) == {"fixed"}
        assert await strategy(world, "fixed") == ("Always" if strategy_before == "Once" else strategy_before)


async def test_running_vm_is_a_success_and_an_absent_one_is_skipped(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await record(world, "default/fixed, default/absent,default/fixed")
        listing = await transcript(world, COMMAND)
        assert "api" not in listing
        assert await messages(world, "RestoreVMCompleted") == [
            "Restored 1 VMs for node node-0 during upgrade demo, success: 1, failed: 0, not found: default/absent"
        ]


@pytest.mark.parametrize(("random", "seconds"), [(Lowest(), 25.0), (Highest(), 27.5)])
async def test_refused_starts_are_retried_with_jitter(tmp_path: Path, random: Random, seconds: float) -> None:
    async with vm_world(tmp_path, {**FIXED, "failing_starts": 5}) as world:
        await stop(world)
        began = loop_time()
        await world.run(COMMAND, random=random)
        assert loop_time() - began == pytest.approx(seconds, abs=0.5)
        await asyncio.sleep(60)
        assert set(await nodes_of_vms(world)) == {"fixed"}


async def test_start_that_is_always_refused_fails_after_all_others(tmp_path: Path) -> None:
    async with vm_world(tmp_path, {**FIXED, "failing_starts": 1000}, OTHER) as world:
        await stop(world)
        with pytest.raises(StepFailed) as error:
            await world.run(COMMAND)
        assert str(error.value).startswith("start-vms: success: 1, failed: 1: default/fixed: put /apis/subresources.")
        assert str(error.value).endswith("Internal error occurred: unable to start VM fixed")
        assert await messages(world, "RestoreVMFailed") == [f"{NOT_RESTARTED}{error.value}"]
        assert await strategy(world, "other") == "Always"


@pytest.mark.parametrize("listed", ["../../x", "default", "default/a/b", "a b/c", f"default/{'x' * 300}"])
async def test_invalid_names_are_failures(tmp_path: Path, listed: str) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await stop(world)
        patch = MergePatch({"data": {NODE: f"{listed},default/fixed"}})
        await world.client.patch(CONFIG_MAPS, LIST, patch, namespace=HARVESTER_SYSTEM)
        with pytest.raises(StepFailed, match=r"start-vms: success: 1, failed: 1: .* is not a valid namespace/name"):
            await world.run(COMMAND)
        assert await strategy(world, "fixed") == "Always"


async def test_vm_that_still_stops_is_started_afterwards(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, durations={"pod_stop": 600}) as world:
        await record(world, "default/fixed")
        path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/fixed/stop"
        await world.client.raw("PUT", path, body={})
        await world.run(COMMAND)
        await asyncio.sleep(60)
        assert await strategy(world, "fixed") == "Always"
        assert set(await nodes_of_vms(world)) == {"fixed"}


async def test_list_is_read_after_its_plan_was_deleted(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await stop(world)
        await world.client.delete(UPGRADE_PLANS, PLAN)
        await world.run(COMMAND)
        assert await strategy(world, "fixed") == "Always"


@pytest.mark.parametrize(("is_own", "expected"), [(True, "Always"), (False, "Halted")], ids=["its own", "another's"])
async def test_list_of_another_plan_starts_no_vm(tmp_path: Path, expected: str, *, is_own: bool) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await stop(world)
        uid = objects.uid(await world.client.get(UPGRADE_PLANS, PLAN)) if is_own else "of-an-earlier-plan"
        await world.run(COMMAND, plan_uid=uid)
        assert await strategy(world, "fixed") == expected


@pytest.mark.parametrize(
    ("status", "missing"),
    [
        pytest.param({"phase": "Deploying"}, " is not deployed; its phase is Deploying", id="phase"),
        pytest.param({"phase": None}, " is not deployed; its phase is not set", id="no-phase"),
        pytest.param(
            {"conditions": [{"type": "Available", "status": "False", "message": "virt-api is down"}]},
            ": Available is False: virt-api is down",
            id="not-available",
        ),
    ],
)
async def test_kubevirt_that_stays_away_times_out(tmp_path: Path, status: dict[str, Any], missing: str) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await stop(world)
        await set_kubevirt(world, **status)
        with pytest.raises(StepTimedOut) as error:
            await world.run(COMMAND)
        cause = f"wait-for-kubevirt: not done after 30 min: KubeVirt harvester-system/kubevirt{missing}"
        assert str(error.value) == cause
        assert await messages(world, "RestoreVMFailed") == [f"{NOT_RESTARTED}{cause}"]
        assert await strategy(world, "fixed") == "Halted"


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (Transient("get healthz: 503 ServiceUnavailable"), "get healthz: 503 ServiceUnavailable"),
        (NotFound("get healthz: 404"), "the API server does not serve subresources.kubevirt.io; check APIService"),
    ],
)
async def test_api_that_stays_away_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Exception, missing: str
) -> None:
    async with vm_world(tmp_path, FIXED, actors=False) as world:
        await record(world, "default/fixed")

        async def refuse(*_: Any, **__: Any) -> None:
            raise answer

        monkeypatch.setattr(world.client, "raw", refuse)
        with pytest.raises(StepTimedOut, match="wait-for-kubevirt: not done after 30 min: ") as error:
            await world.run(COMMAND)
        assert missing in str(error.value)


async def test_kubevirt_that_returns_is_awaited(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await stop(world)
        await set_kubevirt(world, phase="Deploying")
        run = asyncio.create_task(world.run(COMMAND))
        await asyncio.sleep(1700)
        assert await strategy(world, "fixed") == "Halted"
        await set_kubevirt(world, phase="Deployed")
        await run
        assert await strategy(world, "fixed") == "Always"


async def test_forbidden_start_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await stop(world)
        raw, puts = world.client.raw, 0

        async def refuse(method: str, path: str, **options: Any) -> Any:
            nonlocal puts
            if method == "GET":
                return await raw(method, path, **options)
            puts += 1
            raise Forbidden("put start: 403 Forbidden")

        monkeypatch.setattr(world.client, "raw", refuse)
        with pytest.raises(StepFailed, match="start-vms: success: 0, failed: 1: default/fixed: put start: 403"):
            await world.run(COMMAND)
        assert puts == 1
        assert await recorded(world) == {NODE: "default/fixed"}
        assert await strategy(world, "fixed") == "Halted"
