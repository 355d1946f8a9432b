"""The default values of fields of built-in kinds.

A real server adds them to stored objects, so controllers that compare objects must handle them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row


def defaults_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Add the defaults of a built-in kind; a mutating stage."""
    _ = (old, operation, options)
    template = None if row.custom else DEFAULTS.get(row.resource.name)
    return new if template is None else filled(new, template)


def filled(value: Any, template: dict[str, Any]) -> Any:
    """Return the value with the defaults of the template; the same value when none applies.

    A key of the template that ends in [] describes each item of a list; one that ends in ? applies only if the member
    exists. A function computes the default from the neighbouring members; None means no default.
    """
    if not isinstance(value, dict):
        return value
    result = value
    for key, default in template.items():
        name = key.rstrip("[]?")
        known = result.get(name)
        added = _items(known, default) if key.endswith("[]") else _member(result, key, known, default)
        if added is not known:
            result = result | {name: added}
    return result


def _items(known: Any, template: dict[str, Any]) -> Any:
    if not isinstance(known, list):
        return known
    items = [filled(item, template) for item in known]
    return known if all(new is old for new, old in zip(items, known, strict=True)) else items


def _member(around: Object, key: str, known: Any, default: Any) -> Any:
    # Go does not distinguish an empty string from an absent one.
    if (known is None or (known == "" and not isinstance(default, dict))) and not key.endswith("?"):
        if callable(default):
            return default(around)
        return filled({}, default) if isinstance(default, dict) else default
    return filled(known, default) if isinstance(default, dict) else known


_RBAC = "rbac.authorization.k8s.io"


def _pull_policy(container: dict[str, Any]) -> str | None:
    """Return Always for the tag latest, explicit or implied."""
    image = container.get("image")
    if not image:
        return None
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in {"", "latest"} else "IfNotPresent"


def _rolling_update(strategy: dict[str, Any]) -> dict[str, Any] | None:
    rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    return {"maxUnavailable": "25%", "maxSurge": "25%"} if rolling else None


def _completions(spec: dict[str, Any]) -> int | None:
    return 1 if spec.get("parallelism") is None else None


def _target_port(port: dict[str, Any]) -> Any:
    return port.get("port")


def _subject_group(subject: dict[str, Any]) -> str | None:
    return _RBAC if subject.get("kind") in {"User", "Group"} else None


_PROBE = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "httpGet?": {"path": "/", "scheme": "HTTP"},
}
_CONTAINER = {
    "imagePullPolicy": _pull_policy,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
    "ports[]": {"protocol": "TCP"},
    "env[]": {"valueFrom?": {"fieldRef?": {"apiVersion": "v1"}}},
    "livenessProbe?": _PROBE,
    "readinessProbe?": _PROBE,
    "startupProbe?": _PROBE,
}
_FILE_MODE = {"defaultMode": 0o644}
_VOLUME = {"configMap?": _FILE_MODE, "secret?": _FILE_MODE, "projected?": _FILE_MODE, "hostPath?": {"type": ""}}
_POD_SPEC = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
    "containers[]": _CONTAINER,
    "initContainers[]": _CONTAINER,
    "volumes[]": _VOLUME,
}
_TEMPLATE = {"metadata": {}, "spec": _POD_SPEC}
_BINDING = {"roleRef?": {"apiGroup": _RBAC}, "subjects[]": {"apiGroup": _subject_group}}
_HOOK = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
    "rules[]": {"scope": "*"},
    "clientConfig?": {"service?": {"port": 443}},
}
_MATCH_RESOURCES = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "resourceRules[]": {"scope": "*"},
    "excludeResourceRules[]": {"scope": "*"},
}

#: Keyed by plural.group.
DEFAULTS: dict[str, dict[str, Any]] = {
    "pods": {"spec": _POD_SPEC | {"enableServiceLinks": True}},
    "secrets": {"type": "Opaque"},
    "services": {
        "spec": {
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports[]": {"protocol": "TCP", "targetPort": _target_port},
        }
    },
    "persistentvolumeclaims": {"spec": {"volumeMode": "Filesystem"}},
    "deployments.apps": {
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": _rolling_update},
            "template?": _TEMPLATE,
        }
    },
    "jobs.batch": {
        "spec": {
            "completions": _completions,
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "template?": _TEMPLATE,
        }
    },
    "endpointslices.discovery.k8s.io": {"ports[]": {"name": "", "protocol": "TCP"}},
    f"clusterrolebindings.{_RBAC}": _BINDING,
    f"rolebindings.{_RBAC}": _BINDING,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": {
        "webhooks[]": _HOOK | {"reinvocationPolicy": "Never"},
    },
    "validatingadmissionpolicies.admissionregistration.k8s.io": {
        "spec": {"failurePolicy": "Fail", "matchConstraints?": _MATCH_RESOURCES}
    },
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": {"spec?": {"matchResources?": _MATCH_RESOURCES}},
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {"webhooks[]": _HOOK},
}
