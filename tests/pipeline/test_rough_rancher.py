"""Whole upgrades with misbehaving Rancher, Secrets and nodes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hack.simulation import Simulation
from tests.support.simulate import RepairableScenario
from tests.support.upgrade import BY_VERSION, UpgradeRun, condition, phases_of, provision_generation
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS
from upgrade_manager.pipeline.rancher import upgrade_strategy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.support.simulate import Simulate
    from upgrade_manager.kube.objects import Object

PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
ASKS_PRE, ASKS_POST = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
#: A hook for the manager, as another version of Rancher writes it.
OLD = json.dumps({"enabled": True, "era": 1, "preDrainHooks": [{"annotation": PRE}]})
OTHERS = json.dumps({"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}]})


async def assert_sound(stage: UpgradeRun) -> None:
    """Assert that the upgrade succeeded and created nothing twice."""
    plan = await stage.plan()
    assert phases_of(plan) == [*PHASE_VALUES, SUCCEEDED]
    assert objects.status(plan)["provisionGeneration"] == await provision_generation(stage.simulation) == 4
    assert [name for name, count in Counter(stage.ledger.created).items() if count > 1] == []
    assert [event["message"] for event in await stage.events() if event["type"] == "Warning"] == []
    jobs = [name for path, name in stage.ledger.created if path.endswith("/jobs")]
    assert len(jobs) == 1 + 2 * len(stage.simulation.scenario.nodes.names)


RELEASES = [
    pytest.param({"release": {"kubernetes": "v1.34.3+rke2r1"}}, id="the same Kubernetes: drained all the same"),
    pytest.param({"release": {"kubernetes": "v1.35.2-rc4+rke2r1"}}, id="a pre-release, which the kubelet reports"),
    pytest.param({"release": {"os": "Harvester 1.8: GA (build 7) +x86_64"}}, id="an OS with blanks and colons"),
    pytest.param({"release": {"os": "x" * 100}}, id="an OS with a very long name"),
]


@pytest.mark.rule("nodes: the cluster is patched once for an upgrade to the same Kubernetes version")
@pytest.mark.parametrize("changes", RELEASES)
@pytest.mark.thin
async def test_release_name_is_matched_as_it_is(simulate: Simulate, changes: dict[str, Any]) -> None:
    async with simulate(RepairableScenario.of(**changes), scale=0.2) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            assert await stage.until_ended() == SUCCEEDED
            await stage.settle()
        await assert_sound(stage)
        for node in (await simulation.client().list(NODES)).items:
            assert objects.status(node)["nodeInfo"]["osImage"] == simulation.scenario.release.os_image
            assert simulation.hosts.of(objects.name(node)).boots == 1


@pytest.mark.rule("nodes: a node with the release's OS when its post-drain Job completes is PostDrained without reboot")
async def test_nodes_with_the_release_os_are_not_rebooted(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(release={"os": "Harvester v1.7.1"}), scale=0.2) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            assert await stage.until_ended() == SUCCEEDED
            await stage.settle()
        await assert_sound(stage)
        assert [simulation.hosts.of(name).boots for name in simulation.scenario.nodes.names] == [0, 0, 0]


@pytest.mark.rule("nodes: a Ready node with another OS is still WaitingReboot")
async def test_node_back_with_the_old_os_blocks_the_others(simulate: Simulate) -> None:
    async with simulate(
        RepairableScenario.of(node_faults={"unchanged_by_reboot": ["node-0"]}), scale=0.2
    ) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node("WaitingReboot")
            await asyncio.sleep(120)
            plan = await stage.plan()
            waits = (
                "node-0: rebooting from Harvester v1.7.1 into Harvester v1.8.0; check its console if this lasts "
                "(0 of 3 nodes done)"
            )
            assert condition(plan, "Progressing") == ("True", "NodeUpgrading", waits)
            assert condition(plan, "Degraded")[0] == "False"
            simulation.hosts.install("node-0", "Harvester v1.8.0", reboot_after="no-pod")
            simulation.hosts.power_off("node-0")
            simulation.hosts.power_on("node-0")
            assert await stage.until_ended() == SUCCEEDED
        await assert_sound(stage)


async def _secret(simulation: Simulation, node: str) -> str:
    """Return the name of the node's machine-plan Secret."""
    machines = (await simulation.client().list(MACHINES, namespace="fleet-local")).items
    machine = next(m for m in machines if objects.status(m).get("nodeRef", {}).get("name") == node)
    secrets = (await simulation.client().list(SECRETS, namespace="fleet-local")).items
    return next(
        objects.name(secret)
        for secret in secrets
        if objects.labels(secret).get("rke.cattle.io/machine-name") == objects.name(machine)
        and secret.get("type") == "rke.cattle.io/machine-plan"
    )


async def _annotate(simulation: Simulation, secret: str, annotations: dict[str, str | None]) -> None:
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await simulation.client().patch(SECRETS, secret, patch, namespace="fleet-local")


async def _stray(simulation: Simulation, name: str, labels: dict[str, str], type_: str) -> None:
    annotations = {ASKS_PRE: OLD, ASKS_POST: OLD}
    metadata = {"name": name, "namespace": "fleet-local", "labels": labels, "annotations": annotations}
    if type_.startswith("kubernetes.io"):
        metadata["annotations"] = {**annotations, "kubernetes.io/service-account.name": "default"}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_}
    await simulation.client().create(SECRETS, body)


