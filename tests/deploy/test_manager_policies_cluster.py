"""Changes of Nodes, Rancher's objects and UpgradePlans that are refused to a stolen token of the manager."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.cluster.guarded_cluster import LONG, OTHER_FINALIZER, REPOSITORY, TOOLKIT, GuardedCluster
from tests.support.managers.manager_requests import RBAC, Request, check, delete, meta, patch, read, row
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import (
    ADDON_DESCHEDULER,
    CATTLE_SYSTEM,
    FINALIZER,
    FLEET_LOCAL,
    KUBE_SYSTEM,
    LABEL_ACTIVE,
    LONGHORN_REPLENISHMENT_SETTING,
    LONGHORN_SYSTEM,
    PREFIX,
)
from upgrade_manager.api.keys import MACHINE_PLAN_SECRET_TYPE as PLAN_TYPE
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS, NODES, SECRETS, UPGRADE_PLANS
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS as CLUSTERS

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

#: Harvester's mutating webhook adds them to the manager's own request.
LAST_OPERATION = {
    "harvesterhci.io/addon-last-operation": "disable",
    "harvesterhci.io/addon-last-operation-timestamp": "2026-01-01T00:00:00Z",
}
#: The API server sets it on each new Node.
NEW = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
DRAIN = {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
TAINT = {"key": "evil", "effect": "NoExecute"}
OWN_ANNOTATIONS = f"only annotations {PREFIX}/*"
MACHINE, ROLE = {"cluster.x-k8s.io/machine": "x"}, {"node-role.kubernetes.io/etcd": ""}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
#: Metadata that the manager changes of no object.
HELD: dict[str, Any] = {"finalizers": ["a/b"]}
OWNED: dict[str, Any] = {"ownerReferences": [OWNER]}
DISABLED = {"enabled": False}
KUBECONFIG = ("kubeconfig", FLEET_LOCAL)

node = partial(patch, NODES, "node-1")
big_node = partial(patch, NODES, LONG)
machine_plan = partial(patch, SECRETS, "plan-1", FLEET_LOCAL)
big_machine_plan = partial(patch, SECRETS, LONG, FLEET_LOCAL)
kubeconfig = partial(patch, SECRETS, *KUBECONFIG)
rancher = partial(patch, CLUSTERS, "local", FLEET_LOCAL)
addon = partial(patch, ADDONS, ADDON_DESCHEDULER, KUBE_SYSTEM)
setting = partial(patch, LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, LONGHORN_SYSTEM)
plan = partial(patch, UPGRADE_PLANS, "upgrade")


def status(name: str = "upgrade", /, **fields: Any) -> Request:
    """Change fields of a plan's status."""
    return patch(UPGRADE_PLANS, name, subresource="status", status=fields)


def rke(**fields: Any) -> Request:
    """Change fields of the cluster's rkeConfig."""
    return rancher(spec={"rkeConfig": fields})


def secrets(name: str, namespace: str) -> Request:
    """Read a Secret, or all of a namespace: Rancher chooses the names of machine plans, which RBAC cannot list."""
    return read(SECRETS.path(name, namespace=namespace))


def marked(name: str, value: str | None, **metadata: Any) -> Request:
    """Change the label of the active plan."""
    return patch(UPGRADE_PLANS, name, metadata={"labels": {LABEL_ACTIVE: value}, **metadata})


def held(*finalizers: str) -> Request:
    """Change the finalizers of the active plan."""
    return plan(metadata={"finalizers": [*finalizers]})


def toolkit(attempt: int | None = None, **more: Any) -> Request:
    """Record a toolkit image, in a further attempt if that is given."""
    return status(toolkitImage=TOOLKIT | more, **({"attempt": attempt} if attempt else {}))


def labels(**values: str | None) -> dict[str, Any]:
    """Return labels of the system-upgrade-controller's Plans."""
    return meta(labels={f"plan.upgrade.cattle.io/{name}": value for name, value in values.items()})


def annotate(**values: str | None) -> dict[str, Any]:
    """Return annotations of the manager, with underscores for hyphens."""
    return meta(annotations={f"{PREFIX}/{name.replace('_', '-')}": value for name, value in values.items()})


HOOK = annotate(pre_hook="x")
HOOKED = machine_plan(**HOOK)
TAINTED = node(spec={"taints": [NEW, DRAIN]})

