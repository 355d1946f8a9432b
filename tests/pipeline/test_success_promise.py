"""The check of what a success implies: each broken clause is found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hack.scenario import load
from hack.simulation import Simulation
from tests.support.managers.healthy_run import healthy_run
from tests.support.managers.success_promise import SuccessPromise
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.api.keys import FLEET_LOCAL, RKE_PRE_DRAIN
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    LONGHORN_SETTINGS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    VIRTUAL_MACHINES,
)

pytestmark = pytest.mark.sampled

Break = Callable[[UpgradeRun], Awaitable[None]]
#: Nodes that run the release, as after an upgrade.
UPGRADED = load("three-nodes").changed(software={"harvester": "v1.8.0", "kubernetes": "v1.35.2+rke2r1"})
OPTIONS = '{"preDrainHooks":[{"annotation":"management.harvesterhci.io/pre-hook"}]}'


async def node(stage: UpgradeRun, *, subresource: str = "", **fields: Any) -> None:
    await stage.client.patch(NODES, "node-1", MergePatch(fields), subresource=subresource)


async def other_os(stage: UpgradeRun) -> None:
    await node(stage, subresource="status", status={"nodeInfo": {"osImage": "Harvester v1.7.1"}})


async def other_kubernetes(stage: UpgradeRun) -> None:
    await node(stage, subresource="status", status={"nodeInfo": {"kubeletVersion": "v1.34.3+rke2r1"}})


async def not_ready(stage: UpgradeRun) -> None:
    await node(stage, subresource="status", status={"conditions": [{"type": "Ready", "status": "False"}]})


async def cordoned(stage: UpgradeRun) -> None:
    await node(stage, spec={"unschedulable": True})


async def tainted(stage: UpgradeRun) -> None:
    await node(stage, spec={"taints": [{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]})


async def machine_off(stage: UpgradeRun) -> None:
    halted = MergePatch({"spec": {"runStrategy": "Halted"}})
    await stage.client.patch(VIRTUAL_MACHINES, "vm-1", halted, namespace="default")
    await asyncio.sleep(60)


async def interval(stage: UpgradeRun) -> None:
    name = "replica-replenishment-wait-interval"
    await stage.client.patch(LONGHORN_SETTINGS, name, MergePatch({"value": "1800"}), namespace="longhorn-system")


async def descheduler(stage: UpgradeRun) -> None:
    disabled = MergePatch({"spec": {"enabled": False}})
    await stage.client.patch(ADDONS, "descheduler", disabled, namespace="kube-system")


async def strategy(stage: UpgradeRun) -> None:
    changed = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": {"workerConcurrency": "7"}}}})
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", changed, namespace=FLEET_LOCAL)


async def hooked(stage: UpgradeRun) -> None:
    secrets = (await stage.client.list(SECRETS, namespace=FLEET_LOCAL)).items
    name = next(objects.name(one) for one in secrets if one.get("type") == "rke.cattle.io/machine-plan")
    pending = MergePatch({"metadata": {"annotations": {RKE_PRE_DRAIN: OPTIONS}}})
    await stage.client.patch(SECRETS, name, pending, namespace=FLEET_LOCAL)


@pytest.mark.rule("pipeline: a success implies upgraded, Ready and schedulable nodes, VMs that run, and all settings")
@pytest.mark.parametrize(
    ("act", "found"),
    [
        pytest.param(other_os, "Node node-1 runs Harvester v1.7.1", id="OS"),
        pytest.param(other_kubernetes, "Node node-1 runs Harvester v1.8.0 with v1.34.3", id="Kubernetes"),
        pytest.param(not_ready, "Node node-1 is cordoned or not Ready", id="Ready"),
        pytest.param(cordoned, "Node node-1 is cordoned or not Ready", id="schedulable"),
        pytest.param(tainted, "Node node-1 keeps the taint", id="taint"),
        pytest.param(hooked, "has a pending hook", id="hook"),
        pytest.param(machine_off, "VM default/vm-1 was on, is off, and is not named", id="VM"),
        pytest.param(interval, "replica-replenishment-wait-interval was", id="interval"),
        pytest.param(descheduler, "Addon kube-system/descheduler was", id="descheduler"),
        pytest.param(strategy, "Cluster fleet-local/local was", id="strategy"),
    ],
)
async def test_broken_clause_is_found(act: Break, found: str) -> None:
    async with Simulation(UPGRADED) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        promise = await SuccessPromise.of(simulation)
        assert await promise.broken() == []
        await act(stage)
        (sentence,) = await promise.broken()
        assert found in sentence


@pytest.mark.rule("pipeline: a success implies upgraded, Ready and schedulable nodes, VMs that run, and all settings")
def test_healthy_upgrade_keeps_its_promise() -> None:
    assert healthy_run().broken == []


@pytest.mark.full
@pytest.mark.parametrize("name", ["one-node", "two-nodes", "witness"])
async def test_success_keeps_its_promise(name: str) -> None:
    async with Simulation(name) as simulation:
        promise = await SuccessPromise.of(simulation)
        async with started(simulation) as stage:
            await stage.succeed()
        assert await promise.broken() == []
