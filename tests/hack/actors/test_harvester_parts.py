"""Add-ons, charts and the initial cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hack.scenario import load
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, MANAGED_CHARTS

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

        async def state() -> tuple[Any, int]:
            found = await client.get(MANAGED_CHARTS, "harvester", namespace="fleet-local")
            status = objects.status(found)
            return objects.condition(found, "Ready")["status"], status["observedGeneration"]

        patch = MergePatch({"spec": {"version": "1.8.0", "timeoutSeconds": 601}})
        await client.patch(MANAGED_CHARTS, "harvester", patch, namespace="fleet-local")
        assert await state() == ("True", 12)
        seen: list[tuple[str, int]] = []
        while not seen or seen[-1] != ("True", 13):
            await asyncio.sleep(0.02)
            seen += [await state()] if not seen or await state() != seen[-1] else []
        assert [ready for ready, _ in seen][-2:] == ["False", "True"]


async def test_initial_cluster_is_stable() -> None:
    async with Simulation(load("three-nodes")) as simulation:
        await asyncio.sleep(5)
        before = await simulation.dump()
        await asyncio.sleep(300)
        assert await simulation.dump() == before
        charts = (await simulation.client().list(MANAGED_CHARTS)).items
        assert all(objects.is_condition_true(chart, "Ready") for chart in charts)