nodes = partial(row, "nodes")
node_label = partial(nodes, "only labels plan.upgrade")
other_field = partial(nodes, "other fields")
NODE_ROWS = [
    nodes("spec.unschedulable", "cordon a Node", node(spec={"unschedulable": True}), TAINTED),
    nodes("only the taint", "taint a Node", node(spec={"taints": [NEW, TAINT]}), TAINTED),
    other_field("move a Node to another machine", node(spec={"providerID": "x"}), node(spec={})),
    other_field("own a Node", node(**meta(**OWNED)), node(**meta())),
    other_field("hold a Node", node(**meta(finalizers=["example.com/x"])), node(**meta())),
    node_label("label a Node", node(**meta(labels=ROLE)), node(**labels(x=None, p=None))),
    node_label("remove a label of a Node", node(**meta(labels={"zone": None})), node(**labels(new="1"))),
    node_label(
        "label a Node of 1000 labels",
        big_node(**meta(labels={"example.com/label-0999": "x"})),
        big_node(metadata=labels(x="1")["metadata"] | HOOK["metadata"]),
    ),
    nodes(OWN_ANNOTATIONS, "annotate a Node", node(**meta(annotations=MACHINE)), node(**annotate(pendingOSImage="x"))),
]

plan_content = partial(row, "machine-plans", "does not change what a machine plan does")
plan_metadata = partial(row, "machine-plans", OWN_ANNOTATIONS)
MACHINE_PLAN_ROWS = [
    plan_content("change a machine plan", machine_plan(data={"plan": "eA=="}), HOOKED),
    plan_content("add to a machine plan", machine_plan(stringData={"x": "y"}), HOOKED),
    plan_content("fix a machine plan", machine_plan(immutable=True), HOOKED),
    plan_content(
        "change a large machine plan of 1000 labels", big_machine_plan(data={"x": "eA=="}), big_machine_plan(**HOOK)
    ),
    plan_metadata(
        "annotate a machine plan as Rancher",
        machine_plan(**meta(annotations={"rke.cattle.io/pre-drain": "x"})),
        machine_plan(**annotate(pre_hook=None)),
    ),
    plan_metadata("label a machine plan", machine_plan(**meta(labels={"rke.cattle.io/machine-name": "x"})), HOOKED),
    row("machine-plans", f"only Secrets of type {PLAN_TYPE}", "change a kubeconfig", kubeconfig(**HOOK), HOOKED),
    row(RBAC, "cannot delete", "delete a kubeconfig", delete(SECRETS, *KUBECONFIG), machine_plan(**meta())),
    row(RBAC, "cannot get", "read a kubeconfig", secrets(*KUBECONFIG), secrets("", FLEET_LOCAL)),
    row(RBAC, "cannot list", "read Secrets of Rancher", secrets("", CATTLE_SYSTEM), secrets("", FLEET_LOCAL)),
]

cluster_spec = partial(row, "rancher-cluster", "changes only kubernetesVersion")
cluster_metadata = partial(row, "rancher-cluster", OWN_ANNOTATIONS)
ENDPOINT = {"localClusterAuthEndpoint": {"enabled": True}}
STRATEGY: dict[str, Any] = {"provisionGeneration": 2, "upgradeStrategy": {"workerConcurrency": "1"}}
RANCHER_ROWS = [
    cluster_spec("change the registries of the cluster", rke(registries={"mirrors": {"x": {}}}), rke(**STRATEGY)),
    cluster_spec("remove a field of the cluster", rke(registries=None), rancher(spec={"kubernetesVersion": "v2"})),
    cluster_spec("add a field to the cluster", rancher(spec=ENDPOINT), rke(upgradeStrategy=None)),
    cluster_metadata(
        "annotate the cluster",
        rancher(**meta(annotations={"example.com/x": "y"})),
        rancher(**annotate(original_upgrade_strategy="{}")),
    ),
    cluster_metadata("hold the cluster", rancher(**meta(**HELD)), rancher(**meta())),
]

