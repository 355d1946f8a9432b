"""The objects that the phases read, as narrow as the API's selectors allow."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    CATTLE_SYSTEM,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LABEL_COMPONENT,
    LABEL_SERVICE_NAME,
    MACHINE_PLAN_SELECTOR,
    MANAGED_SELECTOR,
    PROVISIONING_CLUSTER,
    Component,
)
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.facts.kubevirt import KUBEVIRT
from upgrade_manager.facts.update_methods import CHART
from upgrade_manager.kube.resources import (
    ADDONS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    KUBEVIRTS,
    MACHINES,
    MANAGED_CHARTS,
    NODES,
    PODS,
    PROVISIONING_CLUSTERS,
    SECRETS,
    SUC_PLANS,
    UPGRADES,
    VIRTUAL_MACHINE_IMAGES,
)
from upgrade_manager.pipeline.informers import InformerSpec

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner

#: The number of plans whose selections are remembered; each reconcile needs the selections of the active plan.
_PLANS = 8
#: The nodes to upgrade, which are the nodes that Harvester manages.
MANAGED_NODES = InformerSpec(resource=NODES, label_selector=MANAGED_SELECTOR, permanent=True)
#: Machine-plan Secrets, which carry Rancher's drain hooks in annotations; their data is secret and not read.
MACHINE_PLANS = InformerSpec(
    resource=SECRETS, namespace=FLEET_LOCAL, field_selector=MACHINE_PLAN_SELECTOR, metadata_only=True
)
#: Machines, which map machine-plan Secrets to nodes.
LOCAL_MACHINES = InformerSpec(resource=MACHINES, namespace=FLEET_LOCAL, permanent=True)
#: Rancher's provisioning cluster, whose upgradeStrategy must keep the manager's hooks.
LOCAL_CLUSTER = InformerSpec(
    resource=PROVISIONING_CLUSTERS, namespace=FLEET_LOCAL, field_selector=f"metadata.name={PROVISIONING_CLUSTER}"
)
#: The same cluster with its status, while an upgrade waits for Rancher.
LOCAL_CLUSTER_STATE = replace(LOCAL_CLUSTER, is_whole=True)
#: Harvester's own upgrades, whose labels show their state, and its Addons: permanent, because an idle watch is cheaper
#: than a list before each node.
BUILT_IN_UPGRADES = InformerSpec(resource=UPGRADES, namespace=HARVESTER_SYSTEM, metadata_only=True, permanent=True)
HARVESTER_ADDONS = InformerSpec(resource=ADDONS, permanent=True)
#: Harvester's ManagedChart, whose values the cluster upgrade changes before its Job.
HARVESTER_CHART = InformerSpec(resource=MANAGED_CHARTS, namespace=FLEET_LOCAL, field_selector=f"metadata.name={CHART}")
#: The object that Fleet deploys from it.
HARVESTER_KUBEVIRT = InformerSpec(
    resource=KUBEVIRTS, namespace=HARVESTER_SYSTEM, field_selector=f"metadata.name={KUBEVIRT}"
)
#: The Jobs that the manager creates, also those of earlier plans.
UPGRADE_JOBS = InformerSpec(resource=JOBS, namespace=HARVESTER_SYSTEM, label_selector=LABEL_COMPONENT)


@lru_cache(maxsize=_PLANS)
def one_image(namespace: str, name: str) -> InformerSpec:
    """Select the ISO's VirtualMachineImage."""
    return InformerSpec(resource=VIRTUAL_MACHINE_IMAGES, namespace=namespace, field_selector=f"metadata.name={name}")


@lru_cache(maxsize=_PLANS)
def repository_deployments(owner: Owner) -> InformerSpec:
    """Select the upgrade repository's Deployment."""
    return InformerSpec(resource=DEPLOYMENTS, namespace=HARVESTER_SYSTEM, label_selector=owner.selector(Component.REPO))


@lru_cache(maxsize=_PLANS)
def repository_endpoints(owner: Owner) -> InformerSpec:
    """Select the EndpointSlices of the upgrade repository's Service."""
    return InformerSpec(
        resource=ENDPOINT_SLICES,
        namespace=HARVESTER_SYSTEM,
        label_selector=f"{LABEL_SERVICE_NAME}={repo_service_name(owner.name)}",
    )


def suc_plans(owner: Owner) -> InformerSpec:
    """Select the system-upgrade-controller Plans; permanent, as an idle watch is cheaper than a second list."""
    return InformerSpec(
        resource=SUC_PLANS, namespace=CATTLE_SYSTEM, label_selector=owner.suc_selector(), permanent=True
    )


def survey_pods(owner: Owner) -> InformerSpec:
    """Select the Pods of the survey, whose reports go with them."""
    return InformerSpec(resource=PODS, namespace=CATTLE_SYSTEM, label_selector=owner.selector(Component.SURVEY))


def suc_jobs(owner: Owner) -> InformerSpec:
    """Select the Jobs of these Plans: the system-upgrade-controller copies the Plans' labels."""
    return InformerSpec(resource=JOBS, namespace=CATTLE_SYSTEM, label_selector=owner.suc_selector(), permanent=True)
