"""The kinds that the manager reads or writes."""

from __future__ import annotations

from upgrade_manager.kube.resource import Resource

NODES = Resource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)
NAMESPACES = Resource(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
PODS = Resource(group="", version="v1", plural="pods", kind="Pod")
SECRETS = Resource(group="", version="v1", plural="secrets", kind="Secret")
CONFIG_MAPS = Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
SERVICES = Resource(group="", version="v1", plural="services", kind="Service")
EVENTS = Resource(group="", version="v1", plural="events", kind="Event")
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")
ENDPOINT_SLICES = Resource(group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice")
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")

UPGRADE_PLANS = Resource(
    group="management.harvesterhci.io", version="v1beta1", plural="upgradeplans", kind="UpgradePlan", namespaced=False
)
SETTINGS = Resource(group="harvesterhci.io", version="v1beta1", plural="settings", kind="Setting", namespaced=False)
VERSIONS = Resource(group="harvesterhci.io", version="v1beta1", plural="versions", kind="Version")
ADDONS = Resource(group="harvesterhci.io", version="v1beta1", plural="addons", kind="Addon")
VIRTUAL_MACHINE_IMAGES = Resource(
    group="harvesterhci.io", version="v1beta1", plural="virtualmachineimages", kind="VirtualMachineImage"
)
SUC_PLANS = Resource(group="upgrade.cattle.io", version="v1", plural="plans", kind="Plan")
PROVISIONING_CLUSTERS = Resource(group="provisioning.cattle.io", version="v1", plural="clusters", kind="Cluster")
MACHINES = Resource(group="cluster.x-k8s.io", version="v1beta1", plural="machines", kind="Machine")
LONGHORN_SETTINGS = Resource(group="longhorn.io", version="v1beta2", plural="settings", kind="Setting")