addons = partial(row, "addons", "only spec.enabled of an Addon")
addon_metadata = partial(row, "addons", "does not change the metadata of an Addon")
setting_value = partial(row, "longhorn-settings", "only the value of a setting of Longhorn")
SWITCHED_OFF, ADDON_STATUS = addon(spec=DISABLED), addon(subresource="status", status={"status": "x"})
CHART = {
    "repo": "http://evil.example/charts",
    "chart": "evil",
    "version": "9.9.9",
    "valuesContent": "x: z",
    "more": "x",
}
SETTING_METADATA = {
    "annotate": {"annotations": {"longhorn.io/update-setting-from-longhorn": ""}},
    "label": {"labels": {"a": "b"}},
    "hold": HELD,
    "own": OWNED,
}
OVERRIDE_ROWS = [
    *(
        addons(f"change {field} of an Addon", addon(spec={field: value} | DISABLED), SWITCHED_OFF)
        for field, value in CHART.items()
    ),
    addon_metadata(
        "annotate an Addon",
        addon(**meta(annotations={"helm.sh/x": "y"})),
        addon(spec=DISABLED, **meta(annotations=LAST_OPERATION)),
    ),
    addon_metadata(
        "remove an annotation of an Addon",
        addon(**meta(annotations={"example.com/label-0999": None})),
        addon(spec={"enabled": True}),
    ),
    addon_metadata("label an Addon", addon(**meta(labels={"a": "b"})), SWITCHED_OFF),
    addon_metadata("hold an Addon", addon(**meta(**HELD)), SWITCHED_OFF),
    addon_metadata("own an Addon", addon(**meta(**OWNED)), SWITCHED_OFF),
    row(RBAC, "cannot patch", "change the status of an Addon", ADDON_STATUS, SWITCHED_OFF),
    *(
        setting_value(f"{verb} a setting of Longhorn", setting(**meta(**fields)), setting(value="1800"))
        for verb, fields in SETTING_METADATA.items()
    ),
]

plans = partial(row, "plans")
user_annotation = partial(plans, "annotations that users set")
active = partial(plans, "does not become active without")
QUEUED, RELEASED = marked("queued", "true", finalizers=[FINALIZER]), marked("failed", None, finalizers=[])
BOTH_HOLD = held(OTHER_FINALIZER, FINALIZER)
PLAN_ROWS = [
    plans("does not change the spec", "change the spec", plan(spec={"force": True}), marked("upgrade", None)),
    user_annotation(
        "waive a check", plan(**annotate(allow_deletion="true")), plan(**annotate(descheduler_was_enabled="true"))
    ),
    user_annotation(
        "choose the toolkit image",
        plan(**annotate(upgrade_toolkit_image="evil")),
        plan(**annotate(replica_replenishment_wait_interval="600")),
    ),
    user_annotation(
        "attribute a change to another user",
        plan(**annotate(last_changed_by="eve 00")),
        plan(**annotate(last_changed_by="alice 00", **{"continue": None})),
    ),
    user_annotation(
        "let a node go on", plan(**annotate(**{"continue": "node-2:Drain"})), plan(**annotate(**{"continue": None}))
    ),
    plans("changes only the label", "label a plan", plan(**meta(labels={"team": "b"})), QUEUED),
    plans("only its own finalizer", "remove the finalizer of another controller", held(FINALIZER), BOTH_HOLD),
    plans("in progress stays", "remove the finalizer of a plan in progress", held(OTHER_FINALIZER), RELEASED),
    active("activate a plan that has ended", marked("failed", "true"), marked("resumed", "true")),
    row(RBAC, "cannot delete", "delete a plan", delete(UPGRADE_PLANS, "upgrade", ""), plan(**meta())),
]

plan_status = partial(row, "plan-status")
once = partial(plan_status, "is recorded once in each attempt")
no_prefix = partial(plan_status, "is in none of the repositories")
active_only = partial(plan_status, "only for the UpgradePlan with the label")
OTHER, SIMILAR = (toolkit(2, repository=name) for name in ("evil", f"{REPOSITORY}-evil"))
SECOND, NO_CONDITIONS = status(attempt=2), status("queued", conditions=[])
STATUS_ROWS = [
    plan_status("only follows spec.attempt", "begin an attempt", status(attempt=3), SECOND),
    plan_status(
        "does not continue without another attempt",
        "continue a plan that has ended",
        status("failed", currentPhase="Initializing"),
        status("resumed", currentPhase="Initializing", attempt=2),
    ),
    once("record another image", toolkit(tag="v0"), toolkit()),
    once("remove the image", status(toolkitImage=None), SECOND),
    once("change the kind", toolkit(kind="own"), toolkit(2, tag="v2")),
    no_prefix("record an image of another repository", OTHER, toolkit(2, repository=f"{REPOSITORY}/sub")),
    no_prefix("record an image of a similar repository", SIMILAR, toolkit(2, digest="sha256:1")),
    active_only("record the image of another plan", status("queued", toolkitImage=TOOLKIT), NO_CONDITIONS),
]


@pytest.mark.parametrize(
    ("policy", "text", "abuse", "permitted"),
    [*NODE_ROWS, *MACHINE_PLAN_ROWS, *RANCHER_ROWS, *OVERRIDE_ROWS, *PLAN_ROWS, *STATUS_ROWS],
)
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)
