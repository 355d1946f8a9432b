"""Validation of built-in kinds beyond types, for the objects that the manager and the actors write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.definition import definition
from hack.apiserver.schema.field_error import FieldError, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hack.apiserver.resources import Row

Object = dict[str, Any]

#: Kinds whose names are not DNS subdomains -> the rule in names.py.
_NAME_RULES = {
    "namespaces": "label",
    "services": "label-1035",
    "clusterroles.rbac.authorization.k8s.io": "segment",
    "clusterrolebindings.rbac.authorization.k8s.io": "segment",
    "roles.rbac.authorization.k8s.io": "segment",
    "rolebindings.rbac.authorization.k8s.io": "segment",
}
_IMMUTABLE = "field is immutable"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
#: The label with which a Job selects its Pods.
UID_LABEL = "batch.kubernetes.io/controller-uid"


def _pod(new: Object, old: Object | None) -> Iterator[FieldError]:
    if old is None:
        yield from _containers(new.get("spec") or {}, "spec")


def _containers(spec: Object, field: str) -> Iterator[FieldError]:
    """Yield errors of the containers of a Pod or of a Pod template."""
    if not spec.get("containers"):
        yield required(f"{field}.containers")
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            for key in ("name", "image"):
                if not container.get(key):
                    yield required(f"{field}.{kind}[{index}].{key}")


def _job(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    template = spec.get("template") or {}
    if old is not None:
        before = old.get("spec") or {}
        for field in ("completions", "selector", "template"):
            if spec.get(field) != before.get(field):
                yield invalid(f"spec.{field}", spec.get(field), _IMMUTABLE)
        return
    yield from _containers(template.get("spec") or {}, "spec.template.spec")
    if (template.get("spec") or {}).get("restartPolicy") == "Always":
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _deployment(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    template = spec.get("template") or {}
    selector = spec.get("selector")
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is None:
        yield required("spec.selector")
    elif not ((selector.get("matchLabels") or {}).items() <= labels.items()):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _containers(template.get("spec") or {}, "spec.template.spec")
    if old is not None and selector != (old.get("spec") or {}).get("selector"):
        yield invalid("spec.selector", selector, _IMMUTABLE)


def _event(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Yield an error when an Event is not in the namespace of its object."""
    _ = old
    about = (new.get("involvedObject") or {}).get("namespace") or ""
    allowed = {about} if about else {"default", "kube-system"} if new.get("eventTime") else {"default"}
    if new["metadata"].get("namespace") not in allowed:
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def _lease(new: Object, old: Object | None) -> Iterator[FieldError]:
    _ = old
    duration = (new.get("spec") or {}).get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")


def _node(new: Object, old: Object | None) -> Iterator[FieldError]:
    _ = old
    for index, taint in enumerate((new.get("spec") or {}).get("taints") or ()):
        if taint.get("effect") not in _EFFECTS:
            yield not_supported(f"metadata.taints[{index}].effect", taint.get("effect") or "", _EFFECTS)


#: plural.group -> the rules; each gets the new state and the old one, None at creation.
CHECKS: dict[str, Callable[[Object, Object | None], Iterator[FieldError]]] = {
    "customresourcedefinitions.apiextensions.k8s.io": definition,
    "deployments.apps": _deployment,
    "events": _event,
    "jobs.batch": _job,
    "leases.coordination.k8s.io": _lease,
    "nodes": _node,
    "pods": _pod,
}


def name_rule(row: Row) -> str:
    """Return the rule of names.py for the names of a kind."""
    return _NAME_RULES.get(row.resource.name, "subdomain")


def builtin_errors(row: Row, new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of an object of a built-in kind."""
    check = CHECKS.get(row.resource.name)
    return [] if check is None else list(check(new, old))
