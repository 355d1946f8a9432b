from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.toolkit.toolkit import toolkit_world
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES
from upgrade_manager.toolkit.host.host_paths import WORK
from upgrade_manager.toolkit.vms.longhorn_gate import forget_skipped_volumes, volumes_at_risk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.toolkit.toolkit import ToolkitWorld

VOLUME = "pvc-1"
#: Nodes that run VMs, by scenario.
SCENARIOS = {1: "one-node", 2: "witness", 3: "three-nodes"}


@asynccontextmanager
async def volume_world(
    folder: Path, *, nodes: int, robustness: str = "healthy", replicas: int = 3, modes: str = "", state: str = "running"
) -> AsyncIterator[ToolkitWorld]:
    """Create a world with one volume; `modes` are those of its replicas."""
    async with toolkit_world(folder, scenario=SCENARIOS[nodes]) as world:
        for resource in (LONGHORN_VOLUMES, LONGHORN_ENGINES):
            await world.client.delete_collection(resource, namespace=LONGHORN_SYSTEM)
        claim = {"namespace": "default", "pvcName": "db-disk-0"}
        await volume(world, VOLUME, replicas=replicas, robustness=robustness, kubernetesStatus=claim)
        mapped = {f"r-{index}": mode for index, mode in enumerate(modes.split())} or None
        await engine(world, {"currentState": state, "replicaModeMap": mapped})
        yield world


async def volume(world: ToolkitWorld, name: str, *, replicas: int = 3, **status: Any) -> None:
    obj = named(name, LONGHORN_SYSTEM, spec={"numberOfReplicas": replicas}, status=status)
    await create(world.client, LONGHORN_VOLUMES, obj)


async def engine(world: ToolkitWorld, status: dict[str, Any], *, name: str = "e-0", of: str = VOLUME) -> None:
    obj = named(f"{of}-{name}", LONGHORN_SYSTEM, labels={"longhornvolume": of}, spec={}, status=status)
    await create(world.client, LONGHORN_ENGINES, obj)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"nodes": 3}, "", id="healthy"),
        pytest.param({"nodes": 3, "robustness": "degraded"}, "degraded, not healthy", id="degraded"),
        pytest.param({"nodes": 3, "robustness": ""}, "unknown, not healthy", id="unknown"),
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
        expected = f"1 volumes: default/db-disk-0 (volume pvc-1: {problem})" if problem else ""
        assert await volumes_at_risk(world.context()) == expected


async def test_second_engine_of_a_migration_counts(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=2, modes="RW RW") as world:
        await engine(world, {"currentState": "running", "replicaModeMap": {"r-0": "RW"}}, name="e-1")
        assert "1 of 2 replicas are writable" in await volumes_at_risk(world.context())


async def test_engine_without_a_volume_is_ignored(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3) as world:
        await engine(world, {"currentState": "running", "replicaModeMap": {}}, of="pvc-9")
        assert await volumes_at_risk(world.context()) == ""


async def test_volume_without_a_claim_has_its_own_name(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3) as world:
        await volume(world, "pvc-2", robustness="faulted")
        await engine(world, {"currentState": "running", "replicaModeMap": {}}, of="pvc-2")
        found = await volumes_at_risk(world.context())
        assert found == "1 volumes: without a claim (volume pvc-2: faulted, not healthy)"


async def test_skipped_volume_is_not_awaited_until_it_is_forgotten(tmp_path: Path) -> None:
    async with volume_world(tmp_path, nodes=3, robustness="degraded") as world:
        context = world.context()
        await forget_skipped_volumes(context)
        world.tree.write(f"{WORK}/skip-pvc-2", "")
        assert await volumes_at_risk(context) != ""
        world.tree.write(f"{WORK}/skip-pvc-1", "")
        world.tree.write(f"{WORK}/os/upgrade.json", "{}")
        assert await volumes_at_risk(context) == ""
        await forget_skipped_volumes(context)
        assert await volumes_at_risk(context) != ""
        assert world.tree.names(WORK) == ["os"]
