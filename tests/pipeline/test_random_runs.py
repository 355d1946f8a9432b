"""Random upgrades: the invariants hold after every write, and every run reaches its expected end.

A failure reports its seed and the command that repeats it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.node_order import RESUMED_BY_USER, NodeOrder
from tests.support.cluster.simulate import RepairableScenario, fault
from tests.support.managers.success_truth import SuccessTruth
from tests.support.managers.sweep import shares
from tests.support.managers.upgrade import UpgradeRun, started
from tests.support.random_runs import random_run
from tests.support.random_runs.machines_on import MachinesOn
from tests.support.random_runs.random_plan import draw
from tests.support.server.request_audit import AuditedBackend
from upgrade_manager.api.keys import (
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LABEL_JOB_TYPE,
    LABEL_PLAN_UID,
    PROVISIONING_CLUSTER,
    JobType,
)
from upgrade_manager.cli.environment import USER_AGENT
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, PROVISIONING_CLUSTERS, UPGRADE_PLANS, VIRTUAL_MACHINES

#: So many runs, dealt out to so many tests, which may run at the same time.
RUNS, SHARES = 200, 20
CONTAINER = {"name": "work", "image": "toolkit"}


@pytest.mark.rule(
    "api: currentPhase is a phase value",
    "api: phaseTransitionTimestamps are append-only",
    "api: phase values are recorded in order",
    "api: a node's state group never decreases",
    "api: every created object has the plan's name and uid as labels",
    "api: every created object has a component as a label",
    "api: of created objects, only SUC Plans, Secrets and suspended Jobs have the plan as controlling owner",
    "api: the label active is set and removed with the finalizer, and added again if it is lost",
    "api: at most one plan has the label active",
    "pipeline: only the reconciler writes a plan's status",
    "blockers: an upgrade that nothing holds up has none",
)
@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("share", shares(SHARES))
def test_random_run_keeps_the_rules_and_leaves_nothing(share: int) -> None:
    for seed in range(share, RUNS, SHARES):
        result = random_run.run_seed(seed)
        assert not result.faults, str(result)


def test_blocker_without_a_cause_is_found() -> None:
    healthy = next(drawn for drawn in map(draw, range(RUNS)) if not drawn.faults and not drawn.interference)
    seen = [("JobSlow", "Job", "ns", "j", ""), ("NodePaused", "Node", "", "n", "n")]
    assert random_run.unexpected(healthy, seen) == ["blocker JobSlow/Job/ns/j"]


async def upgrade_kubernetes(stage: UpgradeRun) -> None:
    """Let Rancher upgrade all nodes, undrained."""
    release = stage.simulation.scenario.release.kubernetes
    changes = {"kubernetesVersion": release, "rkeConfig": {"provisionGeneration": 9, "upgradeStrategy": None}}
    patch = MergePatch({"spec": changes})
    await stage.client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)


async def restart(stage: UpgradeRun) -> None:
    stage.simulation.hosts.power_off("node-1")


@pytest.mark.parametrize(
    ("end", "act", "found"),
    [
        ("Failed", upgrade_kubernetes, "node-0 is upgraded to v1.35.2+rke2r1 without a drain"),
        ("deleted", restart, "node-1 reboots without a Job"),
    ],
)
@pytest.mark.full
async def test_nodes_out_of_turn_are_found(end: str, act: Callable[[UpgradeRun], Awaitable[None]], found: str) -> None:
    scenario = RepairableScenario.of(**(fault("pre-drain") if end == "Failed" else {}))
    async with Simulation(scenario) as simulation:
        order = NodeOrder(simulation.server.storage, release_os="Harvester v1.8.0", loose=False, restarted=())
        async with started(simulation) as stage:
            if end == "Failed":
                await stage.fail()
            else:
                await stage.until("ClusterUpgrading")
                await stage.delete()
        assert order.violations == []
        await act(stage)
        await asyncio.sleep(60)
    assert any(violation.endswith(found) for violation in order.violations)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, 1),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, 0),
        ({"metadata": {"annotations": {RESUMED_BY_USER: "true"}}}, 0),
    ],
    ids=["by the manager", "finished", "by a user"],
)
async def test_resumption_without_a_plan_is_found(changes: dict[str, Any], found: int) -> None:
    async with Simulation() as simulation:
        order = NodeOrder(simulation.server.storage, release_os="Harvester v1.8.0", loose=False, restarted=())
        labels = {LABEL_JOB_TYPE: JobType.PRE_DRAIN, LABEL_PLAN_UID: "deleted"}
        metadata = {"name": "job", "namespace": HARVESTER_SYSTEM, "labels": labels}
        template = {"spec": {"nodeName": "node-0", "restartPolicy": "Never", "containers": [CONTAINER]}}
        client, job = simulation.client(), {"metadata": metadata, "spec": {"suspend": True, "template": template}}
        await client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", **job})
        if "status" in changes:
            await client.patch(JOBS, "job", MergePatch(changes), namespace=HARVESTER_SYSTEM, subresource="status")
        resumed = MergePatch({"metadata": changes.get("metadata", {}), "spec": {"suspend": False}})
        await client.patch(JOBS, "job", resumed, namespace=HARVESTER_SYSTEM)
    assert len(order.violations) == found


async def test_reboot_of_a_node_with_machines_is_found() -> None:
    machines = [{"name": "vm", "node": "node-0"}]
    async with Simulation(RepairableScenario.of(vms={"count": 0, "machines": machines})) as simulation:
        order = NodeOrder(simulation.server.storage, release_os="Harvester v1.8.0", loose=False, restarted=())
        await asyncio.sleep(10)
        labels = {LABEL_JOB_TYPE: JobType.POST_DRAIN, LABEL_PLAN_UID: "deleted"}
        metadata = {"name": "job", "namespace": HARVESTER_SYSTEM, "labels": labels}
        template = {"spec": {"nodeName": "node-0", "restartPolicy": "Never", "containers": [CONTAINER]}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
        await simulation.client().create(JOBS, job)
    assert order.violations[-1].endswith("Job job will reboot node-0 with the VMs ['vm']")


async def test_untrue_success_is_found() -> None:
    async with Simulation() as simulation:
        truth = SuccessTruth(simulation.server.storage, simulation.scenario, lateness=3, steady=True)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        await stage.client.patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": True}}))
        await asyncio.sleep(10)
        original = {"object": "Setting a/b", "field": "value"}
        status = {"currentPhase": "Succeeded", "originals": [original], "nodeUpgradeStatuses": {"node-0": {}}}
        patch = MergePatch({"status": status})
        await stage.client.patch(UPGRADE_PLANS, stage.name, patch, subresource="status")
    lies = [violation.partition("is Succeeded: ")[2] for violation in truth.violations]
    assert {"Node node-0 is cordoned", "Node node-2 runs another OS", "Node node-1 is not recorded"} <= set(lies)
    assert {"Setting a/b is not settled", "Node node-2 runs another Kubernetes"} <= set(lies)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["VM default/vm was on, is off, and is not named"]),
        ("VMs that were stopped for the upgrade are off; start them: default/vm", []),
    ],
    ids=["unnamed", "named"],
)
async def test_machine_that_is_off_is_found(text: str, found: list[str]) -> None:
    machines = [{"name": "vm", "node": "node-0"}, {"name": "off", "node": "node-0", "run_strategy": "Halted"}]
    scenario = RepairableScenario.of(vms={"count": 0, "machines": machines})
    async with Simulation(scenario) as simulation:
        machines_on = MachinesOn(simulation)
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        assert await machines_on.missing() == []
        halted = MergePatch({"spec": {"runStrategy": "Halted"}})
        await stage.client.patch(VIRTUAL_MACHINES, "vm", halted, namespace="default")
        condition = {"type": "Progressing", "status": "False", "reason": "Succeeded", "message": text}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"currentPhase": "Succeeded", "conditions": [condition]}
        await stage.client.patch(UPGRADE_PLANS, stage.name, MergePatch({"status": status}), subresource="status")
        await asyncio.sleep(60)
        assert await machines_on.missing() == found
        assert await machines_on.missing(drained_by_hand="node-0") == []


@pytest.mark.parametrize(
    ("holds", "suspend", "found"),
    [("before the drain of node-0", False, 1), ("before the drain of node-0", True, 0), (None, False, 0)],
)
async def test_begin_while_the_plan_holds_is_found(holds: str | None, *, suspend: bool, found: int) -> None:
    backends: list[AuditedBackend] = []

    def audited(seed: int) -> AuditedBackend:
        backends.append(AuditedBackend(seed))
        return backends[0]

    async with Simulation(actors=False, backend=audited) as simulation:
        stage, client = await UpgradeRun.set_up(simulation), simulation.client(USER_AGENT)
        await stage.create_plan()
        paused = {"type": "Paused", "status": "True", "reason": "PauseAfter", "message": "", "observedGeneration": 1}
        paused["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = MergePatch({"status": {"conditions": [paused], "holds": holds}})
        plan = await client.patch(UPGRADE_PLANS, stage.name, status, subresource="status")
        labels = {LABEL_PLAN_UID: objects.uid(plan), LABEL_JOB_TYPE: JobType.PRE_DRAIN}
        template = {"spec": {"nodeName": "node-0", "restartPolicy": "Never", "containers": [CONTAINER]}}
        metadata = {"name": "job", "namespace": HARVESTER_SYSTEM, "labels": labels}
        spec = {"suspend": suspend, "template": template}
        await client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    violations = [one for one in backends[0].audit.violations if one.endswith("was created while the plan holds")]
    assert len(violations) == found
