"""The rows of the kinds that every Kubernetes server has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hack.apiserver.columns import columns_of
from hack.apiserver.quality import pending
from hack.apiserver.resources import REVIEW_VERBS, Row
from upgrade_manager.kube.resources import Resource

#: Holds a CustomResourceDefinition until the objects of its kind are gone.
INSTANCES = "customresourcecleanup.apiextensions.k8s.io"
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = (*(f"involvedObject.{field}" for field in _INVOLVED), "reason", "reportingComponent", "source", "type")
_NEW_EVENT_FIELDS = (*(f"regarding.{field}" for field in _INVOLVED), "reason", "reportingController", "type")
_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
#: How events.k8s.io/v1 names the fields of the Events that core/v1 stores.
_EVENT_RENAMES = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)


def _row(group: str, plural: str, kind: str, *, version: str = "v1", namespaced: bool = True, **more: Any) -> Row:
    resource = Resource(group=group, version=version, plural=plural, kind=kind, namespaced=namespaced)
    row = Row(resource=resource, singular=kind.lower(), list_kind=kind + "List", **more)
    return replace(row, columns=columns_of(row))


def _workload(group: str, plural: str, kind: str, short: str, *, scale: bool = False, **more: Any) -> Row:
    settings: dict[str, Any] = {
        "categories": ("all",),
        "status_subresource": True,
        "generation": True,
    }
    if short:
        settings["short_names"] = (short,)
    return _row(group, plural, kind, scale=scale, **(settings | more))


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> Row:
    return _row(group, plural, kind, namespaced=namespaced, verbs=REVIEW_VERBS)


_CORE = (
    _row("", "configmaps", "ConfigMap", short_names=("cm",)),
    _row("", "endpoints", "Endpoints", short_names=("ep",)),
    _row("", "events", "Event", short_names=("ev",), selectable=_EVENT_FIELDS, create_on_update=True),
    _row("", "limitranges", "LimitRange", short_names=("limits",)),
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
    _row("", "persistentvolumes", "PersistentVolume", namespaced=False, short_names=("pv",), status_subresource=True),
    _workload("", "pods", "Pod", "po", selectable=_POD_FIELDS, graceful=True, initial_status=pending),
    _row("", "podtemplates", "PodTemplate"),
    _workload(
        "",
        "replicationcontrollers",
        "ReplicationController",
        "rc",
        scale=True,
        orphan_by_default=True,
        selectable=("status.replicas",),
    ),
    _row("", "resourcequotas", "ResourceQuota", short_names=("quota",), status_subresource=True),
    _row("", "secrets", "Secret", selectable=("type",)),
    _row("", "serviceaccounts", "ServiceAccount", short_names=("sa",)),
    _row(
        "",
        "services",
        "Service",
        create_on_update=True,
        short_names=("svc",),
        categories=("all",),
        status_subresource=True,
        selectable=("spec.clusterIP", "spec.type"),
    ),
    _row("", "bindings", "Binding", verbs=REVIEW_VERBS),
)

_REVIEWS = (
    _review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    _review("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
)

_RBAC = "rbac.authorization.k8s.io"
_HOOKS = "admissionregistration.k8s.io"

_GROUPS = (
    _row(
        _HOOKS,
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
        generation=True,
        categories=("api-extensions",),
    ),
    _row(
        _HOOKS,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
        generation=True,
        categories=("api-extensions",),
    ),
    _row(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        status_subresource=True,
        generation=True,
        deletion_finalizer=INSTANCES,
        unconditional_update=False,
    ),
    _row(
        "apiregistration.k8s.io",
        "apiservices",
        "APIService",
        namespaced=False,
        categories=("api-extensions",),
        status_subresource=True,
        unconditional_update=False,
    ),
    _row("apps", "controllerrevisions", "ControllerRevision"),
    _workload("apps", "daemonsets", "DaemonSet", "ds"),
    _workload(
        "apps", "deployments", "Deployment", "deploy", scale=True, annotated_generation=True, status_keeps=("labels",)
    ),
    _workload("apps", "replicasets", "ReplicaSet", "rs", scale=True),
    _workload("apps", "statefulsets", "StatefulSet", "sts", scale=True),
    _workload("batch", "cronjobs", "CronJob", "cj"),
    _workload(
        "batch",
        "jobs",
        "Job",
        "",
        orphan_by_default=True,
        orphan_warning=_ORPHANED_PODS,
        selectable=("status.successful",),
        unselectable='field label "{}" not supported for Job',
    ),
    _row("coordination.k8s.io", "leases", "Lease", unconditional_update=False, create_on_update=True),
    _row("discovery.k8s.io", "endpointslices", "EndpointSlice", generation=True),
    _row(
        "events.k8s.io",
        "events",
        "Event",
        short_names=("ev",),
        stored_as="events",
        renames=_EVENT_RENAMES,
        selectable=_NEW_EVENT_FIELDS,
        create_on_update=True,
    ),
    _row("networking.k8s.io", "ingresses", "Ingress", short_names=("ing",), status_subresource=True, generation=True),
    _row("networking.k8s.io", "networkpolicies", "NetworkPolicy", short_names=("netpol",), generation=True),
    _row(
        "policy",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        short_names=("pdb",),
        status_subresource=True,
        generation=True,
        unconditional_update=False,
    ),
    _row(_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False, create_on_update=True),
    _row(_RBAC, "clusterroles", "ClusterRole", namespaced=False, create_on_update=True),
    _row(_RBAC, "rolebindings", "RoleBinding", create_on_update=True),
    _row(_RBAC, "roles", "Role", create_on_update=True),
    _row("scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)),
    _row("storage.k8s.io", "storageclasses", "StorageClass", namespaced=False, short_names=("sc",)),
    _row("storage.k8s.io", "volumeattachments", "VolumeAttachment", namespaced=False, status_subresource=True),
)

ROWS: tuple[Row, ...] = _CORE + _REVIEWS + _GROUPS
