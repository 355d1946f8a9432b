from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.container_work import missing_from, unset_variable
from hack.scenario import load
from hack.simulation import Simulation
from tests.support.cluster.actor_cluster import job
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object


def pod() -> Object:
    template = job("x", command=["upgrade_node.sh", "post-drain"], node="node-0")["spec"]["template"]
    return {"metadata": {"name": "p", "labels": {}}, "spec": deepcopy(template["spec"])}


def _container(**changes: Any) -> Callable[[Object], None]:
    return lambda given: given["spec"]["containers"][0].update(changes)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(_container(image=""), "no image", id="no image"),
        pytest.param(_container(securityContext={}), "not privileged", id="no privileges"),
        pytest.param(_container(volumeMounts=[]), "not mounted at /host", id="no host"),
        pytest.param(_container(volumeMounts=[{"name": "a", "mountPath": "/a"}]), "no volume 'a'", id="no volume"),
        pytest.param(lambda given: given["spec"].update(containers=[]), "no container", id="no container"),
    ],
)
def test_pod_without_required_fields_cannot_start(spoil: Callable[[Object], None], message: str) -> None:
    given = pod()
    assert missing_from(given) == ""
    spoil(given)
    assert message in missing_from(given)


def test_script_with_unset_variable_fails() -> None:
    given = pod()
    assert unset_variable(given) == ""
    given["spec"]["containers"][0]["env"].pop()
    assert unset_variable(given) == "HARVESTER_UPGRADE_POD_NAME: unbound variable"


async def is_complete(client: Client, name: str) -> bool:
    return objects.is_condition_true(await client.get(JOBS, name, namespace="harvester-system"), "Complete")


def strict_job(name: str, *, node: str = "") -> Object:
    given = job(name, command=["sh", "-c", "true"], node=node)
    given["spec"]["template"]["spec"]["tolerations"] = []
    return given


async def test_cordoned_node_gets_only_tolerating_pods() -> None:
    async with Simulation(load("three-nodes").changed(vms={"count": 0})) as simulation:
        client = simulation.client()

        async def cordon(*, value: bool | None) -> None:
            for name in simulation.scenario.nodes.names:
                await client.patch(NODES, name, MergePatch({"spec": {"unschedulable": value}}))

        await cordon(value=True)
        await client.create(JOBS, strict_job("strict"))
        await client.create(JOBS, job("tolerant", command=["sh", "-c", "true"], node=""))
        await eventually(lambda: is_complete(client, "tolerant"))
        await asyncio.sleep(60)
        assert not await is_complete(client, "strict")
        await cordon(value=None)
        await eventually(lambda: is_complete(client, "strict"))


@pytest.mark.parametrize(
    "spec",
    [
        {"unschedulable": True},
        {"taints": [{"key": "example.com/maintenance", "effect": "NoSchedule"}]},
    ],
    ids=["cordoned", "NoSchedule"],
)
async def test_kubelet_runs_an_assigned_pod_on_a_closed_node(spec: Object) -> None:
    async with Simulation("one-node") as simulation:
        client = simulation.client()
        await client.patch(NODES, "node-0", MergePatch({"spec": spec}))
        await client.create(JOBS, strict_job("assigned", node="node-0"))
        await eventually(lambda: is_complete(client, "assigned"))


async def test_kubelet_rejects_pods_that_must_not_execute() -> None:
    async with Simulation("one-node") as simulation:
        client = simulation.client()
        taint = {"key": "example.com/maintenance", "effect": "NoExecute"}
        await client.patch(NODES, "node-0", MergePatch({"spec": {"taints": [taint]}}))
        await client.create(JOBS, strict_job("assigned", node="node-0"))

        async def rejected() -> bool:
            pods = (await client.list(PODS, namespace="harvester-system")).items
            return any(objects.status(one).get("reason") == "TaintToleration" for one in pods)

        await eventually(rejected)
        assert not await is_complete(client, "assigned")


async def test_pod_starts_when_its_node_is_registered_again() -> None:
    async with Simulation(load("three-nodes").changed(vms={"count": 0})) as simulation:
        client = simulation.client()
        node = await client.get(NODES, "node-0")
        await client.delete(NODES, "node-0")
        await client.create(JOBS, job("again", command=["upgrade_node.sh", "pre-drain"], node="node-0"))

        async def waits() -> bool:
            pods = (await client.list(PODS, namespace="harvester-system")).items
            states = [
                one.get("state") or {} for pod in pods for one in objects.status(pod).get("containerStatuses") or ()
            ]
            return any((state.get("waiting") or {}).get("reason") == "NodeNotFound" for state in states)

        async def done() -> bool:
            return objects.is_condition_true(await client.get(JOBS, "again", namespace="harvester-system"), "Complete")

        await eventually(waits)
        metadata = {"name": "node-0", "labels": objects.labels(node)}
        await client.create(NODES, {"metadata": metadata, "spec": {}})
        await eventually(done)
