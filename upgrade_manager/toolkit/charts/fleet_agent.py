"""Fleet's agent, which deploys Harvester's charts: the new controller has to replace it before they are upgraded.

The command cluster_upgrade lets Fleet do so after Rancher's upgrade. An agent that is replaced later would deploy the
previous release of the charts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PODS
from upgrade_manager.toolkit.charts.cluster_resources import FLEET_CLUSTERS
from upgrade_manager.toolkit.charts.fleet_address import FLEET_SYSTEM
from upgrade_manager.toolkit.charts.rollouts import deployment_missing

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_AGENT_SYSTEM = "cattle-fleet-local-system"
AGENT, CONTROLLER = "fleet-agent", "fleet-controller"
_NAME = f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER} ({FLEET_CLUSTERS.group})"
_LOGS = f"Show the log of Fleet's controller: kubectl logs -n {FLEET_SYSTEM} -l app={CONTROLLER} --tail=100 --prefix"


async def agent_outdated(context: ToolkitContext) -> str:
    """Return why the agent may be that of the previous Fleet; empty once the new controller has deployed it."""
    controller = await _newest(context.client, CONTROLLER, namespace=FLEET_SYSTEM)
    if controller is None:
        return f"no Pod of Deployment {FLEET_SYSTEM}/{CONTROLLER} is ready"
    cluster = await context.client.find(FLEET_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if cluster is None:
        return f"{_NAME} does not exist. {_LOGS}"
    missing = _not_imported(cluster, since=controller)
    if missing:
        return f"{missing}{_reason(cluster)}. {_LOGS}"
    missing = await deployment_missing(context.client, AGENT, namespace=_AGENT_SYSTEM)
    if missing:
        return missing
    agent = await _newest(context.client, AGENT, namespace=_AGENT_SYSTEM)
    if agent is None or agent < controller:
        return f"the Pod of Deployment {_AGENT_SYSTEM}/{AGENT} is older than Fleet's controller. {_LOGS}"
    return ""


async def redeploy_agent(context: ToolkitContext) -> None:
    """Let Fleet import the cluster again and replace its agent, unless it is about to."""
    cluster = await context.client.get(FLEET_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    wanted, deployed = _generations(cluster)
    if wanted == deployed:
        body = {"spec": {"redeployAgentGeneration": deployed + 1}}
        patch = MergePatch(body).at(objects.resource_version(cluster))
        await context.client.patch(FLEET_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)


async def fleet_not_ready(context: ToolkitContext) -> str:
    """Return why Fleet's cluster is not ready: as long as a chart is being deployed, it never is."""
    cluster = await context.client.find(FLEET_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    if objects.is_condition_true(cluster or {}, "Ready"):
        return ""
    return f"{_NAME} is not ready: {objects.excerpt(objects.condition(cluster, 'Ready'), 'message') or 'unknown'}"


def _not_imported(cluster: Object, *, since: datetime) -> str:
    wanted, deployed = _generations(cluster)
    if wanted != deployed:
        return f"{_NAME}: Fleet has not redeployed its agent"
    imported = parse_time(objects.condition(cluster, "Imported").get("lastUpdateTime"))
    if imported is None or imported < since:
        return f"{_NAME} is not imported since Fleet's controller started"
    return ""


def _generations(cluster: Object) -> tuple[int, int]:
    """Return the wanted and the deployed generation of the agent."""
    wanted = objects.number(cluster, "spec", "redeployAgentGeneration")
    return wanted or 0, objects.number(cluster, "status", "agentDeployedGeneration") or 0


def _reason(cluster: Object) -> str:
    message = objects.excerpt(objects.condition(cluster, "Imported"), "message")
    return f": {message}" if message else ""


async def _newest(client: Client, app: str, *, namespace: str) -> datetime | None:
    """Return when the newest ready Pod was created."""
    pods = (await client.list(PODS, namespace=namespace, label_selector=f"app={app}")).items
    ready = [pod for pod in pods if objects.is_condition_true(pod, "Ready") and not objects.is_deleting(pod)]
    times = [parse_time(objects.metadata(pod).get("creationTimestamp")) for pod in ready]
    return max((time for time in times if time is not None), default=None)
