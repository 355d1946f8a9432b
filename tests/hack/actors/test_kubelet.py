from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.container_work import Work, missing_from, unset_variable, work_of
from hack.cluster.scenario import load
from hack.simulation import Simulation
from tests.support.polling import eventually
from tests.support.upgrade_script import TOLERATIONS, job
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from upgrade_manager.kube.objects import Object


def pod(*command: str, labels: dict[str, str] | None = None) -> Object:
    template = job("x", "demo", command=list(command), node="node-0")["spec"]["template"]
    return {"metadata": {"name": "p", "labels": labels or {}}, "spec": deepcopy(template["spec"])}


@pytest.mark.parametrize(
    ("command", "labels", "work"),
    [
        (["upgrade_node.sh", "prepare"], {}, Work.PREPARE),
        (["/usr/local/bin/upgrade_node.sh", "pre-drain"], {}, Work.PRE_DRAIN),
        (["upgrade_node.sh", "post-drain"], {}, Work.POST_DRAIN),
        (["sh", "-c", "upgrade_node.sh single-node-upgrade"], {}, Work.SINGLE_NODE),
        (["upgrade_manifests.sh"], {}, Work.MANIFESTS),
        (["upgrade-toolkit", "restore-vm", "--node", "n"], {}, Work.RESTORE_VM),
        (["sh", "-c", "crictl rmi"], {"upgrade.cattle.io/plan": "p"}, Work.IMAGE_CLEANUP),
        (["sh", "-c", "true"], {}, Work.OTHER),
    ],
)
def test_work_is_derived_from_the_command_line(command: list[str], labels: dict[str, str], work: Work) -> None:
    assert work_of(pod(*command, labels=labels)) is work


def _container(**changes: Any) -> Callable[[Object], None]:
    return lambda given: given["spec"]["containers"][0].update(changes)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(_container(image=""), "no image", id="no image"),
        pytest.param(_container(securityContext={}), "not privileged", id="no privileges"),
        pytest.param(_container(volumeMounts=[]), "not mounted at /host", id="no host"),
        pytest.param(_container(volumeMounts=[{"name": "a", "mountPath": "/a"}]), "no volume 'a'", id="no volume"),
        pytest.param(lambda given: given["spec"].update(containers=[]), "no container", id="no container"),
    ],
)
def test_pod_without_required_fields_cannot_start(spoil: Callable[[Object], None], said: str) -> None:
    given = pod("upgrade_node.sh", "post-drain")
    assert missing_from(given) == ""
    spoil(given)
    assert said in missing_from(given)


def test_script_with_unset_variable_fails() -> None:
    given = pod("upgrade_node.sh", "post-drain")
    assert unset_variable(given) == ""
    given["spec"]["containers"][0]["env"].pop()
    assert unset_variable(given) == "HARVESTER_UPGRADE_POD_NAME: unbound variable"


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    async with Simulation(load("three-nodes").changed(vms={"count": 0})) as simulation:
        yield simulation


@pytest.mark.parametrize("node", ["node-0", ""], ids=["bound beforehand", "to be scheduled"])
async def test_cordoned_node_accepts_only_tolerating_pods(simulation: Simulation, node: str) -> None:
    client = simulation.client()
    for name in ("node-0", "node-1", "node-2"):
        await client.patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
    command = ["sh", "-c", "true"]
    for name, tolerations in (("tolerant", TOLERATIONS), ("strict", [])):
        given = job(name, "demo", command=command, node=node)
        given["spec"]["template"]["spec"]["tolerations"] = tolerations
        await client.create(JOBS, given)

    async def done(name: str) -> bool:
        return objects.is_condition_true(await client.get(JOBS, name, namespace="harvester-system"), "Complete")

    await eventually(lambda: done("tolerant"))
    await asyncio.sleep(60)
    assert not await done("strict")
    for name in ("node-0", "node-1", "node-2"):
        await client.patch(NODES, name, MergePatch({"spec": {"unschedulable": None}}))
    await eventually(lambda: done("strict"))


async def test_post_drain_pod_reboots_node_into_new_os(simulation: Simulation) -> None:
    client, hosts = simulation.client(), simulation.hosts
    simulation.scenario.release.model_dump()
    before = (await client.get(NODES, "node-0"))["status"]["nodeInfo"]["bootID"]
    hosts.install("node-0", "Harvester v1.8.0", reboot_after="some-pod")
    hosts.pod_ended("node-0", "another-pod")
    await asyncio.sleep(10)
    assert (await client.get(NODES, "node-0"))["status"]["nodeInfo"]["bootID"] == before
    hosts.pod_ended("node-0", "some-pod")

    async def is_ready() -> bool:
        return objects.is_condition_true(await client.get(NODES, "node-0"), "Ready")

    async def is_down() -> bool:
        return not await is_ready()

    await eventually(is_down)
    down = await client.get(NODES, "node-0")
    assert {taint["key"] for taint in down["spec"]["taints"]} == {"node.kubernetes.io/unreachable"}
    await eventually(is_ready)
    after = (await client.get(NODES, "node-0"))["status"]["nodeInfo"]
    assert after["osImage"] == "Harvester v1.8.0"
    assert after["bootID"] != before


@pytest.mark.parametrize(
    ("fault", "ready", "system"),
    [("lost_on_reboot", False, "Harvester v1.7.1"), ("unchanged_by_reboot", True, "Harvester v1.7.1")],
)
async def test_reboot_faults(fault: str, system: str, *, ready: bool) -> None:
    scenario = load("three-nodes").changed(vms={"count": 0}, node_faults={fault: ["node-0"]})
    async with Simulation(scenario) as simulation:
        simulation.hosts.install("node-0", "Harvester v1.8.0", reboot_after="p")
        simulation.hosts.pod_ended("node-0", "p")
        await asyncio.sleep(60)
        node = await simulation.client().get(NODES, "node-0")
        assert objects.is_condition_true(node, "Ready") is ready
        assert node["status"]["nodeInfo"]["osImage"] == system
