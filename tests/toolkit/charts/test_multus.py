from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hack.faults.rules import Match, Refuse, Rule
from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services_world
from tests.support.toolkit.toolkit import ToolkitWorld
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.toolkit.charts.cluster_resources import HELM_CHART_CONFIGS
from upgrade_manager.toolkit.charts.multus import abort_not_set, set_abort

MULTUS, KUBE_SYSTEM = "rke2-multus", "kube-system"
PATH = f"/apis/helm.cattle.io/v1/namespaces/{KUBE_SYSTEM}/helmchartconfigs"
OBJECT = f"HelmChartConfig {KUBE_SYSTEM}/{MULTUS}"


async def _create(world: ToolkitWorld, **spec: str) -> None:
    body: Object = {"metadata": {"name": MULTUS, "namespace": KUBE_SYSTEM}, "spec": spec}
    await world.client.create(HELM_CHART_CONFIGS, HELM_CHART_CONFIGS.with_type_meta(body))


async def _spec(world: ToolkitWorld) -> Object:
    return objects.spec(await world.client.get(HELM_CHART_CONFIGS, MULTUS, namespace=KUBE_SYSTEM))


async def test_absent_configuration_is_created(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert await abort_not_set(world.context()) == f"{OBJECT} does not exist"
        await set_abort(world.context())
        assert await _spec(world) == {"failurePolicy": "abort"}
        assert await abort_not_set(world.context()) == ""


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        pytest.param({}, "has failurePolicy reinstall by default", id="default"),
        pytest.param({"failurePolicy": "reinstall"}, "has failurePolicy reinstall", id="set"),
    ],
)
async def test_values_of_a_configuration_stay(tmp_path: Path, policy: dict[str, str], words: str) -> None:
    async with services_world(tmp_path) as world:
        await _create(world, valuesContent="labels: {}", **policy)
        assert await abort_not_set(world.context()) == f"{OBJECT} {words}"
        await set_abort(world.context())
        assert await _spec(world) == {"valuesContent": "labels: {}", "failurePolicy": "abort"}


async def test_configuration_that_appears_meanwhile_is_patched(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await _create(upgrade.world, valuesContent="labels: {}")
        absent = Refuse(status=404, reason="NotFound")
        match = Match(verbs=("get",), resource="helmchartconfigs*")
        rule = Rule(match=match, action=absent)
        upgrade.world.simulation.middleware.add(rule)

        async def appear() -> None:
            await asyncio.sleep(1)
            upgrade.world.simulation.middleware.remove(rule)

        async with asyncio.TaskGroup() as group:
            group.create_task(appear())
            await upgrade.run()
        assert upgrade.kills.writes[:2] == [f"create {PATH}", f"patch {PATH}/{MULTUS}"]
        assert await _spec(upgrade.world) == {"valuesContent": "labels: {}", "failurePolicy": "abort"}


async def test_policy_is_written_first_and_once(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await upgrade.run()
        assert [one for one in upgrade.kills.writes if PATH in one] == upgrade.kills.writes[:1]
        patch = MergePatch({"spec": {"failurePolicy": "reinstall"}})
        await upgrade.world.client.patch(HELM_CHART_CONFIGS, MULTUS, patch, namespace=KUBE_SYSTEM)
        await upgrade.run()
        assert (await _spec(upgrade.world))["failurePolicy"] == "abort"
