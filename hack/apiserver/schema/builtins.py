"""What is known of built-in kinds beyond their rows: columns, name rules, and schemas of what must be right.

Built-in kinds keep every field they are given; their schemas name only the fields whose absence or type would make a
real server refuse the object, so that a controller's mistake shows in the simulation too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.columns import columns_of
from hack.apiserver.schema.corekinds import CHECKS

if TYPE_CHECKING:
    from hack.apiserver.resources import Row
    from hack.apiserver.schema.fielderror import FieldError

#: Kinds whose names are no plain DNS subdomains: the rule's name in names.py.
_NAME_RULES = {
    "namespaces": "label",
    "services": "label-1035",
    "clusterroles.rbac.authorization.k8s.io": "segment",
    "clusterrolebindings.rbac.authorization.k8s.io": "segment",
    "roles.rbac.authorization.k8s.io": "segment",
    "rolebindings.rbac.authorization.k8s.io": "segment",
}

_STRING = {"type": "string"}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    """An object of which some fields are known; the rest is kept."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return schema | ({"required": required.split()} if required else {})


_ENV = _object("name", name=_STRING, value=_STRING)
_CONTAINER = _object(
    name=_STRING,
    image=_STRING,
    command=_list(_STRING),
    args=_list(_STRING),
    env=_list(_ENV),
    volumeMounts=_list(_object("name mountPath", name=_STRING, mountPath=_STRING, readOnly={"type": "boolean"})),
)
_POD_SPEC = _object(
    containers=_list(_CONTAINER),
    initContainers=_list(_CONTAINER),
    volumes=_list(_object("name", name=_STRING)),
    nodeName=_STRING,
    serviceAccountName=_STRING,
    restartPolicy=_STRING,
    tolerations=_list(_object()),
)
_SELECTOR = _object(matchLabels={"type": "object", "additionalProperties": _STRING})


def _template() -> dict[str, Any]:
    return _object(metadata=_object(), spec=_POD_SPEC)


_REPLICAS = {"type": "integer", "minimum": 0}

#: By plural and group: the schema of the object, `spec` and the like at its top level.
_SCHEMAS: dict[str, dict[str, Any]] = {
    "pods": _object(spec=_POD_SPEC),
    "jobs.batch": _object(
        spec=_object(
            template=_template(),
            backoffLimit={"type": "integer", "minimum": 0},
            completions={"type": "integer", "minimum": 0},
            parallelism={"type": "integer", "minimum": 0},
            activeDeadlineSeconds={"type": "integer", "minimum": 0},
            ttlSecondsAfterFinished={"type": "integer", "minimum": 0},
            suspend={"type": "boolean"},
        ),
    ),
    "deployments.apps": _object(
        "spec", spec=_object("selector", replicas=_REPLICAS, selector=_SELECTOR, template=_template())
    ),
    "replicasets.apps": _object("spec", spec=_object("selector", replicas=_REPLICAS, selector=_SELECTOR)),
    "secrets": _object(
        data={"type": "object", "additionalProperties": {"type": "string", "format": "byte", "nullable": True}},
        stringData={"type": "object", "additionalProperties": _STRING},
        type=_STRING,
    ),
    "configmaps": _object(data={"type": "object", "additionalProperties": _STRING}),
    "services": _object(
        "spec",
        spec=_object(
            ports=_list(_object("port", port={"type": "integer", "minimum": 1, "maximum": 65535}, name=_STRING)),
            selector={"type": "object", "additionalProperties": _STRING},
        ),
    ),
    "leases.coordination.k8s.io": _object(
        spec=_object(
            holderIdentity=_STRING,
            leaseDurationSeconds={"type": "integer", "minimum": 1},
            leaseTransitions={"type": "integer", "minimum": 0},
            acquireTime={"type": "string", "format": "date-time"},
            renewTime={"type": "string", "format": "date-time"},
        ),
    ),
}


def dress(row: Row) -> Row:
    """The row of a built-in kind with its columns and schema."""
    name = row.resource.name
    return replace(row, columns=columns_of(row), schema=_SCHEMAS.get(name))


def name_rule(row: Row) -> str:
    """Which rule of names.py the names of a kind follow."""
    return _NAME_RULES.get(row.resource.name, "subdomain")


def builtin_errors(row: Row, new: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
    """Findings about a built-in kind that a schema cannot say: labels of templates, selectors, what never changes."""
    check = CHECKS.get(row.resource.name)
    return [] if check is None else list(check(new, old))
