"""Whole upgrades of one node, of two, and of two with a witness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.managers.announcements import milestone_errors, without_milestones
from tests.support.managers.exactly_once import SUCCESS_EVENTS
from tests.support.managers.healthy_jobs import healthy_jobs
from tests.support.managers.manager_restarts import InClusterManager
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, ENTRIES, UpgradeRun, condition, node_states, started
from tests.support.managers.write_hooks import StateRecorder
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS, LONGHORN_SETTINGS, NODES, PODS, PROVISIONING_CLUSTERS

pytestmark = pytest.mark.sampled

JOB = "upgrade-node-upgrade-single-node-upgrade-node-0"
#: The states of one node of several; some may pass unobserved.
DRAINED = ["PreDraining", "PreDrained", "PostDraining", "WaitingReboot", "PostDrained"]
#: States that may be over before the manager sees them.
SHORT = {"WaitingReboot", "ImageCleaning"}
INTERVAL = "replica-replenishment-wait-interval"


async def upgraded(
    stage: UpgradeRun, spec: dict[str, Any] = BY_VERSION, *, home: str = "node-0"
) -> tuple[InClusterManager, Object]:
    """Upgrade by a manager on that node, and return it and the plan."""
    manager = InClusterManager(stage, home)
    async with manager.running():
        await stage.create_plan(spec)
        plan = await stage.succeed()
    assert_complete(plan, await stage.events())
    return manager, plan


def assert_complete(plan: Object, events: list[Object]) -> None:
    """Assert the nodes' end states, every event once, and no warning."""
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")
    assert set(node_states(plan).values()) == {"ImageCleaned"}
    announced = sorted((event["message"], event["type"], event["count"]) for event in without_milestones(events))
    assert announced == sorted((message, "Normal", 1) for message in SUCCESS_EVENTS)
    is_single = "singleNode" in objects.status(plan)
    # The API server and the manager may be away while the only management node reboots.
    assert milestone_errors(events, node_states(plan), single=is_single, reboots=False) == []


@pytest.mark.rule(
    "api: a single-node cluster has no provisionGeneration",
    "api: singleNode is the node's name on a single-node cluster, else absent",
    "api: a successful run records a timestamp for each value in order",
    "nodes: the manager resumes after it went down with the single node's reboot",
)
@pytest.mark.servers
@pytest.mark.parametrize("spec", ENTRIES)
@pytest.mark.thin
async def test_single_node_reboots_with_manager_and_api_server(simulate: Simulate, spec: dict[str, Any]) -> None:
    async with simulate("one-node") as simulation:
        client, recorder = simulation.client(), StateRecorder()
        simulation.middleware.hook = recorder
        before = await client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        stage = await UpgradeRun.set_up(simulation)
        manager, plan = await upgraded(stage, spec)
        after = await client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        interval = await client.get(LONGHORN_SETTINGS, INTERVAL, namespace="longhorn-system")
        node = await client.get(NODES, "node-0")
        jobs = (await client.list(JOBS)).items
    assert len(manager.lives) == 2
    assert objects.status(plan)["singleNode"] == "node-0"
    assert "provisionGeneration" not in objects.status(plan)
    states = [state for state in recorder.states["node-0"] if state not in SHORT]
    assert states[-3:] == ["SingleNodeUpgrading", "SingleNodeUpgraded", "ImageCleaned"]
    # The Job patches the version; the manager asks Rancher for nothing.
    assert objects.spec(after)["rkeConfig"] == objects.spec(before)["rkeConfig"]
    assert objects.spec(after)["kubernetesVersion"] == "v1.35.2+rke2r1"
    assert not [path for path, _ in stage.ledger.created if "provisioning" in path]
    assert sorted(stage.ledger.names("jobs")) == healthy_jobs(stage.name, ["node-0"])
    assert interval["value"] == "600"
    assert objects.status(node)["nodeInfo"]["osImage"] == "Harvester v1.8.0"
    assert "management.harvesterhci.io/pendingOSImage" not in objects.annotations_of(node)
    assert [objects.name(job) for job in jobs if "upgrade" in objects.name(job)] == []


