"""Every key, name and namespace that others read too, in one place.

Users' manifests, dashboards, Rancher, Longhorn and the published toolkit image depend on these texts: none of them is
ours to change.
"""

from __future__ import annotations

from enum import StrEnum

PREFIX = "management.harvesterhci.io"
GROUP = PREFIX
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "UpgradePlan"

#: Keeps a deleted plan until what it changed is restored.
FINALIZER = f"{PREFIX}/upgradeplan-cleanup"

# Labels of the objects that we create. A name goes through `names.label_value` before it becomes a label's value.
LABEL_PLAN = f"{PREFIX}/upgrade-plan"
LABEL_COMPONENT = f"{PREFIX}/upgrade-component"
LABEL_NODE = f"{PREFIX}/node"
LABEL_JOB_TYPE = f"{PREFIX}/job-type"

# Annotations that users set on a plan; `annotations.PlanAnnotations` reads them.
ANNOTATION_SKIP_WEBHOOK = f"{PREFIX}/skip-webhook"
ANNOTATION_SKIP_SINGLE_REPLICA_DETACHED = f"{PREFIX}/skip-single-replica-detached-vol"
ANNOTATION_ALLOW_DELETION = f"{PREFIX}/allow-deletion"
ANNOTATION_SKIP_DISK_CHECK = f"{PREFIX}/skip-garbage-collection-threshold-check"
ANNOTATION_MIN_CERTS_DAYS = f"{PREFIX}/min-certs-expiration-in-day"
ANNOTATION_TOOLKIT_IMAGE = f"{PREFIX}/upgrade-toolkit-image"

# Annotations that the manager sets on a plan: original values, each recorded once and before it is changed, so that no
# crash loses one, and what is done of the clean-up of a failed plan ("true").
ANNOTATION_REPLENISHMENT_INTERVAL = f"{PREFIX}/replica-replenishment-wait-interval"
ANNOTATION_DESCHEDULER_WAS_ENABLED = f"{PREFIX}/descheduler-was-enabled"
#: The provisioning cluster's upgradeStrategy as JSON; `null` where it had none.
ANNOTATION_UPGRADE_STRATEGY = f"{PREFIX}/upgrade-strategy"
#: The settings are restored. The plan never restores them again: later changes are another plan's.
ANNOTATION_RESTORED = f"{PREFIX}/restored"
#: The plan's objects are removed, too.
ANNOTATION_TORN_DOWN = f"{PREFIX}/torn-down"
#: All of these: a manifest exported from an earlier plan may hold them.
MANAGER_ANNOTATIONS = (
    ANNOTATION_REPLENISHMENT_INTERVAL,
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_UPGRADE_STRATEGY,
    ANNOTATION_RESTORED,
    ANNOTATION_TORN_DOWN,
)

# Annotations that the manager sets on a Node, then on a machine-plan Secret.
ANNOTATION_PENDING_OS_IMAGE = f"{PREFIX}/pendingOSImage"
ANNOTATION_PRE_HOOK = f"{PREFIX}/pre-hook"
ANNOTATION_POST_HOOK = f"{PREFIX}/post-hook"

# Harvester's.
MANAGED_LABEL = "harvesterhci.io/managed"
WITNESS_LABEL = "node-role.harvesterhci.io/witness"
#: Compared as written, with a capital T: `OS_UPGRADE_IMAGE_VALUE`.
ANNOTATION_OS_UPGRADE_IMAGE = "harvesterhci.io/os-upgrade-image"
OS_UPGRADE_IMAGE_VALUE = "True"
ANNOTATION_STORAGE_CLASS = "harvesterhci.io/storageClassName"
LABEL_IMAGE_DISPLAY_NAME = "harvesterhci.io/imageDisplayName"
SETTING_SERVER_VERSION = "server-version"
ADDON_DESCHEDULER = "descheduler"
IMAGE_STORAGE_CLASS = "longhorn-static"
DEFAULT_TOOLKIT_IMAGE = "rancher/harvester-upgrade-toolkit"

# Rancher's, on machine-plan Secrets. The value of a drain annotation is opaque: it is copied byte for byte.
RKE_PRE_DRAIN = "rke.cattle.io/pre-drain"
RKE_POST_DRAIN = "rke.cattle.io/post-drain"
RKE_MACHINE_NAME = "rke.cattle.io/machine-name"
RKE_CLUSTER_NAME = "rke.cattle.io/cluster-name"
RKE_ETCD_ROLE = "rke.cattle.io/etcd-role"
RKE_CONTROL_PLANE_ROLE = "rke.cattle.io/control-plane-role"
RKE_WORKER_ROLE = "rke.cattle.io/worker-role"
RKE_INIT_NODE = "rke.cattle.io/init-node"
MACHINE_PLAN_SECRET_TYPE = "rke.cattle.io/machine-plan"  # noqa: S105  # the Secret's type
PROVISIONING_CLUSTER = "local"

# Cluster API's, on Nodes: the Machine's name without a namespace.
ANNOTATION_MACHINE = "cluster.x-k8s.io/machine"

# Longhorn's.
LONGHORN_REPLENISHMENT_SETTING = "replica-replenishment-wait-interval"

#: The system-upgrade-controller marks a node with this and a Plan's name once that Plan is done there.
SUC_NODE_LABEL_PREFIX = "plan.upgrade.cattle.io/"

# Kubernetes' own.
LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_ARCH = "kubernetes.io/arch"
LABEL_SERVICE_NAME = "kubernetes.io/service-name"
LABEL_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
LABEL_ETCD = "node-role.kubernetes.io/etcd"
TAINT_KUBEVIRT_DRAIN = "kubevirt.io/drain"

HARVESTER_SYSTEM = "harvester-system"
CATTLE_SYSTEM = "cattle-system"
FLEET_LOCAL = "fleet-local"
LONGHORN_SYSTEM = "longhorn-system"
KUBE_SYSTEM = "kube-system"
DEFAULT_NAMESPACE = "default"


class Component(StrEnum):
    """What an object that we create is for: the value of `LABEL_COMPONENT` and a part of its name."""

    ISO = "iso"
    REPO = "repo"
    IMAGE_PRELOAD = "image-preload"
    CLUSTER_UPGRADE = "cluster-upgrade"
    NODE_UPGRADE = "node-upgrade"
    IMAGE_CLEANUP = "image-cleanup"


class JobType(StrEnum):
    """What a node's Job does: the value of `LABEL_JOB_TYPE` and the argument of the node's command."""

    PRE_DRAIN = "pre-drain"
    POST_DRAIN = "post-drain"
    SINGLE_NODE_UPGRADE = "single-node-upgrade"
    RESTORE_VM = "restore-vm"


def suc_node_label(plan_object: str) -> str:
    """The node label that a system-upgrade-controller Plan of that name leaves behind."""
    return SUC_NODE_LABEL_PREFIX + plan_object
