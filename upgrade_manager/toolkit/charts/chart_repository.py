"""The repository of Harvester's charts: a Deployment in the cluster, and Rancher's index of the repository."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, PREFIX
from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS
from upgrade_manager.release.image_lists import repository_name
from upgrade_manager.toolkit.charts.cluster_resources import CLUSTER_REPOS
from upgrade_manager.toolkit.charts.rollouts import deployment_missing
from upgrade_manager.toolkit.run.errors import BadArchive, StepFailed

if TYPE_CHECKING:
    from typing import Any

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The name of the Deployment, and the last part of its image's name.
REPOSITORY = "harvester-cluster-repo"
CHARTS = "harvester-charts"
#: The reason for a forced download of the repository's index; set with spec.forceUpdate.
ANNOTATION_REFRESHED = f"{PREFIX}/refreshed-for"


async def repository_missing(context: ToolkitContext) -> str:
    """Return why the Deployment does not serve the release's charts yet."""
    tag = await _tag(context)
    container = _container(await _deployment(context))
    if _tag_of(container["image"]) != tag:
        return f"Deployment {CATTLE_SYSTEM}/{REPOSITORY} has the image {container['image']} instead of tag {tag}"
    return await deployment_missing(context.client, REPOSITORY, namespace=CATTLE_SYSTEM)


async def upgrade_repository(context: ToolkitContext) -> None:
    """Set the tag of the repository's image; the registry stays."""
    tag, deployment = await _tag(context), await _deployment(context)
    container = _container(deployment)
    if _tag_of(container["image"]) == tag:
        return
    image = container["image"].removesuffix(f":{_tag_of(container['image'])}") + f":{tag}"
    # A merge patch replaces lists as a whole; the resourceVersion protects the other containers.
    containers = [{**one, "image": image} if one == container else one for one in _containers(deployment)]
    body = {"spec": {"template": {"spec": {"containers": containers}}}}
    patch = MergePatch(body).at(objects.resource_version(deployment))
    await context.client.patch(DEPLOYMENTS, REPOSITORY, patch, namespace=CATTLE_SYSTEM)


async def index_missing(context: ToolkitContext) -> str:
    """Return why Rancher's index may not have the release's charts yet."""
    try:
        repository = await context.client.get(CLUSTER_REPOS, CHARTS)
    except NotFound as error:
        raise StepFailed(f"ClusterRepo {CHARTS} does not exist; Harvester's charts cannot be upgraded") from error
    wanted, downloaded = _forced(repository), _downloaded(repository)
    if objects.annotations_of(repository).get(ANNOTATION_REFRESHED) != await _reason(context) or wanted is None:
        return f"ClusterRepo {CHARTS} is not refreshed yet"
    if downloaded is not None and downloaded >= wanted:
        return ""
    condition = objects.condition(repository, "Downloaded")
    return f"ClusterRepo {CHARTS} is not downloaded yet: {condition.get('message') or 'no reason is reported'}"


async def refresh_index(context: ToolkitContext) -> None:
    """Let Rancher download the index."""
    await refresh(context.client, CHARTS, reason=await _reason(context))


async def refresh(client: Client, name: str, *, reason: str) -> None:
    """Let Rancher download a repository's index, once for each reason; skip a repository that does not exist.

    The requested time is one second after the last download, because Rancher ignores a time in the future, and clocks
    differ.
    """
    repository = await client.find(CLUSTER_REPOS, name)
    if repository is None:
        return
    if objects.annotations_of(repository).get(ANNOTATION_REFRESHED) == reason:
        return
    last = _downloaded(repository) or parse_time(objects.metadata(repository).get("creationTimestamp"))
    if last is None:
        raise StepFailed(f"ClusterRepo {name} has no creation time")
    body: Object = {
        "metadata": {"annotations": {ANNOTATION_REFRESHED: reason}},
        "spec": {"forceUpdate": format_time(last + timedelta(seconds=1))},
    }
    await client.patch(CLUSTER_REPOS, name, MergePatch(body).at(objects.resource_version(repository)))


def _forced(repository: Object) -> Any:
    return parse_time(objects.spec(repository).get("forceUpdate"))


def _downloaded(repository: Object) -> Any:
    return parse_time(objects.status(repository).get("downloadTime"))


async def _reason(context: ToolkitContext) -> str:
    return f"{REPOSITORY}-{await _tag(context)}"


async def _tag(context: ToolkitContext) -> str:
    """Return the tag of the repository's image in the release."""
    for archive in (await context.release.bundle()).common:
        for reference in await context.release.references(archive):
            if repository_name(reference) == REPOSITORY:
                return _tag_of(reference)
    raise BadArchive(f"no image list of the ISO names {REPOSITORY}, which has Harvester's charts")


def _tag_of(reference: str) -> str:
    return reference.rpartition("/")[2].partition(":")[2]


async def _deployment(context: ToolkitContext) -> Object:
    try:
        return await context.client.get(DEPLOYMENTS, REPOSITORY, namespace=CATTLE_SYSTEM)
    except NotFound as error:
        text = f"Deployment {CATTLE_SYSTEM}/{REPOSITORY} does not exist; Harvester's charts cannot be upgraded"
        raise StepFailed(text) from error


def _containers(deployment: Object) -> list[Object]:
    found: list[Object] = objects.spec(deployment)["template"]["spec"]["containers"]
    return found


def _container(deployment: Object) -> Object:
    for one in _containers(deployment):
        if repository_name(one.get("image") or "") == REPOSITORY:
            return one
    raise StepFailed(f"Deployment {CATTLE_SYSTEM}/{REPOSITORY} has no container with an image {REPOSITORY}")