PLAN_TYPE = "rke.cattle.io/machine-plan"


async def without_machine(simulation: Simulation) -> None:
    await _stray(simulation, "stray", {"rke.cattle.io/machine-name": "never-was"}, PLAN_TYPE)


async def without_label(simulation: Simulation) -> None:
    await _stray(simulation, "stray", {}, PLAN_TYPE)


async def without_node(simulation: Simulation) -> None:
    spec = {"clusterName": "other", "bootstrap": {}, "infrastructureRef": {"name": "x", "kind": "x"}}
    metadata = {"name": "unborn", "namespace": "fleet-local", "labels": {"rke.cattle.io/worker-role": "true"}}
    body: Object = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "metadata": metadata, "spec": spec}
    await simulation.client().create(MACHINES, body)
    await _stray(simulation, "stray", {"rke.cattle.io/machine-name": "unborn"}, PLAN_TYPE)


async def of_another_type(simulation: Simulation) -> None:
    secret = await simulation.client().get(SECRETS, await _secret(simulation, "node-0"), namespace="fleet-local")
    machine = objects.labels(secret)["rke.cattle.io/machine-name"]
    await _stray(simulation, "stray", {"rke.cattle.io/machine-name": machine}, "Opaque")


async def answered_long_ago(simulation: Simulation) -> None:
    await _annotate(simulation, await _secret(simulation, "node-1"), {PRE: OLD, POST: OLD})


async def asked_by_the_built_in_flow(simulation: Simulation) -> None:
    # A hook that Rancher does not wait for: it would finish another flow's drain first.
    await _annotate(simulation, await _secret(simulation, "node-1"), {"harvesterhci.io/pre-hook": OTHERS})


async def with_hooks_left_over(simulation: Simulation) -> None:
    spec = {"rkeConfig": {"upgradeStrategy": upgrade_strategy({})}}
    patch = MergePatch({"spec": spec})
    await simulation.client().patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")


STRAYS = [
    pytest.param(without_machine, id="hook on a Secret whose Machine was deleted"),
    pytest.param(without_label, id="a Secret without a Machine's name asks"),
    pytest.param(without_node, id="a Secret asks whose Machine has no node"),
    pytest.param(of_another_type, id="a Secret of another type looks like a question"),
    pytest.param(answered_long_ago, id="answers of an earlier upgrade are still there"),
    pytest.param(asked_by_the_built_in_flow, id="the built-in flow has left its answer"),
    pytest.param(with_hooks_left_over, id="an earlier upgrade's hooks are still in the strategy"),
]


@pytest.mark.rule(
    "nodes: only Secrets of type machine-plan in fleet-local carry hooks",
    "nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched",
    "nodes: a Secret without Machine is logged and not fatal",
    "nodes: a Machine without Node is logged and not fatal",
)
@pytest.mark.parametrize("leave", STRAYS)
async def test_leftovers_do_not_stop_or_mislead_the_upgrade(
    simulate: Simulate, leave: Callable[[Simulation], Any]
) -> None:
    async with simulate(scale=0.2) as simulation:
        await leave(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            assert await stage.until_ended() == SUCCEEDED
            await stage.settle()
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
                found = objects.annotations_of(await client.get(SECRETS, name, namespace="fleet-local"))
                asked = {key: found[key] for key in (ASKS_PRE, ASKS_POST) if key in found}
                for _ in range(3 if asked else 0):
                    await _annotate(simulation, name, dict.fromkeys(asked))
                    await _annotate(simulation, name, dict(asked))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(play())
        try:
            yield
        finally:
            task.cancel()


async def test_flapping_hooks_are_acknowledged() -> None:
    async with Simulation() as simulation, nervous(simulation):
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node("PostDrained")
        jobs = [name for path, name in stage.ledger.created if path.endswith("/jobs")]
        assert [name for name, count in Counter(jobs).items() if count > 1] == []


@pytest.mark.rule("nodes: a pre-drain value that changes while the Job runs is acknowledged in its latest form")
@pytest.mark.servers
async def test_changed_drain_options_are_acknowledged_as_they_are(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node("PreDraining")
            options = {"controlPlaneDrainOptions": {"timeout": 77}}
            patch = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": options}}})
            await simulation.client().patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")
            assert await stage.until_ended() == SUCCEEDED
            await stage.settle()
        await assert_sound(stage)


@pytest.mark.rule("nodes: a node that leaves is logged and blocks nothing")
async def test_deleted_node_does_not_block_the_others(simulate: Simulate) -> None:
    async with simulate(scale=0.2) as simulation:
        client = simulation.client()
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(BY_VERSION)
            await stage.until_node("PreDraining", node="node-0")
            secret = await client.get(SECRETS, await _secret(simulation, "node-1"), namespace="fleet-local")
            machine = objects.labels(secret)["rke.cattle.io/machine-name"]
            await client.delete(MACHINES, machine, namespace="fleet-local")
            await client.delete(SECRETS, objects.name(secret), namespace="fleet-local")
            await client.delete(NODES, "node-1")
            assert await stage.until_ended() == SUCCEEDED
        states = {name: entry["state"] for name, entry in (await stage.plan())["status"]["nodeUpgradeStatuses"].items()}
        assert states["node-0"] == states["node-2"]
