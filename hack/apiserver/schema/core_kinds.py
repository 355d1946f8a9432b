"""Rules of built-in kinds that go beyond types: their names, what belongs together, and what never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema import keyed_data, networking, pod_templates, workloads
from hack.apiserver.schema.definition import definition
from hack.apiserver.schema.events import event, new_event
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hack.apiserver.resources import Row

Object = dict[str, Any]

#: Kinds whose names are no plain DNS subdomains: the rule's name in names.py.
_NAME_RULES = {
    "namespaces": "label",
    "services": "label-1035",
    "clusterroles.rbac.authorization.k8s.io": "segment",
    "clusterrolebindings.rbac.authorization.k8s.io": "segment",
    "roles.rbac.authorization.k8s.io": "segment",
    "rolebindings.rbac.authorization.k8s.io": "segment",
}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ROLES = {"RoleBinding": ("Role", "ClusterRole"), "ClusterRoleBinding": ("ClusterRole",)}


def binding(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a RoleBinding or ClusterRoleBinding."""
    role = new.get("roleRef") or {}
    if role.get("kind") not in _ROLES[new["kind"]]:
        yield not_supported("roleRef.kind", role.get("kind", ""), _ROLES[new["kind"]])
    if not role.get("name"):
        yield required("roleRef.name")
    if old is not None and role != old.get("roleRef"):
        shown = {"APIGroup": role.get("apiGroup"), "Kind": role.get("kind"), "Name": role.get("name")}
        yield invalid("roleRef", shown, "cannot change roleRef")


def lease(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Lease."""
    _ = old
    spec = new.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def node(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Node."""
    _ = old
    for index, taint in enumerate((new.get("spec") or {}).get("taints") or ()):
        field = f"metadata.taints[{index}]"
        if not taint.get("effect"):
            yield required(f"{field}.effect")
        elif taint["effect"] not in _EFFECTS:
            yield not_supported(f"{field}.effect", taint["effect"], _EFFECTS)


#: By plural and group; each takes the new state and the old one, None at creation.
CHECKS: dict[str, Callable[[Object, Object | None], Iterator[FieldError]]] = {
    "clusterrolebindings.rbac.authorization.k8s.io": binding,
    "configmaps": keyed_data.config_map,
    "customresourcedefinitions.apiextensions.k8s.io": definition,
    "deployments.apps": workloads.deployment,
    "endpointslices.discovery.k8s.io": networking.endpoint_slice,
    "events": event,
    "events.events.k8s.io": new_event,
    "jobs.batch": workloads.job,
    "leases.coordination.k8s.io": lease,
    "nodes": node,
    "pods": pod_templates.pod,
    "rolebindings.rbac.authorization.k8s.io": binding,
    "secrets": keyed_data.secret,
    "services": networking.service,
}


def name_rule(row: Row) -> str:
    """Which rule of names.py the names of a kind follow."""
    return _NAME_RULES.get(row.resource.name, "subdomain")


def builtin_errors(row: Row, new: Object, old: Object | None) -> list[FieldError]:
    """Findings about a built-in kind that a schema cannot say: labels of templates, selectors, what never changes."""
    check = CHECKS.get(row.resource.name)
    return [] if check is None else list(check(new, old))
