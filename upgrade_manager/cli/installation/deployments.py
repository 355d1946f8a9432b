"""Checks the Deployments of the manager and of the webhook, and their version; catalogue.py lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGER
from upgrade_manager.cli.installation.cluster import INSTALL, WEBHOOK, container, variable
from upgrade_manager.cli.installation.row import Row, failed, passed, skipped
from upgrade_manager.facts.deployments import DeploymentProblem, outage_of, pod_selector
from upgrade_manager.facts.pod_reason import pod_reason
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from upgrade_manager.cli.installation.cluster import Cluster
    from upgrade_manager.kube.objects import Object

_VERSION = "version"
_KUBECTL = f"kubectl -n {HARVESTER_SYSTEM}"


async def check_manager(cluster: Cluster) -> Row:
    """Check that a replica of the manager is available."""
    return await _available(cluster, "manager", MANAGER, await cluster.deployment(MANAGER))


async def check_webhook(cluster: Cluster) -> Row:
    """Check that a replica of the webhook is available, unless the manager serves the webhook, or none is installed."""
    found = await cluster.deployment(WEBHOOK)
    if found is None and (manager := await cluster.deployment(MANAGER)) is not None:
        is_served = variable(manager, "ENABLE_WEBHOOKS") != "false"
        return skipped("webhook", "The manager's Pods serve it." if is_served else "It is turned off.")
    return await _available(cluster, "webhook", WEBHOOK, found)


async def check_version(cluster: Cluster) -> Row:
    """Compare the tag of the manager's image with the version of this program."""
    manager = await cluster.deployment(MANAGER)
    if manager is None:
        return skipped(_VERSION, "The manager's Deployment does not exist.")
    image = objects.text(container(manager), "image")
    tag = image.rpartition("/")[2].partition(":")[2]
    if not tag or "@" in image:
        return skipped(_VERSION, f"The image {image} has no tag that shows the manager's version.")
    if tag.removeprefix("v") == cluster.version:
        return passed(_VERSION, f"The manager and this program are {cluster.version}.")
    return failed(
        _VERSION,
        f"The manager is {tag.removeprefix('v')}, this program {cluster.version}: use the program of that version, or "
        "upgrade the manager.",
    )


async def _available(cluster: Cluster, check: str, name: str, found: Object | None) -> Row:
    outage = outage_of(found, HARVESTER_SYSTEM, name)
    if outage is None:
        ready, wanted = (objects.number(found, *path) for path in (("status", "readyReplicas"), ("spec", "replicas")))
        return passed(check, f"{ready or 0} of {wanted or 0} replicas are ready.")
    if outage.kind is DeploymentProblem.ABSENT:
        return failed(check, f"{outage.problem}.", INSTALL)
    if outage.kind is DeploymentProblem.SCALED_DOWN:
        return failed(check, f"{outage.problem}.", f"{_KUBECTL} scale deployment/{name} --replicas=2")
    reason = await _pods(cluster, found or {})
    return failed(check, f"{outage.problem}{reason}.", f"{_KUBECTL} describe deployment {name}")


async def _pods(cluster: Cluster, deployment: Object) -> str:
    """Return why the first Pod that does not run does not; empty if no Pod shows it."""
    selector = pod_selector(deployment)
    try:
        pods = (await cluster.client.list(PODS, namespace=HARVESTER_SYSTEM, label_selector=selector)).items
    except KubeError:
        return ""
    found = ((objects.name(pod), pod_reason(pod)) for pod in pods)
    return next((f": Pod {name}: {reason[1]}" for name, reason in found if reason is not None), "")
