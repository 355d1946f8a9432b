"""Whole upgrades with misbehaving Rancher, Secrets and nodes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.simulate import RepairableScenario, Simulate
from tests.support.managers.healthy_jobs import healthy_jobs
from tests.support.managers.upgrade import REFUSAL, UpgradeRun, condition, provision_generation, started
from tests.support.random_runs.end_state_checks import check_nodes
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks

pytestmark = pytest.mark.full

PLAN_TYPE = "rke.cattle.io/machine-plan"
PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
PENDING_PRE, PENDING_POST = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
#: A hook for the manager, as another version of Rancher writes it.
OLD = json.dumps({"enabled": True, "era": 1, "preDrainHooks": [{"annotation": PRE}]})
OTHERS = json.dumps({"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}]})


async def assert_sound(stage: UpgradeRun) -> None:
    """Assert that the upgrade succeeds without a warning and creates nothing twice."""
    plan = await stage.succeed()
    assert objects.status(plan)["provisionGeneration"] == await provision_generation(stage.simulation) == 4
    assert [name for name, count in Counter(stage.ledger.created).items() if count > 1] == []
    assert await stage.warnings() == []
    assert sorted(stage.ledger.names("jobs")) == healthy_jobs(stage.name, stage.simulation.scenario.nodes.names)


RELEASES = [
    pytest.param("Harvester v1.7.1", {}, 0, id="the OS that runs: no reboot"),
    pytest.param(
        "Harvester v1.8.0", {"kubernetes": "v1.34.3+rke2r1"}, 1, id="the same Kubernetes: drained all the same"
    ),
    pytest.param(
        "Harvester v1.8.0", {"kubernetes": "v1.35.2-rc4+rke2r1"}, 1, id="a pre-release, which the kubelet reports"
    ),
    pytest.param("Harvester 1.8: GA (build 7) +x86_64", {}, 1, id="an OS with blanks and colons"),
    pytest.param("x" * 100, {}, 1, id="an OS with a very long name"),
]


@pytest.mark.rule(
    "nodes: the cluster is patched once for an upgrade to the same Kubernetes version",
    "nodes: a node with the release's OS when its post-drain Job completes is PostDrained without reboot",
)
@pytest.mark.parametrize(("os", "release", "boots"), RELEASES)
@pytest.mark.thin
async def test_release_name_is_matched_as_it_is(
    simulate: Simulate, os: str, release: dict[str, str], boots: int
) -> None:
    scenario = RepairableScenario.of(release=release | {"os": os})
    async with simulate(scenario, scale=0.2) as simulation, started(simulation) as stage:
        await assert_sound(stage)
        for node in (await stage.client.list(NODES)).items:
            assert objects.status(node)["nodeInfo"]["osImage"] == os
            assert simulation.hosts.of(objects.name(node)).boots == boots


async def _secret(simulation: Simulation, node: str) -> str:
    """Return the name of the node's machine-plan Secret."""
    machines = (await simulation.client().list(MACHINES, namespace=FLEET_LOCAL)).items
    machine = next(m for m in machines if objects.status(m).get("nodeRef", {}).get("name") == node)
    secrets = (await simulation.client().list(SECRETS, namespace=FLEET_LOCAL)).items
    return next(
        objects.name(secret)
        for secret in secrets
        if objects.labels(secret).get("rke.cattle.io/machine-name") == objects.name(machine)
        and secret.get("type") == PLAN_TYPE
    )


async def _annotate(simulation: Simulation, secret: str, annotations: dict[str, str | None]) -> None:
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await simulation.client().patch(SECRETS, secret, patch, namespace=FLEET_LOCAL)


async def _stray(simulation: Simulation, name: str, machine: str = "", type_: str = PLAN_TYPE) -> None:
    """Create a Secret with pending hooks."""
    labels = {"rke.cattle.io/machine-name": machine} if machine else {}
    annotations = {PENDING_PRE: OLD, PENDING_POST: OLD}
    metadata = {"name": name, "namespace": FLEET_LOCAL, "labels": labels, "annotations": annotations}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_}
    await simulation.client().create(SECRETS, body)


