"""The events about Pods that do not start."""

from __future__ import annotations

import asyncio

import pytest

from hack.actors.freezer import REGISTRY, RUNTIME
from hack.actors.pod_failures import failed_probe
from hack.scenario import load
from hack.simulation import Simulation
from tests.support.cluster.actor_cluster import job
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, JOBS, NODES

IMAGE = "rancher/harvester-upgrade-toolkit:v1.8.0"
PULL = f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": i/o timeout'
TAINT = {"key": "example.com/maintenance", "effect": "NoSchedule"}


def cluster() -> Simulation:
    return Simulation(load("one-node").changed(vms={"count": 0}, jitter=0.0))


async def events(simulation: Simulation) -> dict[tuple[str, str], int]:
    """Return how often each component has recorded each message about Pods in harvester-system."""
    listed = await simulation.client().list(
        EVENTS, namespace="harvester-system", field_selector="involvedObject.kind=Pod"
    )
    return {
        (event["source"]["component"], f"{event['type']} {event['reason']}: {event['message']}"): event["count"]
        for event in listed.items
    }


async def create(simulation: Simulation) -> None:
    await simulation.client().create(JOBS, job("mine", command=["sh", "-c", "true"]))


async def test_pod_that_runs_has_no_events() -> None:
    async with cluster() as simulation:
        await create(simulation)
        await asyncio.sleep(120)
        assert await events(simulation) == {}


async def test_failed_pulls_are_counted_with_growing_pauses() -> None:
    async with cluster() as simulation:
        simulation.freezer.freeze(REGISTRY)
        await create(simulation)
        await asyncio.sleep(60)
        assert await events(simulation) == {
            ("kubelet", f'Normal Pulling: Pulling image "{IMAGE}"'): 3,
            ("kubelet", f'Warning Failed: Failed to pull image "{IMAGE}": {PULL}'): 3,
            ("kubelet", "Warning Failed: Error: ErrImagePull"): 3,
            ("kubelet", f'Normal BackOff: Back-off pulling image "{IMAGE}"'): 3,
            ("kubelet", "Warning Failed: Error: ImagePullBackOff"): 3,
        }


async def test_container_that_is_not_created_has_an_event() -> None:
    async with cluster() as simulation:
        simulation.freezer.freeze(RUNTIME)
        await create(simulation)
        await asyncio.sleep(5)
        message = "Error: failed to reserve sandbox name: context deadline exceeded"
        assert await events(simulation) == {("kubelet", f"Warning Failed: {message}"): 1}


@pytest.mark.parametrize(
    ("seconds", "count"), [pytest.param(100, 0, id="before the time limit"), pytest.param(130, 1, id="after it")]
)
async def test_missing_claim_is_reported_after_two_minutes(seconds: int, count: int) -> None:
    async with cluster() as simulation:
        given = job("mine", command=["sh", "-c", "true"])
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
        given["spec"]["template"]["spec"]["volumes"] = [claim]
        await simulation.client().create(JOBS, given)
        await asyncio.sleep(seconds)
        found = await events(simulation)
        assert len(found) == count
        assert all("FailedMount: Unable to attach or mount volumes" in message for _, message in found)


async def test_unschedulable_pod_has_an_event_of_the_scheduler() -> None:
    async with cluster() as simulation:
        await simulation.client().patch(NODES, "node-0", MergePatch({"spec": {"taints": [TAINT]}}))
        await create(simulation)
        await asyncio.sleep(5)
        ((component, message),) = await events(simulation)
        assert component == "default-scheduler"
        assert message.startswith("Warning FailedScheduling: 0/1 nodes are available: 1 node(s) had untolerated taint")


def test_failed_probe_names_the_address() -> None:
    probe = {"httpGet": {"port": 80, "path": "/release"}}
    pod = {"spec": {"containers": [{"readinessProbe": probe}]}, "status": {"podIP": "10.52.0.9"}}
    assert failed_probe(pod).startswith('Unhealthy: Readiness probe failed: Get "http://10.52.0.9:80/release": ')
    assert failed_probe({"spec": {"containers": [{}]}, "status": {"podIP": "10.52.0.9"}}) == ""
