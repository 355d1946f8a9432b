from __future__ import annotations

from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from hack.faults.rules import Match, Refuse, Rule
from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services_world
from upgrade_manager.kube.errors import Conflict, Forbidden
from upgrade_manager.kube.objects import Object
from upgrade_manager.toolkit.charts.cluster_resources import RANCHER_SETTINGS
from upgrade_manager.toolkit.charts.internal_certificate import name_services, services_not_named

NAME = "tls-internal-cn-allowed-services"
NGINX, TRAEFIK = "kube-system/ingress-expose", "kube-system/rke2-traefik"


def setting(value: str) -> Object:
    return RANCHER_SETTINGS.with_type_meta({"metadata": {"name": NAME}, "value": value})


async def test_setting_is_created_as_rancher_would_create_it(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert await services_not_named(world.context()) == f"Rancher's Setting {NAME} lacks {NGINX}, {TRAEFIK}"
        await name_services(world.context())
        assert await services_not_named(world.context()) == ""
        found = await world.client.get(RANCHER_SETTINGS, NAME)
        assert found["value"] == f"{NGINX},{TRAEFIK}"
        assert (found["default"], found["source"], found["customized"]) == ("", "", False)


@pytest.mark.parametrize(
    ("value", "missing", "written"),
    [
        pytest.param("", (NGINX, TRAEFIK), f"{NGINX},{TRAEFIK}", id="empty"),
        pytest.param(NGINX, (TRAEFIK,), f"{NGINX},{TRAEFIK}", id="one"),
        pytest.param(f"{TRAEFIK}, {NGINX}", (), f"{TRAEFIK}, {NGINX}", id="both"),
        pytest.param("kube-system/vip", (NGINX, TRAEFIK), f"kube-system/vip,{NGINX},{TRAEFIK}", id="a-user's"),
    ],
)
async def test_services_are_added_to_a_value(
    tmp_path: Path, value: str, missing: tuple[str, ...], written: str
) -> None:
    async with services_world(tmp_path) as world:
        await world.client.create(RANCHER_SETTINGS, setting(value))
        words = f"Rancher's Setting {NAME} lacks {', '.join(missing)}" if missing else ""
        assert await services_not_named(world.context()) == words
        if missing:
            await name_services(world.context())
        assert (await world.client.get(RANCHER_SETTINGS, NAME))["value"] == written
        assert await services_not_named(world.context()) == ""


async def test_setting_that_appears_meanwhile_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        monkeypatch.setattr(context.client, "find", AsyncMock(return_value=None))
        await world.client.create(RANCHER_SETTINGS, setting("kube-system/vip"))
        with pytest.raises(Conflict):
            await name_services(context)
        assert (await world.client.get(RANCHER_SETTINGS, NAME))["value"] == "kube-system/vip"


async def test_refused_read_is_not_taken_for_absence(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        match = Match(verbs=("get",), resource="settings.management.cattle.io")
        refuse = Rule(match=match, action=Refuse(status=403, reason="Forbidden"))
        upgrade.world.simulation.middleware.add(refuse)
        with pytest.raises(Forbidden):
            await services_not_named(upgrade.world.context(client=upgrade.client))
