"""The selections that the phases look at: as narrow as the API's selectors allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    CATTLE_SYSTEM,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    LABEL_SERVICE_NAME,
    MACHINE_PLAN_SECRET_TYPE,
    MANAGED_LABEL,
    Component,
)
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    MACHINES,
    NODES,
    SECRETS,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)
from upgrade_manager.pipeline.informers import InformerSpec

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner

#: The nodes that Harvester manages, and so the ones to upgrade: nearly every phase looks at them.
MANAGED_NODES = InformerSpec(resource=NODES, label_selector=f"{MANAGED_LABEL}=true", lasting=True)
#: Rancher's questions; their metadata only, for the data is none of our business.
MACHINE_PLANS = InformerSpec(
    resource=SECRETS, namespace=FLEET_LOCAL, field_selector=f"type={MACHINE_PLAN_SECRET_TYPE}", metadata_only=True
)
#: Which Machine is which node.
LOCAL_MACHINES = InformerSpec(resource=MACHINES, namespace=FLEET_LOCAL)


def one_image(namespace: str, name: str) -> InformerSpec:
    """The ISO's VirtualMachineImage."""
    return InformerSpec(resource=VIRTUAL_MACHINE_IMAGES, namespace=namespace, field_selector=f"metadata.name={name}")


def repository_deployments(owner: Owner) -> InformerSpec:
    """The repository's Deployment."""
    return InformerSpec(resource=DEPLOYMENTS, namespace=HARVESTER_SYSTEM, label_selector=owner.selector(Component.REPO))


def repository_endpoints(owner: Owner) -> InformerSpec:
    """The EndpointSlices of the repository's Service."""
    return InformerSpec(
        resource=ENDPOINT_SLICES,
        namespace=HARVESTER_SYSTEM,
        label_selector=f"{LABEL_SERVICE_NAME}={repo_service_name(owner.name)}",
    )


def suc_plans(owner: Owner) -> InformerSpec:
    """The system-upgrade-controller's Plans; needed early and late, and an idle watch costs less than a second list."""
    return InformerSpec(resource=SUC_PLANS, namespace=CATTLE_SYSTEM, label_selector=owner.selector(), lasting=True)


def suc_jobs(owner: Owner) -> InformerSpec:
    """The Jobs that the system-upgrade-controller made for them: it copies the Plans' labels."""
    return InformerSpec(resource=JOBS, namespace=CATTLE_SYSTEM, label_selector=owner.selector(), lasting=True)


def own_jobs(owner: Owner) -> InformerSpec:
    """The Jobs that the manager made itself."""
    return InformerSpec(resource=JOBS, namespace=HARVESTER_SYSTEM, label_selector=owner.selector())
