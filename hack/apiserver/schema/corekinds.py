"""Rules of built-in kinds that go beyond a schema: what belongs together, and what never changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema import podtemplates
from hack.apiserver.schema.definition import definition
from hack.apiserver.schema.events import event, new_event
from hack.apiserver.schema.fielderror import FieldError, forbidden, invalid, required, too_long
from hack.apiserver.schema.objectmeta import validate_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Object = dict[str, Any]

#: Bytes that the values of a Secret or ConfigMap may have together.
DATA_SIZE = 1024 * 1024

_KEY = "[-._a-zA-Z0-9]+"
_IMMUTABLE = "field is immutable"


def job(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Job."""
    spec = new.get("spec") or {}
    if old is not None:
        yield from _unchanged(new, old, "completions", "selector", "template")
        return
    template = spec.get("template") or {}
    yield from podtemplates.template(template, "spec.template")
    if (template.get("spec") or {}).get("restartPolicy") not in {"OnFailure", "Never"}:
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def deployment(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Deployment."""
    spec = new.get("spec") or {}
    template = spec.get("template") or {}
    yield from podtemplates.template(template, "spec.template")
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    yield from validate_labels(wanted, "spec.selector.matchLabels")
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not wanted.items() <= labels.items():
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if old is not None:
        yield from _unchanged(new, old, "selector")


def _unchanged(new: Object, old: Object, *fields: str) -> Iterator[FieldError]:
    now, before = new.get("spec") or {}, old.get("spec") or {}
    for field in fields:
        if now.get(field) != before.get(field):
            yield invalid(f"spec.{field}", now.get(field), _IMMUTABLE)


def secret(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Secret."""
    yield from _data(new)
    if old is not None:
        kind, before = new.get("type") or "Opaque", old.get("type") or "Opaque"
        if kind != before:
            yield invalid("type", kind, _IMMUTABLE)
        yield from _frozen(new, old)


def config_map(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a ConfigMap."""
    yield from _data(new)
    if old is not None:
        yield from _frozen(new, old)


def _data(new: Object) -> Iterator[FieldError]:
    data = new.get("data") or {}
    for key in data:
        if not re.fullmatch(_KEY, key):
            yield invalid(
                f"data[{key}]",
                key,
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
                f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')",
            )
    if sum(len(str(value)) for value in data.values()) > DATA_SIZE:
        yield too_long("data", DATA_SIZE)


def _frozen(new: Object, old: Object) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    if new.get("data") != old.get("data"):
        yield forbidden("data", "field is immutable when `immutable` is set")


def service(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Service."""
    _ = old
    spec = new.get("spec") or {}
    yield from validate_labels(spec.get("selector") or {}, "spec.selector")
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield required("spec.ports")
    for index, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")


def binding(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a RoleBinding or ClusterRoleBinding."""
    role = new.get("roleRef") or {}
    if not role.get("name"):
        yield required("roleRef.name")
    if old is not None and role != old.get("roleRef"):
        yield invalid("roleRef", role, "cannot change roleRef")


#: By plural and group; each takes the new state and the old one, None at creation.
CHECKS: dict[str, Callable[[Object, Object | None], Iterator[FieldError]]] = {
    "clusterrolebindings.rbac.authorization.k8s.io": binding,
    "configmaps": config_map,
    "customresourcedefinitions.apiextensions.k8s.io": definition,
    "deployments.apps": deployment,
    "events": event,
    "events.events.k8s.io": new_event,
    "jobs.batch": job,
    "pods": podtemplates.pod,
    "rolebindings.rbac.authorization.k8s.io": binding,
    "secrets": secret,
    "services": service,
}
