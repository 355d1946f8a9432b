"""The check that nothing reaches a node that is done."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.managers.done_nodes import spared
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, HARVESTER_SYSTEM, LABEL_HOSTNAME, MANAGED_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, SECRETS, SUC_PLANS, UPGRADE_PLANS, Resource
from upgrade_manager.kube.transport import Request

DONE, OTHER = "node-0", "node-1"
STATES = {DONE: {"state": "PostDrained"}, OTHER: {"state": "PreDrainFailed"}}
TEMPLATE = {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}


@asynccontextmanager
async def failed() -> AsyncIterator[UpgradeRun]:
    """Provide a plan with one node that is done."""
    async with Simulation(actors=False) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        status = MergePatch({"status": {"currentPhase": "Failed", "nodeUpgradeStatuses": STATES}})
        await stage.client.patch(UPGRADE_PLANS, stage.name, status, subresource="status")
        yield stage


def job(node: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {**TEMPLATE, **node}}}}


async def create(stage: UpgradeRun, resource: Resource, namespace: str, fields: dict[str, Any]) -> None:
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}}
    await stage.client.create(resource, {**head, **fields}, namespace=namespace)


async def patch_as_manager(stage: UpgradeRun, patch: dict[str, Any]) -> None:
    """Patch the node that is done with the manager's account."""
    await send(stage, "PATCH", NODES.path(DONE), patch, kind="application/merge-patch+json")


async def plan_as_manager(stage: UpgradeRun, *, without: str) -> None:
    """Create a Plan of all nodes but one."""
    others = {"key": LABEL_HOSTNAME, "operator": "NotIn", "values": [without]}
    selector = {"matchLabels": {MANAGED_LABEL: "true"}, "matchExpressions": [others]}
    head = {"apiVersion": SUC_PLANS.api_version, "kind": SUC_PLANS.kind, "metadata": {"name": "x"}}
    plan = {**head, "spec": {"nodeSelector": selector, "upgrade": {"image": "x"}}}
    await send(stage, "POST", SUC_PLANS.path(namespace=CATTLE_SYSTEM), plan)


async def send(
    stage: UpgradeRun, method: str, path: str, body: dict[str, Any], *, kind: str = "application/json"
) -> None:
    headers = {"content-type": kind, "accept": "application/json"}
    await stage.ledger.send(Request(method=method, path=path, headers=headers, body=json.dumps(body).encode()))


def label(value: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {"plan.upgrade.cattle.io/x": value}}}


async def annotate_machine_plan(stage: UpgradeRun, key: str) -> None:
    """Annotate the machine-plan Secret of each node."""
    for secret in (await stage.client.list(SECRETS, namespace=FLEET_LOCAL)).items:
        patch = MergePatch({"metadata": {"annotations": {key: "{}"}}})
        await stage.client.patch(SECRETS, objects.name(secret), patch, namespace=FLEET_LOCAL)


async def set_node(stage: UpgradeRun, node: str, patch: dict[str, Any]) -> None:
    subresource = "status" if "status" in patch else ""
    await stage.client.patch(NODES, node, MergePatch(patch), subresource=subresource)


NOTICED = {
    "a cordon": lambda one: set_node(one, DONE, {"spec": {"unschedulable": True}}),
    "a reboot": lambda one: set_node(one, DONE, {"status": {"nodeInfo": {"bootID": "another"}}}),
    "a drain": lambda one: annotate_machine_plan(one, "rke.cattle.io/drain-options"),
    "a Job": lambda one: create(one, JOBS, HARVESTER_SYSTEM, job({"nodeName": DONE})),
    "a Plan's Job": lambda one: create(one, JOBS, CATTLE_SYSTEM, job({"nodeSelector": {LABEL_HOSTNAME: DONE}})),
    "a patch without effect": lambda one: patch_as_manager(one, {}),
    "a label": lambda one: patch_as_manager(one, label("y")),
    "a Plan": lambda one: plan_as_manager(one, without=OTHER),
}
PERMITTED = {
    "a cordon of another node": lambda one: set_node(one, OTHER, {"spec": {"unschedulable": True}}),
    "a Job of another node": lambda one: create(one, JOBS, HARVESTER_SYSTEM, job({"nodeName": OTHER})),
    "a heartbeat": lambda one: set_node(one, DONE, {"status": {"conditions": []}}),
    "probes": lambda one: annotate_machine_plan(one, "rke.cattle.io/plan-probes-passed"),
    "a label's removal": lambda one: patch_as_manager(one, label(None)),
    "a Plan of other nodes": lambda one: plan_as_manager(one, without=DONE),
}


@pytest.mark.parametrize("act", NOTICED.values(), ids=NOTICED)
async def test_what_reaches_a_node_that_is_done_is_noticed(act: Any) -> None:
    async with failed() as stage:
        with pytest.raises(AssertionError, match=f"{DONE}|Plan"):
            async with spared(stage):
                await act(stage)


@pytest.mark.parametrize("act", PERMITTED.values(), ids=PERMITTED)
async def test_what_does_not_reach_it_is_permitted(act: Any) -> None:
    async with failed() as stage, spared(stage):
        await act(stage)
