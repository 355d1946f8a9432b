from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS
from upgrade_manager.toolkit.charts.chart_repository import (
    CHARTS,
    REPOSITORY,
    index_missing,
    refresh_index,
    repository_missing,
    upgrade_repository,
)
from upgrade_manager.toolkit.charts.cluster_resources import CLUSTER_REPOS
from upgrade_manager.toolkit.run.errors import StepFailed

SIDECAR = {"name": "sidecar", "image": "rancher/other:v1"}
ABOUT = "Deployment cattle-system/harvester-cluster-repo"


def container(image: str) -> dict[str, Any]:
    return {"name": "httpd", "image": image}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("rancher/harvester-cluster-repo:v1.7.1", "rancher/harvester-cluster-repo:v1.8.0", id="plain"),
        pytest.param("rancher/harvester-cluster-repo", "rancher/harvester-cluster-repo:v1.8.0", id="no-tag"),
        pytest.param(
            "mirror.example.com:5000/rancher/harvester-cluster-repo:v1.7.1",
            "mirror.example.com:5000/rancher/harvester-cluster-repo:v1.8.0",
            id="registry-with-port",
        ),
    ],
)
async def test_only_the_tag_changes(tmp_path: Path, old: str, new: str) -> None:
    async with services_world(tmp_path) as world:
        pod = {"containers": [SIDECAR, container(old)]}
        patch = MergePatch({"spec": {"template": {"spec": pod}}})
        await world.client.patch(DEPLOYMENTS, REPOSITORY, patch, namespace="cattle-system")
        assert await repository_missing(world.context()) == f"{ABOUT} has the image {old} instead of tag v1.8.0"
        await upgrade_repository(world.context())
        found = await world.client.get(DEPLOYMENTS, REPOSITORY, namespace="cattle-system")
        assert [one["image"] for one in objects.spec(found)["template"]["spec"]["containers"]] == [
            "rancher/other:v1",
            new,
        ]


async def test_deployment_of_another_form_is_reported(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        patch = MergePatch({"spec": {"template": {"spec": {"containers": [SIDECAR]}}}})
        await world.client.patch(DEPLOYMENTS, REPOSITORY, patch, namespace="cattle-system")
        with pytest.raises(StepFailed, match=f"^{ABOUT} has no container with an image harvester-cluster-repo$"):
            await repository_missing(world.context())
        await world.client.delete(DEPLOYMENTS, REPOSITORY, namespace="cattle-system")
        with pytest.raises(StepFailed, match=f"^{ABOUT} does not exist;"):
            await repository_missing(world.context())


async def test_index_is_refreshed_once_for_a_release(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        assert await index_missing(context) == f"ClusterRepo {CHARTS} is not refreshed yet"
        await refresh_index(context)
        first = await world.client.get(CLUSTER_REPOS, CHARTS)
        assert await index_missing(context) == f"ClusterRepo {CHARTS} is not downloaded yet: no reason is reported"
        await refresh_index(context)
        assert await world.client.get(CLUSTER_REPOS, CHARTS) == first
        failed = {"type": "Downloaded", "status": "False", "message": "connection refused"}
        status = MergePatch({"status": {"conditions": [failed]}})
        await world.client.patch(CLUSTER_REPOS, CHARTS, status, subresource="status")
        assert await index_missing(context) == f"ClusterRepo {CHARTS} is not downloaded yet: connection refused"
        status = MergePatch({"status": {"downloadTime": objects.spec(first)["forceUpdate"]}})
        await world.client.patch(CLUSTER_REPOS, CHARTS, status, subresource="status")
        assert await index_missing(context) == ""
        await world.client.delete(CLUSTER_REPOS, CHARTS)
        with pytest.raises(StepFailed, match=f"^ClusterRepo {CHARTS} does not exist;"):
            await index_missing(context)
