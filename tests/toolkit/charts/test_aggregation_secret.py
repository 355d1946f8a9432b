from __future__ import annotations

from pathlib import Path

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import SECRETS
from upgrade_manager.toolkit.charts.aggregation_secret import create_secret, secret_missing

NAME, PLACE = "stv-aggregation", "cattle-system"


async def test_secret_is_created_empty(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert await secret_missing(world.context()) == f"Secret {PLACE}/{NAME} does not exist"
        await create_secret(world.context())
        assert await secret_missing(world.context()) == ""
        secret = await world.client.get(SECRETS, NAME, namespace=PLACE)
        assert (secret["type"], secret.get("data")) == ("Opaque", None)


async def test_secret_that_exists_keeps_its_content(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        body: Object = {"metadata": {"name": NAME, "namespace": PLACE}, "data": {"CATTLE_SERVER": "aHR0cHM6Ly9h"}}
        await world.client.create(SECRETS, SECRETS.with_type_meta(body))
        assert await secret_missing(world.context()) == ""
        await create_secret(world.context())
        secret = await world.client.get(SECRETS, NAME, namespace=PLACE)
        assert secret["data"] == {"CATTLE_SERVER": "aHR0cHM6Ly9h"}
