"""The resources that the manager reads or writes, and their URL paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from upgrade_manager.kube.errors import Terminal

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Group, version, plural and kind, from which URL paths are built without discovery.

    A reflector switches to another known version if the server does not serve `version`.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    #: All versions whose objects the manager can read, in order of preference; empty if there is only one.
    versions: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The name for messages and metrics: `jobs.batch`, `nodes`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, an object, or its subresource; without a namespace, of all."""
        parts = ["/apis/" + self.api_version if self.group else "/api/" + self.version]
        if namespace and self.namespaced:
            parts.append("namespaces/" + quote(namespace, safe=""))
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def with_type_meta(self, obj: Object) -> Object:
        """Add the kind and apiVersion, which servers leave out of the items of a list."""
        obj.setdefault("apiVersion", self.api_version)
        obj.setdefault("kind", self.kind)
        return obj

    def metadata_of(self, partial: Object) -> Object:
        """Return a PartialObjectMetadata under the kind of the object that it describes.

        Raises Terminal for a whole object, so that data of Secrets is never kept by mistake.
        """
        if not partial.keys() <= {"apiVersion", "kind", "metadata"}:
            raise Terminal(f"{self.name}: the server sent whole objects instead of their metadata")
        return {**partial, "apiVersion": self.api_version, "kind": self.kind}


NODES = Resource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)
NAMESPACES = Resource(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
PODS = Resource(group="", version="v1", plural="pods", kind="Pod")
SECRETS = Resource(group="", version="v1", plural="secrets", kind="Secret")
CONFIG_MAPS = Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
PERSISTENT_VOLUME_CLAIMS = Resource(
    group="", version="v1", plural="persistentvolumeclaims", kind="PersistentVolumeClaim"
)
SERVICES = Resource(group="", version="v1", plural="services", kind="Service")
EVENTS = Resource(group="", version="v1", plural="events", kind="Event")
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
SERVICE_ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
JOBS = Resource(group="batch", version="v1", plural="jobs", kind="Job")
ENDPOINT_SLICES = Resource(group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice")
MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
SUBJECT_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
POD_DISRUPTION_BUDGETS = Resource(
    group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget"
)
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
#: Upgrades by Harvester itself.
UPGRADES = Resource(group="harvesterhci.io", version="v1beta1", plural="upgrades", kind="Upgrade")
VIRTUAL_MACHINE_BACKUPS = Resource(
    group="harvesterhci.io", version="v1beta1", plural="virtualmachinebackups", kind="VirtualMachineBackup"
)
SCHEDULE_VM_BACKUPS = Resource(
    group="harvesterhci.io", version="v1beta1", plural="schedulevmbackups", kind="ScheduleVMBackup"
)
#: Imports of the Containerized Data Importer (CDI).
DATA_VOLUMES = Resource(group="cdi.kubevirt.io", version="v1beta1", plural="datavolumes", kind="DataVolume")
SUC_PLANS = Resource(group="upgrade.cattle.io", version="v1", plural="plans", kind="Plan")
PROVISIONING_CLUSTERS = Resource(group="provisioning.cattle.io", version="v1", plural="clusters", kind="Cluster")
MACHINES = Resource(
    group="cluster.x-k8s.io",
    version="v1beta1",
    plural="machines",
    kind="Machine",
    versions=("v1beta1", "v1beta2"),
)
LONGHORN_SETTINGS = Resource(group="longhorn.io", version="v1beta2", plural="settings", kind="Setting")
LONGHORN_VOLUMES = Resource(group="longhorn.io", version="v1beta2", plural="volumes", kind="Volume")
LONGHORN_REPLICAS = Resource(group="longhorn.io", version="v1beta2", plural="replicas", kind="Replica")
LONGHORN_ENGINES = Resource(group="longhorn.io", version="v1beta2", plural="engines", kind="Engine")
MANAGED_CHARTS = Resource(group="management.cattle.io", version="v3", plural="managedcharts", kind="ManagedChart")
RANCHER_FEATURES = Resource(
    group="management.cattle.io", version="v3", plural="features", kind="Feature", namespaced=False
)
VIRTUAL_MACHINE_INSTANCES = Resource(
    group="kubevirt.io", version="v1", plural="virtualmachineinstances", kind="VirtualMachineInstance"
)
VIRTUAL_MACHINES = Resource(group="kubevirt.io", version="v1", plural="virtualmachines", kind="VirtualMachine")
MIGRATIONS = Resource(
    group="kubevirt.io",
    version="v1",
    plural="virtualmachineinstancemigrations",
    kind="VirtualMachineInstanceMigration",
)
KUBEVIRTS = Resource(group="kubevirt.io", version="v1", plural="kubevirts", kind="KubeVirt")
