"""The defaults of the built-in kinds, as `defaults.filled` reads them."""

from __future__ import annotations

from typing import Any

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
    "validatingwebhookconfigurations.admissionregistration.k8s.io": {
        "webhooks[]": {
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "timeoutSeconds": 10,
            "rules[]": {"scope": "*"},
            "clientConfig?": {"service?": {"port": 443}},
        }
    },
}
