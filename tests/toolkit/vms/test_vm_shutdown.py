from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.cluster.vm_world import (
    ELSEWHERE,
    FIXED,
    FREE,
    nodes_of_vms,
    recorded,
    set_instance,
    strategy,
    vm_world,
)
from tests.support.random_runs.randomness import Highest, Lowest
from tests.support.toolkit.toolkit import NODE, PLAN
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, UPGRADE_PLANS
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Action
from upgrade_manager.toolkit.vms.vm_shutdown import (
    immovable_vms,
    shut_down,
    stop_all_vms,
    stop_immovable_vms,
    vms_of_node,
    vms_running,
)


async def test_all_vms_are_stopped_and_recorded(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, FREE, ELSEWHERE) as world:
        await set_instance(world, "elsewhere", {"metadata": {"labels": {"kubevirt.io/nodeName": None}}})
        assert await vms_running(world.context()) == "3 VMs run: default/elsewhere, default/fixed, default/free"
        await stop_all_vms(world.context())
        assert await nodes_of_vms(world) == {}
        assert await vms_running(world.context()) == ""
        assert await recorded(world) == {NODE: "default/elsewhere,default/fixed,default/free"}


@pytest.mark.parametrize(("random", "poll"), [(Lowest(), 5.0), (Highest(), 5.5)])
async def test_polls_of_stopping_vms_have_jitter(tmp_path: Path, random: Random, poll: float) -> None:
    async with vm_world(tmp_path, FIXED, durations={"pod_stop": 600}) as world:
        began = loop_time()
        await stop_immovable_vms(world.context(random=random))
        polls = (loop_time() - began) / poll
        assert polls > 10
        assert polls == pytest.approx(round(polls), abs=0.05)


async def test_node_that_is_cordoned_meanwhile_adds_no_vm(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, FREE, durations={"pod_stop": 600}) as world:
        run = asyncio.create_task(stop_immovable_vms(world.context()))
        await asyncio.sleep(20)
        for name in ("node-1", "node-2"):
            await world.client.patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
        await run
        assert await strategy(world, "fixed") == "Halted"
        assert await strategy(world, "free") == "Always"


async def test_api_server_that_is_away_for_a_while_loses_no_vm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with vm_world(tmp_path, FIXED, durations={"pod_stop": 600}) as world:
        run = asyncio.create_task(stop_immovable_vms(world.context()))
        await asyncio.sleep(20)
        with monkeypatch.context() as patched:

            async def refuse(*_: Any, **__: Any) -> None:
                raise Transient("list virtualmachineinstances: connection refused")

            for verb in ("list", "get", "raw"):
                patched.setattr(world.client, verb, refuse)
            await asyncio.sleep(600)
        await run
        assert await nodes_of_vms(world) == {}
        assert await recorded(world) == {NODE: "default/fixed"}


@pytest.mark.rule("control: a Job whose plan was deleted or replaced stops no VM, and does not reboot from a hold")
@pytest.mark.parametrize("stop", [stop_all_vms, stop_immovable_vms])
@pytest.mark.parametrize(
    "changes", [pytest.param({"plan": "absent"}, id="deleted"), pytest.param({"plan_uid": "earlier"}, id="replaced")]
)
async def test_job_without_its_plan_stops_no_vm(tmp_path: Path, stop: Action, changes: dict[str, Any]) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        with pytest.raises(StepFailed, match=r"^UpgradePlan \w+ was deleted, so that its Job stops no VM of node"):
            await stop(world.context(**changes))
        assert (await strategy(world, "fixed"), await recorded(world)) == ("Always", None)


async def test_stop_that_was_requested_goes_on_without_the_plan(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, durations={"pod_stop": 600}) as world:
        run = asyncio.create_task(stop_immovable_vms(world.context()))
        await asyncio.sleep(20)
        await world.client.delete(UPGRADE_PLANS, PLAN)
        await run
        assert await nodes_of_vms(world) == {}


async def test_detector_without_a_plan_stops_vms(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await shut_down(world.context(plan=""), immovable_vms, of=vms_of_node, restores=False)
        assert await strategy(world, "fixed") == "Halted"
