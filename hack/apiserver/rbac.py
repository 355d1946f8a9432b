"""The RBAC rules that apply to a user, from the Roles, ClusterRoles and bindings in the store.

The roles cluster-admin, system:auth-delegator, system:basic-user, system:discovery and system:public-info-viewer need
not be stored; a stored role of the same name takes precedence. Other default roles and aggregation are not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.admission import Object
    from hack.apiserver.identity import Attributes, User
    from hack.apiserver.storage import Storage

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"

Rule = dict[str, Any]

_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = [*_PUBLIC, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]

#: The ClusterRoles that need not be stored.
DEFAULT_ROLES: dict[str, list[Rule]] = {
    "cluster-admin": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "system:auth-delegator": [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ],
    "system:basic-user": [
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["create"]},
    ],
    "system:discovery": [{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}],
    "system:public-info-viewer": [{"nonResourceURLs": _PUBLIC, "verbs": ["get"]}],
}
#: The ClusterRoleBindings that need not be stored: group to roles.
DEFAULT_BINDINGS = {
    "system:masters": ("cluster-admin",),
    "system:authenticated": ("system:basic-user", "system:discovery", "system:public-info-viewer"),
    "system:unauthenticated": ("system:public-info-viewer",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A rule that applies to a user, and its origin; `missing` names a role that does not exist."""

    rule: Rule
    because: str = ""
    missing: str = ""


def grants(user: User, namespace: str, store: Storage) -> Iterator[Grant]:
    """Return the grants of a user in the whole cluster, and in a namespace if one is given."""
    for group in user.groups:
        for role in DEFAULT_BINDINGS.get(group, ()):
            because = f'allowed by ClusterRoleBinding "{role}" of ClusterRole "{role}" to Group "{group}"'
            yield from _of_role(store, "ClusterRole", role, "", because)
    for binding in store.objects(CLUSTER_ROLE_BINDINGS):
        yield from _of_binding(store, binding, user, "")
    if namespace:
        for binding in store.objects(ROLE_BINDINGS, namespace):
            yield from _of_binding(store, binding, user, namespace)


def allows(rule: Rule, attributes: Attributes) -> bool:
    """Return whether one rule covers one request."""
    if not _has(rule.get("verbs"), attributes.verb):
        return False
    if not attributes.is_resource:
        return any(_covers(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("apiGroups"), attributes.group)
        and _resource(rule.get("resources") or (), attributes)
        and (not names or attributes.name in names)
    )


def _has(values: list[str] | None, value: str) -> bool:
    return values is not None and ("*" in values or value in values)


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _resource(resources: list[str] | tuple[str, ...], attributes: Attributes) -> bool:
    expected = attributes.resource
    if attributes.subresource:
        expected = f"{expected}/{attributes.subresource}"
        if f"*/{attributes.subresource}" in resources:
            return True
    return "*" in resources or expected in resources


def _of_binding(store: Storage, binding: Object, user: User, namespace: str) -> Iterator[Grant]:
    for subject in binding.get("subjects") or ():
        if not _is(subject, user, namespace):
            continue
        role = binding["roleRef"]
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        name = binding["metadata"]["name"]
        shown = f"{name}/{namespace}" if namespace else name
        because = f'allowed by {kind} "{shown}" of {role["kind"]} "{role["name"]}" to {_shown(subject)}'
        yield from _of_role(store, role["kind"], role["name"], namespace, because)
        return


def _is(subject: dict[str, Any], user: User, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    return (
        kind == "ServiceAccount" and user.name == f"system:serviceaccount:{subject.get('namespace', namespace)}:{name}"
    )


def _shown(subject: dict[str, Any]) -> str:
    name = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        name = f"{name}/{subject.get('namespace', '')}"
    return f'{subject.get("kind")} "{name}"'


def rules_of(store: Storage, kind: str, name: str, namespace: str) -> list[Rule] | None:
    """Return the rules of a role; None when it does not exist."""
    stored = store.get(CLUSTER_ROLES, ("", name)) if kind == "ClusterRole" else store.get(ROLES, (namespace, name))
    if stored is not None:
        return stored.object.get("rules") or []
    if kind == "ClusterRole" and name in DEFAULT_ROLES:
        return DEFAULT_ROLES[name]
    return None


def _of_role(store: Storage, kind: str, name: str, namespace: str, because: str) -> Iterator[Grant]:
    rules = rules_of(store, kind, name, namespace)
    if rules is None:
        yield Grant(rule={}, missing=f'{kind.lower()}.{GROUP} "{name}" not found')
        return
    for rule in rules:
        yield Grant(rule=rule, because=because)
