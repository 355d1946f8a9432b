from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services_world
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, MANAGED_CHARTS
from upgrade_manager.toolkit.charts.fleet_address import (
    ANNOTATION_ADDRESS,
    address_changed,
    address_not_recorded,
    record_address,
    record_left,
    remove_record,
    restore_address,
)
from upgrade_manager.toolkit.run.errors import StepFailed

URL, CA = "https://192.168.0.131", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"
NOT_RECORDED = "apiServerURL and apiServerCA of ConfigMap cattle-fleet-system/fleet-controller are not recorded"


async def configure(world: ToolkitWorld, text: str) -> None:
    patch = MergePatch({"data": {"config": text}})
    await world.client.patch(CONFIG_MAPS, "fleet-controller", patch, namespace="cattle-fleet-system")


async def config_of(world: ToolkitWorld) -> Any:
    found = await world.client.get(CONFIG_MAPS, "fleet-controller", namespace="cattle-fleet-system")
    return json.loads(found["data"]["config"])


async def record_of(world: ToolkitWorld) -> Any:
    chart = await world.client.get(MANAGED_CHARTS, "harvester", namespace="fleet-local")
    return json.loads(objects.annotations_of(chart).get(ANNOTATION_ADDRESS, "null"))


async def annotate(world: ToolkitWorld, text: str) -> None:
    patch = MergePatch({"metadata": {"annotations": {ANNOTATION_ADDRESS: text}}})
    await world.client.patch(MANAGED_CHARTS, "harvester", patch, namespace="fleet-local")


async def test_values_are_recorded_and_restored(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        assert await address_not_recorded(context) == NOT_RECORDED
        await record_address(context)
        assert await record_of(world) == {"plan": PLAN, "apiServerURL": URL, "apiServerCA": CA}
        assert (await address_not_recorded(context), await address_changed(context)) == ("", "")
        await configure(world, json.dumps({"apiServerURL": "", "apiServerCA": CA, "agentTLSMode": "strict"}))
        # A killed command runs again, and keeps the record.
        assert await address_not_recorded(context) == ""
        name = "ConfigMap cattle-fleet-system/fleet-controller"
        assert await address_changed(context) == f"{name} has another apiServerURL than before Rancher's upgrade"
        await restore_address(context)
        assert await config_of(world) == {"apiServerURL": URL, "apiServerCA": CA, "agentTLSMode": "strict"}
        assert await address_changed(context) == ""
        assert await record_left(context) == f"{ANNOTATION_ADDRESS} is still recorded"
        await remove_record(context)
        assert (await record_left(context), await record_of(world)) == ("", None)


@pytest.mark.parametrize("config", ["{}", "[]", '{"apiServerURL": 1}', ""], ids=["empty", "list", "number", "none"])
async def test_nothing_to_record(tmp_path: Path, config: str) -> None:
    async with services_world(tmp_path) as world:
        await configure(world, config)
        assert await address_not_recorded(world.context()) == ""
        assert await address_changed(world.context()) == ""


async def test_absent_configuration_is_neither_recorded_nor_restored(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await annotate(world, json.dumps({"plan": PLAN, "apiServerURL": URL}))
        await world.client.delete(CONFIG_MAPS, "fleet-controller", namespace="cattle-fleet-system")
        assert await address_not_recorded(world.context(plan="other")) == ""
        await restore_address(world.context())


async def test_unreadable_configuration_is_named(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await configure(world, "{")
        with pytest.raises(StepFailed, match="fleet-controller: config is not JSON"):
            await address_not_recorded(world.context())


@pytest.mark.parametrize("text", ["", "{", "[]"])
async def test_unreadable_record_is_none(tmp_path: Path, text: str) -> None:
    async with services_world(tmp_path) as world:
        await annotate(world, text)
        assert await address_not_recorded(world.context()) == NOT_RECORDED
        assert await address_changed(world.context()) == ""


async def test_record_of_a_plan_that_failed_earlier(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        record = json.dumps({"plan": "earlier", "apiServerURL": "https://earlier", "apiServerCA": CA})
        await annotate(upgrade.world, record)
        # Before Rancher's upgrade, the present values count.
        assert await address_not_recorded(upgrade.world.context()) == NOT_RECORDED
        await upgrade.run()
        assert (await config_of(upgrade.world))["apiServerURL"] == URL
        # After it, the values of the plan that upgraded Rancher.
        await annotate(upgrade.world, record)
        assert await address_not_recorded(upgrade.world.context()) == ""
        await upgrade.run()
        assert (await config_of(upgrade.world))["apiServerURL"] == "https://earlier"
        assert await record_of(upgrade.world) is None
