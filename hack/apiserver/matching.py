"""Matching of requests against the rules and selectors of admission webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.selectors import selects
from upgrade_manager.kube.resources import NAMESPACES

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage

_GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = frozenset(f"{kind}webhookconfigurations.{_GROUP}" for kind in ("mutating", "validating"))
#: Kinds that are never sent to webhooks, so that a broken configuration can be repaired.
EXEMPT = CONFIGURATIONS | {f"validatingadmissionpolic{end}.{_GROUP}" for end in ("ies", "ybindings")}


def matches(
    webhook: Object,
    route: Route,
    *,
    operation: Operation,
    new: Object | None,
    old: Object | None,
    storage: Storage,
) -> bool:
    """Return whether a webhook's rules and selectors match a request."""
    if not any(_rule_matches(rule, route, operation) for rule in webhook.get("rules") or ()):
        return False
    chosen = webhook.get("objectSelector") or {}
    if not any(obj is not None and selects(chosen, _labels(obj)) for obj in (new, old)):
        return False
    return _namespace_matches(webhook.get("namespaceSelector") or {}, route, new or old or {}, storage)


def _rule_matches(rule: Object, route: Route, operation: Operation) -> bool:
    resource = route.row.resource
    scope = rule.get("scope", "*")
    fits = scope == "*" or (scope == "Namespaced") == resource.namespaced
    return (
        fits
        and _listed(operation, rule.get("operations"))
        and _listed(resource.group, rule.get("apiGroups"))
        and _listed(resource.version, rule.get("apiVersions"))
        and any(_resource_matches(pattern, route) for pattern in rule.get("resources") or ())
    )


def _listed(value: str, allowed: Any) -> bool:
    return isinstance(allowed, list) and (value in allowed or "*" in allowed)


def _resource_matches(pattern: str, route: Route) -> bool:
    plural, slash, subresource = pattern.partition("/")
    if plural not in {"*", route.row.resource.plural}:
        return False
    if not slash:
        return not route.subresource
    return subresource in {"*", route.subresource}


def _labels(obj: Object) -> dict[str, str]:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels


def _namespace_matches(selector: Object, route: Route, obj: Object, storage: Storage) -> bool:
    """Match the namespaceSelector: a Namespace by its labels; other cluster-scoped objects always match."""
    if route.row.resource.name == NAMESPACES.name:
        return selects(selector, _labels(obj))
    if not route.namespace:
        return True
    found = storage.get(NAMESPACES.name, ("", route.namespace))
    return found is not None and selects(selector, _labels(found.object))
