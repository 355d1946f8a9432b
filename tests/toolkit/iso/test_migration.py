from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SETTINGS, UPGRADE_PLANS
from upgrade_manager.release.migrations.v1_7_to_v1_8 import FEATURES


async def _record(world: ToolkitWorld, version: str) -> None:
    patch = MergePatch({"status": {"previousVersion": version}})
    await world.client.patch(UPGRADE_PLANS, PLAN, patch, subresource="status")


async def _run_version(world: ToolkitWorld, version: str) -> None:
    await world.client.patch(SETTINGS, "server-version", MergePatch({"value": version}))


@pytest.mark.parametrize(
    ("recorded", "has"),
    [("v1.7.1", True), ("v1.7.0-rc2", True), ("v1.8.0-rc1", False), ("v1.6.1", False), ("master-1a2b", False)],
)
async def test_plan_names_the_version_before(tmp_path: Path, recorded: str, *, has: bool) -> None:
    async with services_world(tmp_path) as world:
        await _run_version(world, "v1.8.0" if has else "v1.7.1")
        await _record(world, recorded)
        assert await world.context().migration.has(FEATURES) is has


async def test_job_of_a_deleted_plan_reads_the_setting(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.delete(UPGRADE_PLANS, PLAN)
        assert await world.context().migration.has(FEATURES)
        await _run_version(world, "v1.8.0")
        assert not await world.context().migration.has(FEATURES)
        await world.client.delete(SETTINGS, "server-version")
        with pytest.raises(NotFound):
            await world.context().migration.has(FEATURES)


async def test_job_does_not_read_another_plan(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await _record(world, "v1.6.1")
        assert not await world.context().migration.has(FEATURES)
        assert await world.context(plan_uid="of-an-earlier-plan").migration.has(FEATURES)


async def test_plan_that_is_deleted_meanwhile_changes_nothing(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await _record(world, "v1.7.1")
        migration = world.context().migration
        assert await migration.has(FEATURES)
        await world.client.delete(UPGRADE_PLANS, PLAN)
        await _run_version(world, "v1.8.0")
        assert await migration.has(FEATURES)


async def test_release_of_another_minor_has_no_rows(tmp_path: Path) -> None:
    async with services_world(tmp_path, release={"harvester": "v1.7.2"}) as world:
        assert not await world.context().migration.has(FEATURES)