async def leave_strays(simulation: Simulation) -> None:
    """Create Secrets with hooks that are of no node, and one of another type."""
    spec = {"clusterName": "other", "bootstrap": {}, "infrastructureRef": {"name": "x", "kind": "x"}}
    metadata = {"name": "unborn", "namespace": FLEET_LOCAL, "labels": {"rke.cattle.io/worker-role": "true"}}
    body: Object = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "metadata": metadata, "spec": spec}
    await simulation.client().create(MACHINES, body)
    running = MergePatch({"status": {"phase": "Running"}})
    await simulation.client().patch(MACHINES, "unborn", running, namespace=FLEET_LOCAL, subresource="status")
    secret = await simulation.client().get(SECRETS, await _secret(simulation, "node-0"), namespace=FLEET_LOCAL)
    await _stray(simulation, "of-a-deleted-machine", "never-was")
    await _stray(simulation, "without-a-machine")
    await _stray(simulation, "of-a-machine-without-a-node", "unborn")
    await _stray(simulation, "of-another-type", objects.labels(secret)["rke.cattle.io/machine-name"], "Opaque")


async def leave_acknowledgements(simulation: Simulation) -> None:
    """Leave hooks and acknowledgements of an earlier upgrade, and an acknowledgement of the built-in flow."""
    await _annotate(simulation, await _secret(simulation, "node-1"), {PRE: OLD, POST: OLD})
    # A hook that Rancher does not wait for: it would finish another flow's drain first.
    await _annotate(simulation, await _secret(simulation, "node-2"), {"harvesterhci.io/pre-hook": OTHERS})
    patch = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": with_hooks({})}}})
    await simulation.client().patch(PROVISIONING_CLUSTERS, "local", patch, namespace=FLEET_LOCAL)


@pytest.mark.rule(
    "nodes: only Secrets of type machine-plan in fleet-local carry hooks",
    "nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched",
    "nodes: a Secret without Machine is logged and not fatal",
    "nodes: a Machine without Node is logged and not fatal",
)
@pytest.mark.parametrize("leave", [leave_strays, leave_acknowledgements])
async def test_leftovers_do_not_stop_or_mislead_the_upgrade(
    simulate: Simulate, leave: Callable[[Simulation], Any]
) -> None:
    async with simulate(scale=0.2) as simulation:
        await leave(simulation)
        async with started(simulation) as stage:
            await assert_sound(stage)


@asynccontextmanager
async def nervous(simulation: Simulation) -> AsyncIterator[None]:
    """Remove and set Rancher's hooks over and over."""

    async def play() -> None:
        client, names = simulation.client(), simulation.scenario.nodes.names
        secrets = [await _secret(simulation, name) for name in names]
        while True:
            await asyncio.sleep(0.3)
            for name in secrets:
                found = objects.annotations_of(await client.get(SECRETS, name, namespace=FLEET_LOCAL))
                pending = {key: found[key] for key in (PENDING_PRE, PENDING_POST) if key in found}
                for _ in range(3 if pending else 0):
                    await _annotate(simulation, name, dict.fromkeys(pending))
                    await _annotate(simulation, name, dict(pending))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(play())
        try:
            yield
        finally:
            task.cancel()


async def test_flapping_hooks_are_acknowledged() -> None:
    async with Simulation() as simulation, nervous(simulation), started(simulation) as stage:
        await stage.until_node("PostDrained")
        jobs = stage.ledger.names("jobs")
        assert len(jobs) == len(set(jobs))


@pytest.mark.rule(
    "nodes: a hook that Rancher sets while its strategy cannot be restored is handled before ImageCleanup"
)
async def test_hooks_before_the_restored_strategy_are_handled(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PostDraining", node="node-2")
        allow = stage.refuse("patch", "clusters.*")
        await stage.until_plan(lambda plan: REFUSAL in condition(plan, "Degraded")[2])
        await stage.plan_again()
        jobs = [f"upgrade-node-upgrade-pre-drain-{name}" for name in simulation.scenario.nodes.names]
        async with asyncio.timeout(1800):
            while any(stage.ledger.names("jobs").count(job) < 2 for job in jobs):  # noqa: ASYNC110  # virtual time
                await asyncio.sleep(1)
        # Rancher uncordons the last one.
        await asyncio.sleep(60)
        allow()
        await stage.succeed()
        assert await check_nodes(simulation) == []
        assert {reason for reason, _ in await stage.warnings()} == {"ReconcileError"}
