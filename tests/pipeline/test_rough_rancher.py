"""Whole upgrades with misbehaving Rancher, Secrets and nodes."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.upgrade import condition, node_states, provision_generation, started
from tests.support.random_runs.end_state_checks import check_nodes
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.support.cluster.simulate import Simulate
    from tests.support.managers.upgrade import UpgradeRun
    from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.sampled

PLAN_TYPE = "rke.cattle.io/machine-plan"
PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
PENDING_PRE, PENDING_POST = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
#: A hook for the manager, as another version of Rancher writes it.
OLD = json.dumps({"enabled": True, "era": 1, "preDrainHooks": [{"annotation": PRE}]})
OTHERS = json.dumps({"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}]})


async def assert_sound(stage: UpgradeRun, *warnings: str) -> None:
    """Assert that the upgrade succeeds with these warnings and creates nothing twice."""
    plan = await stage.succeed()
    assert objects.status(plan)["provisionGeneration"] == await provision_generation(stage.simulation) == 4
    assert [name for name, count in Counter(stage.ledger.created).items() if count > 1] == []
    assert [reason for reason, _ in await stage.warnings()] == list(warnings)
    assert len(stage.ledger.names("jobs")) == 1 + 2 * len(stage.simulation.scenario.nodes.names)


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


@pytest.mark.rule("nodes: a Ready node with another OS is still WaitingReboot")
async def test_node_back_with_the_old_os_blocks_the_others(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(node_faults={"unchanged_by_reboot": ["node-0"]})
    async with simulate(scenario, scale=0.2) as simulation, started(simulation) as stage:
        await stage.until_node("WaitingReboot")
        await asyncio.sleep(120)
        plan = await stage.plan()
        waits = (
            r"node-0: rebooting from Harvester v1\.7\.1 to Harvester v1\.8\.0 since [\dT:-]+Z; "
            r"if it takes over 30 min, check its console \(0 of 3 nodes done\)"
        )
        assert re.fullmatch(waits, condition(plan, "Progressing")[2])
        assert condition(plan, "Degraded")[0] == "False"
        simulation.hosts.install("node-0", "Harvester v1.8.0", reboot_after="no-pod")
        simulation.hosts.power_off("node-0")
        simulation.hosts.power_on("node-0")
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
        and secret.get("type") == PLAN_TYPE
    )


async def _annotate(simulation: Simulation, secret: str, annotations: dict[str, str | None]) -> None:
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await simulation.client().patch(SECRETS, secret, patch, namespace="fleet-local")


async def _stray(simulation: Simulation, labels: dict[str, str], type_: str = PLAN_TYPE) -> None:
    """Create a Secret with pending hooks."""
    annotations = {PENDING_PRE: OLD, PENDING_POST: OLD}
    metadata = {"name": "stray", "namespace": "fleet-local", "labels": labels, "annotations": annotations}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_}
    await simulation.client().create(SECRETS, body)


async def without_machine(simulation: Simulation) -> None:
    await _stray(simulation, {"rke.cattle.io/machine-name": "never-was"})


async def without_label(simulation: Simulation) -> None:
    await _stray(simulation, {})


async def without_node(simulation: Simulation) -> None:
    spec = {"clusterName": "other", "bootstrap": {}, "infrastructureRef": {"name": "x", "kind": "x"}}
    metadata = {"name": "unborn", "namespace": "fleet-local", "labels": {"rke.cattle.io/worker-role": "true"}}
    body: Object = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "metadata": metadata, "spec": spec}
    await simulation.client().create(MACHINES, body)
    await _stray(simulation, {"rke.cattle.io/machine-name": "unborn"})


async def of_another_type(simulation: Simulation) -> None:
    secret = await simulation.client().get(SECRETS, await _secret(simulation, "node-0"), namespace="fleet-local")
    machine = objects.labels(secret)["rke.cattle.io/machine-name"]
    await _stray(simulation, {"rke.cattle.io/machine-name": machine}, "Opaque")


async def acknowledged_long_ago(simulation: Simulation) -> None:
    await _annotate(simulation, await _secret(simulation, "node-1"), {PRE: OLD, POST: OLD})


async def acknowledged_by_the_built_in_flow(simulation: Simulation) -> None:
    # A hook that Rancher does not wait for: it would finish another flow's drain first.
    await _annotate(simulation, await _secret(simulation, "node-1"), {"harvesterhci.io/pre-hook": OTHERS})


async def with_hooks_left_over(simulation: Simulation) -> None:
    patch = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": with_hooks({})}}})
    await simulation.client().patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")


STRAYS = [
    pytest.param(without_machine, id="hook on a Secret whose Machine was deleted"),
    pytest.param(without_label, id="hook on a Secret without a Machine's name"),
    pytest.param(without_node, id="hook on a Secret whose Machine has no node"),
    pytest.param(of_another_type, id="hook on a Secret of another type"),
    pytest.param(acknowledged_long_ago, id="acknowledgements of an earlier upgrade"),
    pytest.param(acknowledged_by_the_built_in_flow, id="an acknowledgement of the built-in flow"),
    pytest.param(with_hooks_left_over, id="an earlier upgrade's hooks in the strategy"),
]


@pytest.mark.rule(
    "nodes: only Secrets of type machine-plan in fleet-local carry hooks",
    "nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched",
    "nodes: a Secret without Machine is logged and not fatal",
    "nodes: a Machine without Node is logged and not fatal",
)
@pytest.mark.parametrize("leave", STRAYS)
@pytest.mark.thin
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
                found = objects.annotations_of(await client.get(SECRETS, name, namespace="fleet-local"))
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


@pytest.mark.rule("nodes: a pre-drain value that changes while the Job runs is acknowledged in its latest form")
@pytest.mark.servers
async def test_changed_drain_options_are_acknowledged_as_they_are(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining")
        options = {"controlPlaneDrainOptions": {"timeout": 77}}
        patch = MergePatch({"spec": {"rkeConfig": {"upgradeStrategy": options}}})
        await stage.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")
        # The user's value is kept at the end.
        await assert_sound(stage, "SettingNotRestored")


@pytest.mark.rule("nodes: a node that leaves is logged and blocks nothing")
async def test_deleted_node_does_not_block_the_others(simulate: Simulate) -> None:
    async with simulate(scale=0.2) as simulation, started(simulation) as stage:
        await stage.until_node("PreDraining", node="node-0")
        secret = await stage.client.get(SECRETS, await _secret(simulation, "node-1"), namespace="fleet-local")
        machine = objects.labels(secret)["rke.cattle.io/machine-name"]
        await stage.client.delete(MACHINES, machine, namespace="fleet-local")
        await stage.client.delete(SECRETS, objects.name(secret), namespace="fleet-local")
        await stage.client.delete(NODES, "node-1")
        states = node_states(await stage.succeed())
        assert states["node-0"] == states["node-2"]


@pytest.mark.rule(
    "nodes: a hook that Rancher sets while its strategy cannot be restored is handled before ImageCleanup"
)
@pytest.mark.parametrize("point", ["while it is refused", "after the refusal"])
@pytest.mark.thin
async def test_hooks_before_the_restored_strategy_are_handled(simulate: Simulate, point: str) -> None:
    async with simulate() as simulation, started(simulation) as stage, refused_strategy(stage) as rule:
        again = MergePatch({"spec": {"rkeConfig": {"provisionGeneration": await provision_generation(simulation) + 1}}})
        await simulation.client().patch(PROVISIONING_CLUSTERS, "local", again, namespace=FLEET_LOCAL)
        await until_drained(stage, repeatedly=point == "while it is refused")
        simulation.middleware.remove(rule)
        await stage.succeed()
        assert await check_nodes(simulation) == []
        assert {reason for reason, _ in await stage.warnings()} == {"ReconcileError"}


@asynccontextmanager
async def refused_strategy(stage: UpgradeRun) -> AsyncIterator[Rule]:
    """Refuse the restored strategy, and wait until that is reported."""
    await stage.until_node("PostDraining", node="node-2")
    refusal = Refuse(status=403, reason="Forbidden", message="a webhook refuses the strategy")
    rule = Rule(match=Match(verbs=("patch",), resource="clusters.*"), action=refusal)
    stage.simulation.middleware.add(rule)
    await stage.until_plan(lambda plan: "refuses the strategy" in condition(plan, "Degraded")[2])
    yield rule


async def until_drained(stage: UpgradeRun, *, repeatedly: bool) -> None:
    """Wait until Rancher has drained a node again, or all nodes."""
    names = stage.simulation.scenario.nodes.names if repeatedly else ("node-0",)
    jobs = [f"upgrade-node-upgrade-pre-drain-{name}" for name in names]
    async with asyncio.timeout(1800):
        while any(stage.ledger.names("jobs").count(job) < 2 for job in jobs):  # noqa: ASYNC110  # virtual time
            await asyncio.sleep(1)
    if repeatedly:
        # Rancher uncordons the last one.
        await asyncio.sleep(60)
