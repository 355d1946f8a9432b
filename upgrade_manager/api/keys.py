"""Labels, annotations, names and namespaces that other programs read as well.

Users' manifests, dashboards, Rancher, Longhorn and the toolkit image depend on them: never change one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "management.harvesterhci.io"
GROUP = PREFIX
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "UpgradePlan"
#: The name of the managers' Lease.
LEASE = f"upgrade-manager.{PREFIX}"
#: The name of the managers' Deployment and ServiceAccount, and the first part of their user agent, which managedFields
#: have.
MANAGER = "harvester-upgrade-manager"

#: Keeps a deleted plan until the manager has reverted its changes.
FINALIZER = f"{PREFIX}/upgradeplan-cleanup"

#: "true" on the plan that runs, set and removed with the finalizer; at most one plan has it.
LABEL_ACTIVE = f"{PREFIX}/active"

# Labels of created objects; values go through `names.label_value`.
LABEL_PLAN = f"{PREFIX}/upgrade-plan"
#: The plan that an object belongs to; names are used again after a deletion. Never changed, also after the plan's end.
LABEL_PLAN_UID = f"{PREFIX}/upgrade-plan-uid"
#: The number of the plan's attempt, on what later attempts than the first create.
LABEL_ATTEMPT = f"{PREFIX}/attempt"
LABEL_COMPONENT = f"{PREFIX}/upgrade-component"
LABEL_NODE = f"{PREFIX}/node"
LABEL_JOB_TYPE = f"{PREFIX}/job-type"
#: "true" on a Job for a hook that Rancher set again on an upgraded node.
LABEL_REPEATED = f"{PREFIX}/repeated"
#: On a Job of a drain: the request of Rancher that it answers (facts/machine_plan.py).
LABEL_REQUEST = f"{PREFIX}/drain-request"
#: On a machine-plan Secret, set together with the acknowledgement of a pre-drain hook: the plan's uid and the number of
#: the acknowledged request.
ANNOTATION_ACKNOWLEDGED = f"{PREFIX}/acknowledged-request"
#: On Jobs, set by the command that they run: its current step, as in "3/9 stop-vms".
ANNOTATION_PROGRESS = f"{PREFIX}/progress"
#: The begin of that step, in UTC.
ANNOTATION_PROGRESS_TIME = f"{PREFIX}/progress-time"
#: On Jobs, set by the command that they run: the time since which users' PodDisruptionBudgets forbid to stop VMs, and
#: these VMs, as in "2030-01-01T12:00:00Z default/db,default/web" (facts/forbidden_stops.py).
ANNOTATION_FORBIDDEN_STOPS = f"{PREFIX}/forbidden-stops"
#: On Jobs, set by the command that they run: the VMs whose annotation ANNOTATION_ON_MIGRATION_FAILURE has another value
#: than it may have, with that value, as JSON (api/migration_failure.py).
ANNOTATION_INVALID_POLICIES = f"{PREFIX}/invalid-policies"
#: On Jobs that reboot their node: the Node's status.nodeInfo.bootID when the Job was created.
ANNOTATION_BOOT_ID = f"{PREFIX}/boot-id"
#: On such a Job: "Reboot" if its command holds before the reboot, so that its duration says nothing.
ANNOTATION_HOLDS = f"{PREFIX}/holds"

#: On Events: the reconcile_id of the log lines of the reconcile that recorded it first.
ANNOTATION_RECONCILE_ID = f"{PREFIX}/reconcile-id"

# Annotations that users set on a plan, read by `annotations.PlanAnnotations`.
ANNOTATION_SKIP_DISK_CHECK = f"{PREFIX}/skip-garbage-collection-threshold-check"
ANNOTATION_MIN_CERTS_DAYS = f"{PREFIX}/min-certs-expiration-in-day"
ANNOTATION_TOOLKIT_IMAGE = f"{PREFIX}/upgrade-toolkit-image"
ANNOTATION_TOOLKIT_KIND = f"{PREFIX}/upgrade-toolkit-kind"
ANNOTATION_SKIP_DETACHED_VOLUMES = f"{PREFIX}/skip-single-replica-detached-vol"
ANNOTATION_SKIP_WEBHOOK = f"{PREFIX}/skip-webhook"
ANNOTATION_ALLOW_DELETION = f"{PREFIX}/allow-deletion"
#: Entries NODE:Drain and NODE:Reboot, comma-separated: nodes that hold and may go on (api/holds.py).
ANNOTATION_CONTINUE = f"{PREFIX}/continue"

#: On a plan, set at admission from the request's user; the manager copies it to status.createdBy.
ANNOTATION_CREATED_BY = f"{PREFIX}/created-by"
#: On a plan, set at admission: the user of the last change, with a hash (api/attribution.py).
ANNOTATION_LAST_CHANGED_BY = f"{PREFIX}/last-changed-by"
#: All annotations that the mutating webhook sets.
ADMISSION_ANNOTATIONS = (ANNOTATION_CREATED_BY, ANNOTATION_LAST_CHANGED_BY)

#: On a VirtualMachine, set by users: Wait or Stop, before spec.nodeUpgradeOption.onMigrationFailure.
ANNOTATION_ON_MIGRATION_FAILURE = f"{PREFIX}/on-migration-failure"

# Annotations that the manager sets on a plan, for other tools: originals. It reads status.ledger itself, and these
# annotations only of a plan without a ledger.
ANNOTATION_REPLENISHMENT_INTERVAL = f"{PREFIX}/replica-replenishment-wait-interval"
ANNOTATION_DESCHEDULER_WAS_ENABLED = f"{PREFIX}/descheduler-was-enabled"
#: Set by version 0.1: Rancher's cluster before the upgrade, as JSON.
ANNOTATION_UPGRADE_STRATEGY = f"{PREFIX}/upgrade-strategy"
#: All of these; a manifest exported from an earlier plan may contain them.
MANAGER_ANNOTATIONS = (
    ANNOTATION_REPLENISHMENT_INTERVAL,
    ANNOTATION_DESCHEDULER_WAS_ENABLED,
    ANNOTATION_UPGRADE_STRATEGY,
)

#: On Harvester's ManagedChart: KubeVirt's update methods before a toolkit of version 0.1 emptied the list, as JSON.
ANNOTATION_UPDATE_METHODS = f"{PREFIX}/original-workload-update-methods"

#: On Rancher's provisioning cluster beside the hooks: the plan that set them, and the strategy to give back, as JSON.
ANNOTATION_ORIGINAL_STRATEGY = f"{PREFIX}/original-upgrade-strategy"
#: On the same cluster, until every node runs the release: the release and the version before it, as JSON.
ANNOTATION_UNFINISHED_UPGRADE = f"{PREFIX}/unfinished-upgrade"

#: On Rancher's provisioning cluster: what a deleted plan owed, as JSON, for the next plan.
ANNOTATION_LEDGER = f"{PREFIX}/ledger"

# Annotations that the manager sets on Nodes and machine-plan Secrets.
ANNOTATION_PENDING_OS_IMAGE = f"{PREFIX}/pendingOSImage"
ANNOTATION_PRE_HOOK = f"{PREFIX}/pre-hook"
ANNOTATION_POST_HOOK = f"{PREFIX}/post-hook"

# Harvester.
MANAGED_LABEL = "harvesterhci.io/managed"
#: The nodes to upgrade.
MANAGED_SELECTOR = f"{MANAGED_LABEL}=true"
WITNESS_LABEL = "node-role.harvesterhci.io/witness"
ANNOTATION_OS_UPGRADE_IMAGE = "harvesterhci.io/os-upgrade-image"
OS_UPGRADE_IMAGE_VALUE = "True"
ANNOTATION_STORAGE_CLASS = "harvesterhci.io/storageClassName"
LABEL_IMAGE_DISPLAY_NAME = "harvesterhci.io/imageDisplayName"
SETTING_SERVER_VERSION = "server-version"
ADDON_DESCHEDULER = "descheduler"
IMAGE_STORAGE_CLASS = "longhorn-static"
DEFAULT_TOOLKIT_IMAGE = "rancher/harvester-upgrade-toolkit"

# Rancher, on machine-plan Secrets. The values of drain annotations are opaque and copied unchanged.
RKE_PRE_DRAIN = "rke.cattle.io/pre-drain"
RKE_POST_DRAIN = "rke.cattle.io/post-drain"
RKE_DRAIN_OPTIONS = "rke.cattle.io/drain-options"
RKE_DRAIN_DONE = "rke.cattle.io/drain-done"
RKE_DRAIN_ERROR = "rke.cattle.io/drain-error"
RKE_MACHINE_NAME = "rke.cattle.io/machine-name"
RKE_ETCD_ROLE = "rke.cattle.io/etcd-role"
RKE_CONTROL_PLANE_ROLE = "rke.cattle.io/control-plane-role"
RKE_WORKER_ROLE = "rke.cattle.io/worker-role"
RKE_INIT_NODE = "rke.cattle.io/init-node"
MACHINE_PLAN_SECRET_TYPE = "rke.cattle.io/machine-plan"  # noqa: S105  # the Secret's type
#: The field selector of such Secrets.
MACHINE_PLAN_SELECTOR = f"type={MACHINE_PLAN_SECRET_TYPE}"
PROVISIONING_CLUSTER = "local"

# Cluster API, on Nodes: name of the Machine.
ANNOTATION_MACHINE = "cluster.x-k8s.io/machine"

# Longhorn.
LONGHORN_REPLENISHMENT_SETTING = "replica-replenishment-wait-interval"

#: With the Plan's name appended: label that the system-upgrade-controller sets on nodes where the Plan is complete.
SUC_NODE_LABEL_PREFIX = "plan.upgrade.cattle.io/"

# Kubernetes.
LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_SERVICE_NAME = "kubernetes.io/service-name"
LABEL_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
LABEL_ETCD = "node-role.kubernetes.io/etcd"
TAINT_KUBEVIRT_DRAIN = "kubevirt.io/drain"

HARVESTER_SYSTEM = "harvester-system"
CATTLE_SYSTEM = "cattle-system"
FLEET_LOCAL = "fleet-local"
LONGHORN_SYSTEM = "longhorn-system"
#: The folder of the upgrade on the hosts, on the persistent partition.
HOST_WORK = "/usr/local/harvester-upgrade"
KUBE_SYSTEM = "kube-system"
DEFAULT_NAMESPACE = "default"


class Component(StrEnum):
    """Purpose of a created object: value of `LABEL_COMPONENT` and part of its name."""

    ISO = "iso"
    REPO = "repo"
    CHECKSUMS = "checksums"
    IMAGE_PRELOAD = "image-preload"
    SURVEY = "survey"
    AGENT_HOLD = "agent-hold"
    AGENT_RELEASE = "agent-release"
    SKIP_ON = "skip-on"
    SKIP_OFF = "skip-off"
    CLUSTER_UPGRADE = "cluster-upgrade"
    NODE_UPGRADE = "node-upgrade"
    IMAGE_CLEANUP = "image-cleanup"


class ToolkitKind(StrEnum):
    """The toolkit that an image holds; both kinds serve the same calls, and an image's name does not show its kind."""

    #: The one that this repository builds.
    OWN = "own"
    #: Harvester's.
    HARVESTER = "harvester"


class JobType(StrEnum):
    """Type of a node's Job: value of `LABEL_JOB_TYPE` and argument of the toolkit."""

    PRE_DRAIN = "pre-drain"
    POST_DRAIN = "post-drain"
    SINGLE_NODE_UPGRADE = "single-node-upgrade"
    RESTORE_VM = "restore-vm"


def is_managed(labels: Mapping[str, object]) -> bool:
    """Return True for the labels of a node to upgrade."""
    return labels.get(MANAGED_LABEL) == "true"


def manage_command(node: str = "NAME") -> str:
    """Return the command that adds the managed label to a node."""
    return f"kubectl label --overwrite node {node} {MANAGED_SELECTOR}"


def suc_node_label(plan_object: str) -> str:
    """Return the label that a Plan of that name sets on nodes where it is complete."""
    return SUC_NODE_LABEL_PREFIX + plan_object
