from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.toolkit.charts.overcommit import overcommit_not_pinned, pin_overcommit

DEFAULT = '{"cpu":1600,"memory":150,"storage":200}'
OWN = '{"cpu":800,"memory":150,"storage":200}'


async def test_default_becomes_the_value(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        words = "Setting overcommit-config has no value, and its default is about to change"
        assert await overcommit_not_pinned(world.context()) == words
        await pin_overcommit(world.context())
        assert await overcommit_not_pinned(world.context()) == ""
        found = await world.client.get(SETTINGS, "overcommit-config")
        assert (found["value"], found["default"]) == (DEFAULT, DEFAULT)


@pytest.mark.parametrize(
    ("change", "running"),
    [
        pytest.param({"value": OWN}, "v1.7.1", id="a-user's-value"),
        pytest.param({"default": ""}, "v1.7.1", id="no-default"),
        pytest.param({"default": None}, "v1.7.1", id="default-absent"),
        pytest.param({}, "v1.8.0", id="harvester-is-upgraded"),
        pytest.param({}, "v1.8.0-rc1", id="harvester-is-a-prerelease"),
        pytest.param({}, "master-1a2b3c", id="harvester-is-a-build"),
    ],
)
async def test_other_settings_stay(tmp_path: Path, change: dict[str, Any], running: str) -> None:
    async with services_world(tmp_path) as world:
        await world.client.patch(SETTINGS, "overcommit-config", MergePatch(change))
        await world.client.patch(SETTINGS, "server-version", MergePatch({"value": running}))
        before = await world.client.get(SETTINGS, "overcommit-config")
        assert await overcommit_not_pinned(world.context()) == ""
        await pin_overcommit(world.context())
        assert await world.client.get(SETTINGS, "overcommit-config") == before


async def test_absent_setting_needs_no_pin(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.delete(SETTINGS, "overcommit-config")
        assert await overcommit_not_pinned(world.context()) == ""


async def test_version_that_runs_must_be_known(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.delete(SETTINGS, "server-version")
        with pytest.raises(NotFound):
            await overcommit_not_pinned(world.context())
