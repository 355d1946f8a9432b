"""Harvester's controllers of Nodes: the drain taint of a Ready node, and the cordon of the last schedulable one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hack.scenario import load
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client

DRAIN = {"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}
OTHER = {"key": "example.com/a", "effect": "NoSchedule"}
LAST = "cordon on the last available node"


async def patch(client: Client, node: str, **spec: Any) -> None:
    await client.patch(NODES, node, MergePatch({"spec": spec}))


async def taints(client: Client, node: str) -> list[str]:
    found = objects.spec(await client.get(NODES, node)).get("taints") or []
    return [taint["key"] for taint in found if not taint["key"].startswith("node.kubernetes.io/")]


@pytest.mark.parametrize(
    ("runs", "is_up", "kept"),
    [
        pytest.param(True, True, ["example.com/a"], id="ready"),
        pytest.param(True, False, ["kubevirt.io/drain", "example.com/a"], id="not ready"),
        pytest.param(False, True, ["kubevirt.io/drain", "example.com/a"], id="left out"),
    ],
)
async def test_node_down_controller_takes_the_drain_taint(*, runs: bool, is_up: bool, kept: list[str]) -> None:
    faults = {"lost_on_reboot": ["node-2"]}
    scenario = load("three-nodes").changed(harvester={"node_down": runs}, node_faults=faults)
    async with Simulation(scenario) as simulation:
        client = simulation.client()
        if not is_up:
            simulation.hosts.power_off("node-2")
            await asyncio.sleep(5)
        await patch(client, "node-2", taints=[DRAIN, OTHER])
        await asyncio.sleep(5)
        assert await taints(client, "node-2") == kept


async def test_last_schedulable_node_cannot_be_cordoned() -> None:
    async with Simulation("three-nodes") as simulation:
        client = simulation.client()
        await patch(client, "node-0", unschedulable=True)
        maintained = MergePatch({"metadata": {"annotations": {"harvesterhci.io/maintain-status": "completed"}}})
        await client.patch(NODES, "node-1", maintained)
        await asyncio.sleep(1)
        with pytest.raises(Invalid, match=LAST):
            await patch(client, "node-2", unschedulable=True)
        await patch(client, "node-0", unschedulable=None)
        await asyncio.sleep(1)
        await patch(client, "node-2", unschedulable=True)
