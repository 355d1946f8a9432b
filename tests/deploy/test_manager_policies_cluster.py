"""What a stolen token of the manager may not change of Nodes, of Rancher's objects and of UpgradePlans."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.guarded_cluster import LONG, OTHER_FINALIZER, REPOSITORY, TOOLKIT, GuardedCluster
from tests.support.managers.manager_requests import RBAC, Request, check, delete, meta, patch, read, row
from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    FINALIZER,
    FLEET_LOCAL,
    KUBE_SYSTEM,
    LABEL_ACTIVE,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    PREFIX,
)
from upgrade_manager.kube.resources import (
    ADDONS,
    LONGHORN_SETTINGS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    UPGRADE_PLANS,
)

if TYPE_CHECKING:
    from tests.support.server.raw_client import RawClient

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

ANNOTATIONS = "only annotations management.harvesterhci.io/*"
PLAN_TYPE = "only Secrets of type rke.cattle.io/machine-plan"
CONTENT = "does not change what a machine plan does"
NO_IMAGE = "is in none of the repositories"
ENABLED, ADDON_METADATA = "only spec.enabled of an Addon", "does not change the metadata of an Addon"
VALUE = "only the value of a setting of Longhorn"
#: Harvester's mutating webhook adds them to the manager's own request.
LAST_OPERATION = {
    "harvesterhci.io/addon-last-operation": "disable",
    "harvesterhci.io/addon-last-operation-timestamp": "2026-01-01T00:00:00Z",
}
ONCE = "is recorded once in each attempt"
#: The API server sets it on each new Node.
NEW = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
DRAIN = {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
TAINT = {"key": "evil", "effect": "NoExecute"}
HOOK = {f"{PREFIX}/pre-hook": "x"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}

node = partial(patch, NODES, "node-1")
big_node = partial(patch, NODES, LONG)
machine_plan = partial(patch, SECRETS, "plan-1", FLEET_LOCAL)
big_machine_plan = partial(patch, SECRETS, LONG, FLEET_LOCAL)
rancher = partial(patch, PROVISIONING_CLUSTERS, "local", FLEET_LOCAL)
addon = partial(patch, ADDONS, ADDON_DESCHEDULER, KUBE_SYSTEM)
setting = partial(patch, LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, LONGHORN_SYSTEM)
plan = partial(patch, UPGRADE_PLANS, "upgrade")
status = partial(patch, UPGRADE_PLANS, "upgrade", subresource="status")
queued = partial(patch, UPGRADE_PLANS, "queued", subresource="status")


def toolkit(**more: Any) -> dict[str, Any]:
    return {"toolkitImage": TOOLKIT | more}


NODE_ROWS = [
    row(
        "cordon a Node",
        "nodes",
        "spec.unschedulable",
        node(spec={"unschedulable": True}),
        node(spec={"taints": [NEW, DRAIN]}),
    ),
    row(
        "taint a Node",
        "nodes",
        "only the taint",
        node(spec={"taints": [NEW, TAINT]}),
        node(spec={"taints": [NEW, DRAIN]}),
    ),
    row("move a Node to another machine", "nodes", "other fields", node(spec={"providerID": "x"}), node(spec={})),
    row(
        "label a Node",
        "nodes",
        "only labels plan.upgrade",
        node(**meta(labels={"node-role.kubernetes.io/etcd": ""})),
        node(**meta(labels={"plan.upgrade.cattle.io/x": None, "plan.upgrade.cattle.io/p": None})),
    ),
    row(
        "remove a label of a Node",
        "nodes",
        "only labels plan.upgrade",
        node(**meta(labels={"zone": None})),
        node(**meta(labels={"plan.upgrade.cattle.io/new": "1"})),
    ),
    row(
        "annotate a Node",
        "nodes",
        ANNOTATIONS,
        node(**meta(annotations={"cluster.x-k8s.io/machine": "x"})),
        node(**meta(annotations={f"{PREFIX}/pendingOSImage": "x"})),
    ),
    row("own a Node", "nodes", "other fields", node(**meta(ownerReferences=[OWNER])), node(**meta())),
    row("hold a Node", "nodes", "other fields", node(**meta(finalizers=["example.com/x"])), node(**meta())),
    row(
        "label a Node of 1000 labels",
        "nodes",
        "only labels plan.upgrade",
        big_node(**meta(labels={"example.com/label-0999": "x"})),
        big_node(**meta(labels={"plan.upgrade.cattle.io/x": "1"}, annotations=HOOK)),
    ),
]

MACHINE_PLAN_ROWS = [
    row(
        "change a machine plan",
        "machine-plans",
        CONTENT,
        machine_plan(data={"plan": "eA=="}),
        machine_plan(**meta(annotations=HOOK)),
    ),
    row(
        "add to a machine plan",
        "machine-plans",
        CONTENT,
        machine_plan(stringData={"x": "y"}),
        machine_plan(**meta(annotations=HOOK)),
    ),
    row(
        "fix a machine plan",
        "machine-plans",
        CONTENT,
        machine_plan(immutable=True),
        machine_plan(**meta(annotations=HOOK)),
    ),
    row(
        "annotate a machine plan as Rancher",
        "machine-plans",
        ANNOTATIONS,
        machine_plan(**meta(annotations={"rke.cattle.io/pre-drain": "x"})),
        machine_plan(**meta(annotations={f"{PREFIX}/pre-hook": None})),
    ),
    row(
        "label a machine plan",
        "machine-plans",
        ANNOTATIONS,
        machine_plan(**meta(labels={"rke.cattle.io/machine-name": "x"})),
        machine_plan(**meta(annotations=HOOK)),
    ),
    row(
        "change a large machine plan of 1000 labels",
        "machine-plans",
        CONTENT,
        big_machine_plan(data={"x": "eA=="}),
        big_machine_plan(**meta(annotations=HOOK)),
    ),
    row(
        "change a kubeconfig",
        "machine-plans",
        PLAN_TYPE,
        patch(SECRETS, "kubeconfig", FLEET_LOCAL, **meta(annotations=HOOK)),
        machine_plan(**meta(annotations=HOOK)),
    ),
    row(
        "delete a kubeconfig", RBAC, "cannot delete", delete(SECRETS, "kubeconfig", FLEET_LOCAL), machine_plan(**meta())
    ),
    row(
        "read a kubeconfig",
        RBAC,
        "cannot get",
        read(SECRETS.path("kubeconfig", namespace=FLEET_LOCAL)),
        # Rancher chooses the names of machine-plan Secrets, which RBAC would have to list.
        read(SECRETS.path(namespace=FLEET_LOCAL)),
    ),
    row(
        "read Secrets of cattle-system",
        RBAC,
        "cannot list",
        read(SECRETS.path(namespace="cattle-system")),
        read(SECRETS.path(namespace=FLEET_LOCAL)),
    ),
]

RANCHER_ROWS = [
    row(
        "change the registries of the cluster",
        "rancher-cluster",
        "changes only kubernetesVersion",
        rancher(spec={"rkeConfig": {"registries": {"mirrors": {"x": {}}}}}),
        rancher(spec={"rkeConfig": {"provisionGeneration": 2, "upgradeStrategy": {"workerConcurrency": "1"}}}),
    ),
    row(
        "remove a field of the cluster",
        "rancher-cluster",
        "changes only kubernetesVersion",
        rancher(spec={"rkeConfig": {"registries": None}}),
        rancher(spec={"kubernetesVersion": "v2"}),
    ),
    row(
        "add a field to the cluster",
        "rancher-cluster",
        "changes only kubernetesVersion",
        rancher(spec={"localClusterAuthEndpoint": {"enabled": True}}),
        rancher(spec={"rkeConfig": {"upgradeStrategy": None}}),
    ),
    row(
        "annotate the cluster",
        "rancher-cluster",
        ANNOTATIONS,
        rancher(**meta(annotations={"example.com/x": "y"})),
        rancher(**meta(annotations={f"{PREFIX}/original-upgrade-strategy": "{}"})),
    ),
    row("hold the cluster", "rancher-cluster", ANNOTATIONS, rancher(**meta(finalizers=["a/b"])), rancher(**meta())),
]

DISABLED = {"enabled": False}
OVERRIDE_ROWS = [
    *(
        row(
            f"change {field} of an Addon",
            "addons",
            ENABLED,
            addon(spec={field: value} | DISABLED),
            addon(spec=DISABLED),
        )
        for field, value in (
            ("repo", "http://evil.example/charts"),
            ("chart", "evil"),
            ("version", "9.9.9"),
            ("valuesContent", "x: z"),
            ("more", "x"),
        )
    ),
    row(
        "annotate an Addon",
        "addons",
        ADDON_METADATA,
        addon(**meta(annotations={"helm.sh/x": "y"})),
        addon(spec=DISABLED, **meta(annotations=LAST_OPERATION)),
    ),
    row(
        "remove an annotation of an Addon",
        "addons",
        ADDON_METADATA,
        addon(**meta(annotations={"example.com/label-0999": None})),
        addon(spec={"enabled": True}),
    ),
    row("label an Addon", "addons", ADDON_METADATA, addon(**meta(labels={"a": "b"})), addon(spec=DISABLED)),
    row("hold an Addon", "addons", ADDON_METADATA, addon(**meta(finalizers=["a/b"])), addon(spec=DISABLED)),
    row("own an Addon", "addons", ADDON_METADATA, addon(**meta(ownerReferences=[OWNER])), addon(spec=DISABLED)),
    row(
        "change the status of an Addon",
        RBAC,
        "cannot patch",
        addon(subresource="status", status={"status": "x"}),
        addon(spec=DISABLED),
    ),
    *(
        row(f"{name} a setting of Longhorn", "longhorn-settings", VALUE, setting(**fields), setting(value="1800"))
        for name, fields in (
            ("annotate", meta(annotations={"longhorn.io/update-setting-from-longhorn": ""})),
            ("label", meta(labels={"a": "b"})),
            ("hold", meta(finalizers=["a/b"])),
            ("own", meta(ownerReferences=[OWNER])),
        )
    ),
]

PLAN_ROWS = [
    row(
        "change the spec",
        "plans",
        "does not change the spec",
        plan(spec={"force": True}),
        plan(**meta(labels={LABEL_ACTIVE: None})),
    ),
    row(
        "waive a check",
        "plans",
        "annotations that users set",
        plan(**meta(annotations={f"{PREFIX}/allow-deletion": "true"})),
        plan(**meta(annotations={f"{PREFIX}/descheduler-was-enabled": "true"})),
    ),
    row(
        "choose the toolkit image",
        "plans",
        "annotations that users set",
        plan(**meta(annotations={f"{PREFIX}/upgrade-toolkit-image": "evil"})),
        plan(**meta(annotations={f"{PREFIX}/replica-replenishment-wait-interval": "600"})),
    ),
    row(
        "label a plan",
        "plans",
        "changes only the label",
        plan(**meta(labels={"team": "b"})),
        patch(UPGRADE_PLANS, "queued", **meta(labels={LABEL_ACTIVE: "true"}, finalizers=[FINALIZER])),
    ),
    row(
        "remove the finalizer of another controller",
        "plans",
        "only its own finalizer",
        plan(**meta(finalizers=[FINALIZER])),
        plan(**meta(finalizers=[OTHER_FINALIZER, FINALIZER])),
    ),
    row(
        "remove the finalizer of a plan in progress",
        "plans",
        "in progress stays",
        plan(**meta(finalizers=[OTHER_FINALIZER])),
        patch(UPGRADE_PLANS, "failed", **meta(finalizers=[], labels={LABEL_ACTIVE: None})),
    ),
    row(
        "activate a plan that has ended",
        "plans",
        "does not become active without",
        patch(UPGRADE_PLANS, "failed", **meta(labels={LABEL_ACTIVE: "true"})),
        patch(UPGRADE_PLANS, "resumed", **meta(labels={LABEL_ACTIVE: "true"})),
    ),
    row("delete a plan", RBAC, "cannot delete", delete(UPGRADE_PLANS, "upgrade", ""), plan(**meta())),
]

STATUS_ROWS = [
    row(
        "begin an attempt",
        "plan-status",
        "only follows spec.attempt",
        status(status={"attempt": 3}),
        status(status={"attempt": 2}),
    ),
    row(
        "continue a plan that has ended",
        "plan-status",
        "does not continue without another attempt",
        patch(UPGRADE_PLANS, "failed", subresource="status", status={"currentPhase": "Initializing"}),
        patch(UPGRADE_PLANS, "resumed", subresource="status", status={"currentPhase": "Initializing", "attempt": 2}),
    ),
    row("record another image", "plan-status", ONCE, status(status=toolkit(tag="v0")), status(status=toolkit())),
    row("remove the image", "plan-status", ONCE, status(status={"toolkitImage": None}), status(status={"attempt": 2})),
    row(
        "change the kind",
        "plan-status",
        ONCE,
        status(status=toolkit(kind="own")),
        status(status=toolkit(tag="v2") | {"attempt": 2}),
    ),
    row(
        "record an image of another repository",
        "plan-status",
        NO_IMAGE,
        status(status=toolkit(repository="evil") | {"attempt": 2}),
        status(status=toolkit(repository=f"{REPOSITORY}/sub") | {"attempt": 2}),
    ),
    row(
        "record an image of a similar repository",
        "plan-status",
        NO_IMAGE,
        status(status=toolkit(repository=f"{REPOSITORY}-evil") | {"attempt": 2}),
        status(status=toolkit(digest="sha256:1") | {"attempt": 2}),
    ),
    row(
        "record the image of a plan that is not active",
        "plan-status",
        "only for the UpgradePlan with the label",
        queued(status=toolkit()),
        queued(status={"conditions": []}),
    ),
]


@pytest.mark.parametrize(
    ("policy", "text", "abuse", "permitted"),
    [*NODE_ROWS, *MACHINE_PLAN_ROWS, *RANCHER_ROWS, *OVERRIDE_ROWS, *PLAN_ROWS, *STATUS_ROWS],
)
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)
