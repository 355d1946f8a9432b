from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hack.cluster.impersonation import ActingAs
from hack.cluster.scenario import Scenario, load
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from hack.virtual_time import EPOCH, run
from tests.support.polling import eventually
from tests.support.upgrade_script import UpgradeScript, job
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden, NotFound, Throttled, Transient
from upgrade_manager.kube.resources import JOBS, NODES, PODS, SECRETS, SETTINGS, UPGRADE_PLANS


def small(**values: Any) -> Scenario:
    """Three nodes with two VMs, unless said otherwise."""
    return load("three-nodes").changed(**({"vms": {"count": 2}} | values))


def script_for(simulation: Simulation) -> UpgradeScript:
    return UpgradeScript(simulation.client(), iso_url=simulation.iso_url, release=simulation.scenario.release)


async def upgraded(seed: int) -> str:
    """Return the end state of an upgrade."""
    async with Simulation(small(), seed=seed) as simulation:
        await script_for(simulation).run()
        return await simulation.dump()


def outcome(dump: str) -> list[tuple[str, str]]:
    """Return the OS image of each node at the end."""
    stored = [json.loads(line) for line in dump.splitlines()]
    return [(one["metadata"]["name"], one["status"]["nodeInfo"]["osImage"]) for one in stored if one["kind"] == "Node"]


async def test_cluster_is_upgraded_node_by_node() -> None:
    async with Simulation(small()) as simulation:
        client, script = simulation.client(), script_for(simulation)
        await script.run()
        nodes = (await client.list(NODES)).items
        assert {node["status"]["nodeInfo"]["osImage"] for node in nodes} == {"Harvester v1.8.0"}
        assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {"v1.35.2+rke2r1"}
        assert not any(objects.spec(node).get("unschedulable") or objects.spec(node).get("taints") for node in nodes)
        assert (await client.get(SETTINGS, "server-version"))["value"] == "v1.8.0"
        secrets = (await client.list(SECRETS, namespace="fleet-local")).items
        assert [key for one in secrets for key in objects.annotations_of(one) if "hook" in key or "drain" in key] == []
        assert [work for _, work in script.acknowledged] == ["pre-drain", "post-drain"] * 3
        assert [node for node, _ in script.acknowledged[::2]] == [node for node, _ in script.acknowledged[1::2]]


def test_same_seed_gives_identical_runs() -> None:
    assert run(upgraded(3)) == run(upgraded(3))


def test_other_seed_gives_the_same_result() -> None:
    first, second = run(upgraded(4)), run(upgraded(5))
    assert first != second
    assert sorted(outcome(first)) == sorted(outcome(second))


async def test_scale_zero_takes_almost_no_virtual_time() -> None:
    async with Simulation(small(), scale=0) as simulation:
        await script_for(simulation).run()
        assert (simulation.now() - EPOCH).total_seconds() < 10


async def test_managers_use_the_middleware() -> None:
    async with Simulation(small(), actors=False) as simulation:
        manager = Client(simulation.transport(), user_agent="manager", random=simulation.random)
        simulation.middleware.add(Rule(match=Match(resource="nodes"), action=Refuse(status=503, reason="x")))
        with pytest.raises((Transient, Throttled)):
            await manager.list(NODES)
        assert (await simulation.client().list(NODES)).items


async def test_manager_can_run_with_fewer_rights() -> None:
    async with Simulation(small(), actors=False) as simulation:
        acting = ActingAs(simulation.transport(), user="jane")
        jane = Client(acting, user_agent="manager", random=simulation.random)
        with pytest.raises(Forbidden):
            await jane.list(NODES)


async def test_plan_kind_can_be_left_out() -> None:
    plan = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": "demo"},
        "spec": {"version": "v1.8.0"},
    }
    async with Simulation(small(), actors=False) as simulation:
        assert objects.uid(await simulation.apply(plan))
    async with Simulation(small(), actors=False, crds=False) as simulation:
        with pytest.raises(NotFound):
            await simulation.client().list(UPGRADE_PLANS)


async def test_repository_responds_while_its_deployment_runs() -> None:
    url = "http://demo-repo.harvester-system/harvester-iso//harvester-release.yaml"
    async with Simulation(small()) as simulation:
        with pytest.raises(Transient):
            await simulation.repository.fetch(url, limit=10_000, timeout=5)
        script = script_for(simulation)
        await script.import_image()
        await script.start_repository()
        answer = await eventually(lambda: _fetched(simulation, url))
        assert b"os: Harvester v1.8.0" in answer.body


async def _fetched(simulation: Simulation, url: str) -> Any:
    try:
        return await simulation.repository.fetch(url, limit=10_000, timeout=5)
    except Transient:
        return None


async def test_pre_drain_fault_sets_the_termination_message() -> None:
    faults = [{"work": "pre-drain", "node": "node-1", "message": "volume pvc-1 is degraded"}]
    async with Simulation(small(faults=faults)) as simulation:
        client = simulation.client()
        command = ["upgrade_node.sh", "pre-drain"]
        for name in ("node-0", "node-1"):
            await client.create(JOBS, job(f"demo-{name}", "demo", command=command, node=name))

        async def ended(name: str, condition: str) -> bool:
            found = await client.get(JOBS, f"demo-{name}", namespace="harvester-system")
            return objects.is_condition_true(found, condition)

        await eventually(lambda: ended("node-0", "Complete"))
        await eventually(lambda: ended("node-1", "Failed"))
        pods = (await client.list(PODS, label_selector="job-name=demo-node-1")).items
        ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
        assert [end["message"] for end in ends] == ["volume pvc-1 is degraded"] * 3


async def test_failed_start_leaves_nothing_running() -> None:
    before = len(asyncio.all_tasks())
    broken = Simulation(small(vms={"machines": [{"name": "Not A Name", "node": "node-0"}]}))
    with pytest.raises(BaseExceptionGroup):
        async with broken:
            pass
    assert len(asyncio.all_tasks()) == before