@pytest.mark.rule("nodes: the manager resumes after it went down with the single node's reboot")
async def test_lease_of_the_rebooted_node_expires() -> None:
    async with Simulation("one-node") as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = RunOptions(leader_elect=True)
        manager, _ = await upgraded(stage)
    assert len(manager.lives) == 2


async def test_surviving_manager_records_every_state() -> None:
    # Longer than the interval between two writes of messages.
    scenario = scenarios.load("one-node").changed(durations={"image_cleanup": 3})
    async with Simulation(scenario) as simulation:
        recorder = simulation.middleware.hook = StateRecorder()
        async with started(simulation) as stage:
            assert_complete(await stage.succeed(), await stage.events())
    assert recorder.states["node-0"] == [
        "ImagePreloading",
        "ImagePreloaded",
        "SingleNodeUpgrading",
        "WaitingReboot",
        "SingleNodeUpgraded",
        "ImageCleaning",
        "ImageCleaned",
    ]


async def test_job_killed_by_the_reboot_is_retried() -> None:
    async with Simulation("one-node") as simulation:
        stage, hosts = await UpgradeRun.set_up(simulation), simulation.hosts
        manager = InClusterManager(stage, "node-0")
        async with manager.running():
            await stage.create_plan(BY_VERSION)
            (pod,) = await pods_that(stage, lambda pod: objects.status(pod).get("phase") == "Running")
            # The OS is installed, and the node loses power before the Pod has finished.
            hosts.install("node-0", simulation.scenario.release.os_image, reboot_after="no-pod")
            hosts.power_off("node-0")
            assert_complete(await stage.succeed(), await stage.events())
        assert hosts.of("node-0").boots == 1
    assert objects.name(pod).startswith(JOB[:40])


async def pods_that(stage: UpgradeRun, fits: Callable[[Object], bool]) -> list[Object]:
    """Wait for a matching Pod of the node's Job and return the Job's Pods."""
    await stage.until("NodeUpgrading")
    client, selector = stage.simulation.client(), "management.harvesterhci.io/job-type=single-node-upgrade"
    while True:
        pods = (await client.list(PODS, namespace="harvester-system", label_selector=selector)).items
        found = [pod for pod in pods if fits(pod)]
        if found:
            return found
        await asyncio.sleep(0.05)


async def test_node_that_is_not_back_is_awaited() -> None:
    scenario = scenarios.load("one-node").changed(node_faults={"lost_on_reboot": ["node-0"]})
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with InClusterManager(stage, "node-0").running():
            await stage.create_plan(BY_VERSION)
            await asyncio.sleep(300)
            assert await stage.phase() == "unknown"
            simulation.hosts.power_on("node-0")
            await stage.succeed()


@pytest.mark.rule(
    "api: provisionGeneration is the value that the plan set on the Rancher cluster",
    "api: singleNode is the node's name on a single-node cluster, else absent",
)
@pytest.mark.servers
@pytest.mark.parametrize(
    ("scenario", "spec"),
    [
        pytest.param("two-nodes", BY_VERSION, id="two nodes, by version"),
        pytest.param("witness", BY_IMAGE, id="two nodes and a witness, by image"),
    ],
)
@pytest.mark.thin
async def test_few_nodes_are_upgraded_one_at_a_time(simulate: Simulate, scenario: str, spec: dict[str, Any]) -> None:
    async with simulate(scenario) as simulation:
        recorder = simulation.middleware.hook = StateRecorder()
        manager, plan = await upgraded(await UpgradeRun.set_up(simulation), spec)
        nodes = (await simulation.client().list(NODES)).items
    assert len(manager.lives) == 2
    assert "singleNode" not in objects.status(plan)
    assert objects.status(plan)["provisionGeneration"] == 4
    for node in nodes:
        assert objects.status(node)["nodeInfo"]["osImage"] == "Harvester v1.8.0"
        seen = [state for state in recorder.states[objects.name(node)] if state in DRAINED]
        assert seen == [state for state in DRAINED if state in seen]
        assert seen[-1] == "PostDrained"
