"""VMs that were stopped for a node that leaves for good: they are started elsewhere, or named wherever a user reads."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hack import virtual_time
from hack.simulation import Simulation
from tests.pipeline.node_upgrade.test_vm_restore_runs import JOB, OFF, RESTORING, cluster, instance_phase, restored
from tests.support.managers.upgrade import UpgradeRun, condition
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import report
from upgrade_manager.display.tables import display
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES, VIRTUAL_MACHINE_INSTANCES

pytestmark = pytest.mark.full


@pytest.mark.rule("nodes: a success names the VMs of a node that left, and counts the nodes that are upgraded")
@pytest.mark.parametrize("restarts", [True, False], ids=["restarted", "one manager"])
@pytest.mark.thin
async def test_node_that_left_is_not_counted_and_its_vms_are_named(*, restarts: bool) -> None:
    async with Simulation(cluster()) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan()
            await stage.until_node("PostDraining", node="node-1")
            await remove_node(stage, "node-1")
            if restarts:
                await stage.until_plan(lambda plan: "NodeLeft" in kinds(plan))
                await life.kill()
            else:
                await stage.succeed()
        async with stage.life(seed="successor"):
            plan = await stage.succeed()
        text = f"Node node-1 left during the upgrade. {OFF}: default/fixed"
        assert condition(plan, "Progressing")[2].endswith(f"(2 nodes). {text}")
        assert [event["count"] for event in await stage.events("NodeLeft")] == [1]
        off = [(event["count"], event["message"]) for event in await stage.events("VMsOff")]
        assert off == [(1, f"{OFF}: default/fixed")]
        status, page = await displayed(stage)
        assert f"left to do   {text}" in status
        assert f"<strong>What is left to do</strong>{text}" in page


@pytest.mark.rule("nodes: with restoreVM the VMs of a node that left are started on other nodes")
@pytest.mark.parametrize("restarts", [True, False], ids=["restarted", "one manager"])
@pytest.mark.thin
async def test_vms_of_a_node_that_left_are_started_elsewhere(*, restarts: bool) -> None:
    async with Simulation(cluster()) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan(RESTORING)
            await stage.until_node("PostDraining", node="node-1")
            await remove_node(stage, "node-1")
            await stage.until_plan(lambda plan: "NodeLeft" in kinds(plan))
            if restarts:
                await life.kill()
            else:
                await stage.succeed()
        async with stage.life(seed="successor"):
            plan = await stage.succeed()
        assert condition(plan, "Progressing")[2].endswith("(2 nodes). Node node-1 left during the upgrade")
        assert await stage.events("VMsOff") == []
        assert await instance_phase(stage) == "Running"
        found = await stage.client.get(VIRTUAL_MACHINE_INSTANCES, "fixed", namespace="default")
        assert objects.status(found)["nodeName"] in {"node-0", "node-2"}
        assert restored(stage).count(JOB) == 1


async def remove_node(stage: UpgradeRun, node: str) -> None:
    """Let a user remove the node for good."""
    await stage.client.delete(MACHINES, await machine_of(stage, node), namespace="fleet-local")
    await stage.client.delete(NODES, node)


def kinds(plan: Object) -> list[str]:
    return [one["kind"] for one in objects.status(plan).get("ledger") or []]


async def displayed(stage: UpgradeRun) -> tuple[str, str]:
    """Return the plan's status and report, as a user reads them."""
    plan, events, now = await stage.plan(), await stage.events(), virtual_time.virtual_now()
    console = Console(file=io.StringIO(), width=1000, record=True)
    console.print(display(build(plan, events, now=now)))
    return console.export_text(), to_html(report(plan, events, [], [], now=now))


async def machine_of(stage: UpgradeRun, node: str) -> str:
    machines = (await stage.client.list(MACHINES, namespace="fleet-local")).items
    return next(objects.name(one) for one in machines if objects.status(one)["nodeRef"]["name"] == node)
