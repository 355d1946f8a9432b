from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.toolkit.volume_world import add_engine, add_volume, volume_world
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES
from upgrade_manager.toolkit.host.host_paths import WORK
from upgrade_manager.toolkit.vms.longhorn_gate import forget_skipped_volumes, unsafe_volumes

DEGRADED = "its robustness is degraded instead of healthy"


def assert_named(found: str, text: str, volume: str) -> None:
    """Check the volume, its problem, and its remedies, of which the skipped wait is the last."""
    begin, end = f"1 volumes: {text}. For the first one: (1) ", f"touch /usr/local/harvester-upgrade/skip-{volume}"
    assert (found[: len(begin)], found[-len(end) :]) == (begin, end)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"nodes": 3}, "", id="healthy"),
        pytest.param({"nodes": 3, "robustness": "degraded"}, DEGRADED, id="degraded"),
        pytest.param({"nodes": 3, "robustness": ""}, "its robustness is unknown instead of healthy", id="unknown"),
        pytest.param({"nodes": 3, "robustness": "degraded", "state": "stopped"}, "", id="stopped-engine"),
        pytest.param({"nodes": 2, "robustness": "degraded", "modes": "RW RW"}, "", id="two-writable"),
        pytest.param({"nodes": 2, "modes": "RW WO ERR"}, "1 of 2 replicas are writable", id="one-writable"),
        pytest.param({"nodes": 2}, "0 of 2 replicas are writable", id="null-map"),
        pytest.param({"nodes": 2, "modes": "RW", "replicas": 1}, "", id="single-replica"),
        pytest.param({"nodes": 2, "modes": "ERR", "replicas": 1}, "0 of 1 replicas are writable", id="failed-replica"),
        pytest.param({"nodes": 1, "modes": "RW"}, "", id="only-node"),
        pytest.param({"nodes": 1, "modes": "WO"}, "0 of 1 replicas are writable", id="only-node-without-replica"),
    ],
)
async def test_volume(tmp_path: Path, settings: dict[str, Any], problem: str) -> None:
    async with volume_world(tmp_path, **settings) as world:
        found = await unsafe_volumes(world.context())
    if problem:
        assert_named(found, f"default/db-disk-0 (volume pvc-1: {problem})", "pvc-1")
    else:
        assert found == ""


async def test_second_engine_of_a_migration_counts(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=2, modes="RW RW") as world:
        await add_engine(world, {"currentState": "running", "replicaModeMap": {"r-0": "RW"}}, name="e-1")
        assert "1 of 2 replicas are writable" in await unsafe_volumes(world.context())


async def test_engine_without_a_volume_is_ignored(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3) as world:
        await add_engine(world, {"currentState": "running", "replicaModeMap": {}}, of="pvc-9")
        assert await unsafe_volumes(world.context()) == ""


async def test_volume_without_a_claim_has_its_own_name(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3) as world:
        await add_volume(world, "pvc-2", robustness="faulted")
        await add_engine(world, {"currentState": "running", "replicaModeMap": {}}, of="pvc-2")
        found = await unsafe_volumes(world.context())
        problem = "its robustness is faulted instead of healthy"
        assert_named(found, f"without a claim (volume pvc-2: {problem})", "pvc-2")


async def test_skipped_volume_is_not_awaited_until_it_is_forgotten(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3, robustness="degraded") as world:
        context = world.context()
        await forget_skipped_volumes(context)
        world.tree.write(f"{WORK}/skip-pvc-2", "")
        assert await unsafe_volumes(context) != ""
        world.tree.write(f"{WORK}/skip-pvc-1", "")
        world.tree.write(f"{WORK}/os/upgrade.json", "{}")
        assert await unsafe_volumes(context) == ""
        await forget_skipped_volumes(context)
        assert await unsafe_volumes(context) != ""
        assert world.tree.names(WORK) == ["os"]


async def test_objects_of_other_namespaces_do_not_count(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3) as world:
        for resource, spec, status in (
            (LONGHORN_VOLUMES, {}, {"robustness": "faulted"}),
            (LONGHORN_ENGINES, {"volumeName": "pvc-2"}, {"currentState": "running"}),
        ):
            await create(world.client, resource, named("pvc-2", "default", spec=spec, status=status))
        assert await unsafe_volumes(world.context()) == ""
