"""The simulated and the real kube-scheduler by the same rows."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from hack.actors.freezer import kubelet_of
from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_HOSTNAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PODS

#: Seconds in which a scheduler binds a Pod.
HANG = 2.0
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
PREEMPTION = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)
#: Of a Pod that fits neither its dead nor its cordoned node, by kube-scheduler v1.35.4.
REFUSED = (
    "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
    f"1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. {PREEMPTION}"
)
MISSING = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
UNCLAIMED = '0/3 nodes are available: persistentvolumeclaim "missing" not found. not found'


def pod(name: str = "work", /, **spec: Any) -> Object:
    container = {"name": "apply", "image": "rancher/harvester-upgrade-toolkit:v1.8.0", "command": ["true"]}
    metadata = {"name": name, "namespace": HARVESTER_SYSTEM}
    spec = {"containers": [container], "restartPolicy": "Never", **spec}
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": metadata, "spec": spec}


def on(*nodes: str) -> Object:
    expression = {"key": LABEL_HOSTNAME, "operator": "In", "values": [*nodes]}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


async def cordon_and_kill(simulation: Simulation) -> None:
    """Cordon node-0, and let node-2 be unreachable."""
    client = simulation.client()
    await client.patch(NODES, "node-0", MergePatch({"spec": {"unschedulable": True}}))
    simulation.freezer.freeze(kubelet_of("node-2"))

    async def are_tainted() -> bool:
        return len([node for node in (await client.list(NODES)).items if objects.spec(node).get("taints")]) == 2

    await eventually(are_tainted)
    await scheduler_has_seen_them(simulation)


async def scheduler_has_seen_them(simulation: Simulation) -> None:
    """Wait until a Pod for these two nodes alone is refused.

    The real scheduler watches nodes and Pods by two streams: it may bind a Pod before it hears of a node's taint.
    """
    names = map("probe-{}".format, itertools.count())

    async def is_refused() -> bool:
        name = next(names)
        await simulation.client().create(PODS, pod(name, affinity=on("node-0", "node-2")))
        node, _ = await eventually(lambda: decided(simulation, name))
        return not node

    await eventually(is_refused)


async def decision(simulation: Simulation, name: str = "work") -> tuple[str, str]:
    """Return the Pod's node, and the message of its condition."""
    found = await simulation.client().get(PODS, name, namespace=HARVESTER_SYSTEM)
    return objects.spec(found).get("nodeName") or "", objects.condition(found, "PodScheduled").get("message") or ""


async def decided(simulation: Simulation, name: str = "work") -> tuple[str, str] | None:
    """Return the decision once there is one."""
    found = await decision(simulation, name)
    return found if any(found) else None


@pytest.mark.servers
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ("node-1", ""), id="any node"),
        pytest.param({"affinity": on("node-2"), "tolerations": [UNREACHABLE]}, ("node-2", ""), id="dead, tolerated"),
        pytest.param({"affinity": on("node-0", "node-2")}, ("", REFUSED), id="dead or cordoned"),
        pytest.param({"affinity": on("node-0")}, ("", REFUSED), id="its only node is cordoned"),
        pytest.param({"volumes": [MISSING]}, ("", UNCLAIMED), id="claim is missing"),
    ],
)
async def test_pod_is_bound_or_refused(simulate: Simulate, spec: dict[str, Any], expected: tuple[str, str]) -> None:
    async with simulate() as simulation:
        await cordon_and_kill(simulation)
        await simulation.client().create(PODS, pod(**spec))
        assert await eventually(lambda: decided(simulation)) == expected


@pytest.mark.servers
async def test_frozen_scheduler_binds_once_it_is_thawed(simulate: Simulate) -> None:
    async with simulate() as simulation:
        simulation.freezer.freeze("Scheduler")
        await simulation.client().create(PODS, pod())
        await asyncio.sleep(HANG)
        assert await decision(simulation) == ("", "")
        simulation.freezer.thaw("Scheduler")

        async def is_bound() -> bool:
            return bool((await decision(simulation))[0])

        await eventually(is_bound)
