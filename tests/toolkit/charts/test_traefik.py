from __future__ import annotations

from pathlib import Path

import yaml

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.toolkit.charts.cluster_resources import HELM_CHART_CONFIGS
from upgrade_manager.toolkit.charts.traefik import create_values, values_missing

NAME, PLACE = "rke2-traefik", "kube-system"


async def test_values_are_created(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert await values_missing(world.context()) == f"HelmChartConfig {PLACE}/{NAME} does not exist"
        await create_values(world.context())
        assert await values_missing(world.context()) == ""
        found = await world.client.get(HELM_CHART_CONFIGS, NAME, namespace=PLACE)
        values = yaml.safe_load(objects.spec(found)["valuesContent"])
        assert values["logs"] == {"access": {"enabled": "true"}}
        assert [one.rpartition(".")[2] for one in values["additionalArguments"]] == [
            "readTimeout=30m",
            "writeTimeout=30m",
        ]


async def test_values_of_a_user_stay(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        body: Object = {"metadata": {"name": NAME, "namespace": PLACE}, "spec": {"valuesContent": "logs: {}"}}
        await world.client.create(HELM_CHART_CONFIGS, HELM_CHART_CONFIGS.with_type_meta(body))
        assert await values_missing(world.context()) == ""
        await create_values(world.context())
        found = await world.client.get(HELM_CHART_CONFIGS, NAME, namespace=PLACE)
        assert objects.spec(found) == {"valuesContent": "logs: {}"}
