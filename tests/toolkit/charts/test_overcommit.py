from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS, SETTINGS
from upgrade_manager.toolkit.charts.overcommit import (
    ANNOTATION_PINNED,
    overcommit_not_pinned,
    pin_overcommit,
    pin_recorded,
    settle_pin,
)
from upgrade_manager.toolkit.run.errors import StepFailed

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
        assert objects.annotations_of(found) == {ANNOTATION_PINNED: DEFAULT}


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
        assert await pin_recorded(world.context()) == ""
        await settle_pin(world.context())


@pytest.mark.parametrize(
    ("chart", "value", "left"),
    [
        pytest.param("1.7.1", DEFAULT, "", id="before"),
        pytest.param("1.7.1", OWN, OWN, id="a-user's-value"),
        pytest.param("1.8.0", DEFAULT, DEFAULT, id="harvester-is-upgraded"),
    ],
)
async def test_pin_is_settled(tmp_path: Path, chart: str, value: str, left: str) -> None:
    async with services_world(tmp_path) as world:
        await pin_overcommit(world.context())
        await world.client.patch(SETTINGS, "overcommit-config", MergePatch({"value": value}))
        version = MergePatch({"spec": {"version": chart}})
        await world.client.patch(MANAGED_CHARTS, "harvester", version, namespace="fleet-local")
        assert (
            await pin_recorded(world.context()) == f"Setting overcommit-config has the annotation {ANNOTATION_PINNED}"
        )
        # A killed command runs again.
        for _ in range(2):
            await settle_pin(world.context())
            found = await world.client.get(SETTINGS, "overcommit-config")
            assert (found["value"], objects.annotations_of(found)) == (left, {})
        assert await pin_recorded(world.context()) == ""


async def test_value_of_a_user_has_no_record(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.patch(SETTINGS, "overcommit-config", MergePatch({"value": DEFAULT}))
        await pin_overcommit(world.context())
        await settle_pin(world.context())
        assert (await world.client.get(SETTINGS, "overcommit-config"))["value"] == DEFAULT


async def test_failure_before_harvesters_upgrade_gives_the_pin_up(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        upgrade.helm.failures = ["failed"]
        with pytest.raises(StepFailed, match=r"^upgrade-rancher: "):
            await upgrade.run()
        found = await upgrade.world.client.get(SETTINGS, "overcommit-config")
        assert (found["value"], objects.annotations_of(found)) == ("", {})
        await upgrade.run()
        found = await upgrade.world.client.get(SETTINGS, "overcommit-config")
        assert (found["value"], objects.annotations_of(found)) == (DEFAULT, {})


async def test_version_that_runs_must_be_known(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.delete(SETTINGS, "server-version")
        with pytest.raises(NotFound):
            await overcommit_not_pinned(world.context())
