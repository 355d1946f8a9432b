"""Add-ons, charts, the repository's files, and what kubelets answer behind the proxy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml

from hack.actors.kinds import MANAGED_CHARTS
from hack.actors.repository import files_of
from hack.cluster.scenario import load
from hack.simulation import Simulation
from tests.support.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Throttled, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS

SMALL = load("three-nodes").changed(jitter=0.0, vms={"count": 0})


@pytest.mark.parametrize(
    ("enabled", "on_the_way", "end"),
    [(False, "AddonDisabling", "AddonDisabled"), (True, "AddonEnabling", "AddonDeploySuccessful")],
)
async def test_addon_state_follows_spec_enabled(enabled: bool, on_the_way: str, end: str) -> None:  # noqa: FBT001
    scenario = SMALL.changed(addons=[{"name": "descheduler", "enabled": not enabled}])
    async with Simulation(scenario) as simulation:
        client = simulation.client()

        async def state() -> str:
            found = await client.get(ADDONS, "descheduler", namespace="kube-system")
            return str(objects.status(found).get("status"))

        before = await state()
        patch = MergePatch({"spec": {"enabled": enabled}})
        await client.patch(ADDONS, "descheduler", patch, namespace="kube-system")
        seen = [before]
        while seen[-1] != end:
            await asyncio.sleep(0.02)
            seen += [await state()] if await state() != seen[-1] else []
        assert seen == [before, on_the_way, end]


async def test_changed_chart_is_stale_then_not_ready_then_ready() -> None:
    async with Simulation(SMALL) as simulation:
        client = simulation.client()

        async def look() -> tuple[Any, int]:
            found = await client.get(MANAGED_CHARTS, "harvester", namespace="fleet-local")
            status = objects.status(found)
            return (objects.condition(found, "Ready") or {})["status"], status["observedGeneration"]

        patch = MergePatch({"spec": {"version": "1.8.0", "timeoutSeconds": 601}})
        await client.patch(MANAGED_CHARTS, "harvester", patch, namespace="fleet-local")
        assert await look() == ("True", 12)
        seen: list[tuple[str, int]] = []
        while not seen or seen[-1] != ("True", 13):
            await asyncio.sleep(0.02)
            seen += [await look()] if not seen or await look() != seen[-1] else []
        assert [ready for ready, _ in seen][-2:] == ["False", "True"]


def test_release_file_has_the_scenarios_values() -> None:
    files = files_of(SMALL)
    release = yaml.safe_load(files["harvester-release.yaml"])
    assert (release["harvester"], release["kubernetes"]) == ("v1.8.0", "v1.35.2+rke2r1")
    lists = "bundle/harvester/images-lists-archive"
    old, new = (set(files[f"{lists}/{part}/image_list_all.txt"].decode().split()) for part in ("v1.7.1", "current"))
    assert old - new
    assert new - old
    assert old & new


@pytest.mark.parametrize("values", [{"dead": ["node-0"]}, {"disks": {"node-0": {"answers": False}}}])
async def test_unresponsive_kubelet_is_503(values: dict[str, Any]) -> None:
    async with Simulation(SMALL.changed(nodes=values)) as simulation:
        with pytest.raises((Transient, Throttled)):
            await simulation.client().raw("GET", "/api/v1/nodes/node-0/proxy/stats/summary")
        with pytest.raises(NotFound):
            await simulation.client().raw("GET", "/api/v1/nodes/node-9/proxy/stats/summary")


async def test_kubelet_responds_after_its_outage() -> None:
    async with Simulation(SMALL.changed(nodes={"disks": {"node-0": {"unreachable": 30}}}), scale=0.5) as simulation:
        client = simulation.client()
        await asyncio.sleep(100)
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - began < 14.9:
            with pytest.raises((Transient, Throttled)):
                await client.raw("GET", "/api/v1/nodes/node-0/proxy/configz")
            await asyncio.sleep(1)
        await asyncio.sleep(0.1)
        assert (await client.raw("GET", "/api/v1/nodes/node-0/proxy/configz")).status == 200


async def test_initial_cluster_is_stable() -> None:
    """Nothing that is planted is a contradiction which an actor would have to resolve."""
    async with Simulation(load("three-nodes")) as simulation:
        await asyncio.sleep(5)
        before = await simulation.dump()
        await asyncio.sleep(300)
        assert await simulation.dump() == before
        await eventually(lambda: _ready(simulation))


async def _ready(simulation: Simulation) -> bool:
    return all(
        objects.is_condition_true(one, "Ready") for one in (await simulation.client().list(MANAGED_CHARTS)).items
    )
