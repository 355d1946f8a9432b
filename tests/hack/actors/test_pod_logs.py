"""The logs of simulated Pods, as `kubectl logs` reads them."""

from __future__ import annotations

import asyncio

from hack.actors.freezer import kubelet_of
from hack.scenario import load
from hack.simulation import Simulation
from tests.support.cluster.actor_cluster import job
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, PODS
from upgrade_manager.kube.transport import Request


def cluster() -> Simulation:
    return Simulation(load("one-node").changed(vms={"count": 0}, jitter=0.0))


async def log(simulation: Simulation, name: str) -> tuple[int, str]:
    path = f"/api/v1/namespaces/harvester-system/pods/{name}/log"
    found = await simulation.transport().send(Request(method="GET", path=path))
    return found.status, found.body.decode()


async def created(simulation: Simulation, command: str) -> str:
    """Run a Job; return its Pod."""
    await simulation.client().create(JOBS, job("mine", command=["sh", "-c", command]))
    await asyncio.sleep(60)
    (pod,) = (await simulation.client().list(PODS, namespace="harvester-system", label_selector="job-name=mine")).items
    return objects.name(pod)


async def test_log_of_a_running_process_is_empty() -> None:
    async with cluster() as simulation:
        assert await log(simulation, await created(simulation, "true")) == (200, "")


async def test_log_has_what_containers_reported_at_their_ends() -> None:
    async with cluster() as simulation:
        name, client = await created(simulation, "true"), simulation.client()
        (container,) = objects.status(await client.get(PODS, name, namespace="harvester-system"))["containerStatuses"]
        ended = container | {"lastState": {"terminated": {"exitCode": 1, "message": "no such file\n"}}}
        patch = MergePatch({"status": {"containerStatuses": [ended]}})
        await client.patch(PODS, name, patch, namespace="harvester-system", subresource="status")
        await asyncio.sleep(1)
        assert await log(simulation, name) == (200, "no such file\n")


async def test_log_comes_from_the_kubelet() -> None:
    async with cluster() as simulation:
        name = await created(simulation, "true")
        simulation.freezer.freeze(
            kubelet_of(
                objects.spec(await simulation.client().get(PODS, name, namespace="harvester-system"))["nodeName"]
            )
        )
        assert (await log(simulation, name))[0] == 500
        assert (await log(simulation, "other"))[0] == 404
