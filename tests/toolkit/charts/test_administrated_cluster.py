from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.toolkit.charts.administrated_cluster import annotate_cluster, cluster_not_annotated
from upgrade_manager.toolkit.charts.cluster_resources import RANCHER_CLUSTERS

KEY = "provisioning.cattle.io/administrated"


@pytest.mark.parametrize("value", [None, "false"])
async def test_cluster_is_annotated(tmp_path: Path, value: str | None) -> None:
    async with services_world(tmp_path) as world:
        patch = MergePatch({"metadata": {"annotations": {KEY: value, "other": "stays"}}})
        await world.client.patch(RANCHER_CLUSTERS, "local", patch)
        assert await cluster_not_annotated(world.context()) == (
            f"Cluster local of management.cattle.io lacks the annotation {KEY}"
        )
        await annotate_cluster(world.context())
        assert await cluster_not_annotated(world.context()) == ""
        cluster = await world.client.get(RANCHER_CLUSTERS, "local")
        assert objects.annotations_of(cluster) == {KEY: "true", "other": "stays"}


async def test_missing_cluster_is_an_error(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.delete(RANCHER_CLUSTERS, "local")
        with pytest.raises(NotFound):
            await cluster_not_annotated(world.context())
