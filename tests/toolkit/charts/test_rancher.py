from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, PROVISIONING_CLUSTERS
from upgrade_manager.toolkit.charts.cluster_resources import CLUSTER_REPOS, RANCHER_SETTINGS
from upgrade_manager.toolkit.charts.rancher import help_dependencies, rancher_not_running, with_version

PINNED = {"name": "CATTLE_SHELL_IMAGE", "value": "rancher/shell:v0.5.0"}
PROXY = {"name": "HTTP_PROXY", "value": "http://proxy"}


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        pytest.param({}, {}, id="defaults-of-the-chart"),
        pytest.param({"rancherImageTag": "v1"}, {"rancherImageTag": "v2"}, id="tag"),
        pytest.param({"image": {"tag": "v1", "a": 1}}, {"image": {"tag": "v2", "a": 1}}, id="tag-of-image"),
        pytest.param({"image": {"repository": "r"}}, {"image": {"repository": "r"}}, id="image-without-tag"),
        pytest.param({"extraEnv": [PROXY, PINNED]}, {"extraEnv": [PROXY]}, id="pinned-image"),
        pytest.param({"extraEnv": None, "replicas": -3}, {"extraEnv": None, "replicas": -3}, id="others"),
    ],
)
def test_values_with_version(values: dict[str, Any], changed: dict[str, Any]) -> None:
    before = repr(values)
    assert with_version(values, "v2") == changed
    assert repr(values) == before


async def test_what_rancher_waits_for(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        client, context = world.client, world.context()
        assert "its change is not observed yet" in await rancher_not_running(context)
        status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        patch = MergePatch({"status": status})
        await client.patch(DEPLOYMENTS, "rancher", patch, namespace="cattle-system", subresource="status")
        assert await rancher_not_running(context) == "Rancher reports version v2.13.1 instead of v2.14.0"
        await client.patch(RANCHER_SETTINGS, "server-version", MergePatch({"value": "v2.14.0"}))
        assert await rancher_not_running(context) == ""
        ready = {"type": "Ready", "status": "False", "message": "waiting for agent"}
        patch = MergePatch({"status": {"ready": False, "conditions": [ready]}})
        await client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local", subresource="status")
        words = "Cluster fleet-local/local is not ready: Ready: waiting for agent"
        assert await rancher_not_running(context) == words
        await client.delete(RANCHER_SETTINGS, "server-version")
        assert await rancher_not_running(context) == "Rancher's Setting server-version does not exist"


async def test_rancher_charts_may_be_absent(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        await world.client.delete(CLUSTER_REPOS, "rancher-charts")
        await help_dependencies(world.context())
        with pytest.raises(NotFound):
            await world.client.get(CLUSTER_REPOS, "rancher-charts")
