"""The rows of the built-in kinds that the manager, the actors and the documented kubectl commands use."""

from __future__ import annotations

from typing import Any

from hack.apiserver.columns import COLUMNS
from hack.apiserver.resources import REVIEW_VERBS, Row
from upgrade_manager.kube.resources import Resource

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = (*(f"involvedObject.{field}" for field in _INVOLVED), "reason", "reportingComponent", "type")
_POD_FIELDS = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase")
_RBAC = "rbac.authorization.k8s.io"


def _row(group: str, plural: str, kind: str, *, namespaced: bool = True, **more: Any) -> Row:
    resource = Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=namespaced)
    columns = COLUMNS.get(resource.name, ())
    return Row(resource=resource, singular=kind.lower(), list_kind=kind + "List", columns=columns, **more)


def _workload(group: str, plural: str, kind: str, **more: Any) -> Row:
    return _row(group, plural, kind, categories=("all",), status_subresource=True, generation=True, **more)


def _review(group: str, plural: str, kind: str) -> Row:
    return _row(group, plural, kind, namespaced=False, verbs=REVIEW_VERBS)


def _admission(plural: str, kind: str, **more: Any) -> Row:
    group, categories = "admissionregistration.k8s.io", ("api-extensions",)
    return _row(group, plural, kind, namespaced=False, categories=categories, **more)


def _pending(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the initial status of a Pod."""
    _ = pod
    return {"phase": "Pending"}


ROWS: tuple[Row, ...] = (
    _row("", "configmaps", "ConfigMap", short_names=("cm",)),
    _row("", "events", "Event", short_names=("ev",), selectable=_EVENT_FIELDS),
    _row(
        "",
        "namespaces",
        "Namespace",
        namespaced=False,
        short_names=("ns",),
        status_subresource=True,
        status_on_create=True,
        selectable=("status.phase",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _row(
        "",
        "nodes",
        "Node",
        namespaced=False,
        short_names=("no",),
        status_subresource=True,
        status_on_create=True,
        selectable=("spec.unschedulable",),
    ),
    _row("", "persistentvolumeclaims", "PersistentVolumeClaim", short_names=("pvc",), status_subresource=True),
    _workload("", "pods", "Pod", short_names=("po",), selectable=_POD_FIELDS, graceful=True, initial_status=_pending),
    _row("", "resourcequotas", "ResourceQuota", short_names=("quota",), status_subresource=True),
    _row("", "secrets", "Secret", selectable=("type",)),
    _row("", "serviceaccounts", "ServiceAccount", short_names=("sa",)),
    _row(
        "",
        "services",
        "Service",
        short_names=("svc",),
        categories=("all",),
        status_subresource=True,
        selectable=("spec.clusterIP", "spec.type"),
    ),
    _row("", "bindings", "Binding", verbs=REVIEW_VERBS),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    _admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", generation=True),
    _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy", generation=True, status_subresource=True),
    _admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", generation=True),
    _admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", generation=True),
    _row(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        status_subresource=True,
        generation=True,
        unconditional_update=False,
    ),
    _workload(
        "apps",
        "deployments",
        "Deployment",
        short_names=("deploy",),
        scale_subresource=True,
        annotated_generation=True,
        status_keeps=("labels",),
    ),
    _workload("apps", "daemonsets", "DaemonSet", short_names=("ds",), annotated_generation=True),
    _workload(
        "batch",
        "jobs",
        "Job",
        orphan_by_default=True,
        selectable=("status.successful",),
    ),
    _row("coordination.k8s.io", "leases", "Lease", unconditional_update=False),
    _row("discovery.k8s.io", "endpointslices", "EndpointSlice", generation=True),
    _row("flowcontrol.apiserver.k8s.io", "flowschemas", "FlowSchema", namespaced=False, status_subresource=True),
    _row("networking.k8s.io", "networkpolicies", "NetworkPolicy", short_names=("netpol",), generation=True),
    _row("policy", "poddisruptionbudgets", "PodDisruptionBudget", short_names=("pdb",), status_subresource=True),
    _row(_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _row(_RBAC, "clusterroles", "ClusterRole", namespaced=False),
    _row(_RBAC, "rolebindings", "RoleBinding"),
    _row(_RBAC, "roles", "Role"),
)
