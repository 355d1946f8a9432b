from __future__ import annotations

from typing import Any


def _exists(key: str, effect: str = "") -> dict[str, Any]:
    return {"key": key, "operator": "Exists", **({"effect": effect} if effect else {})}


def _equal(key: str, value: str, effect: str) -> dict[str, Any]:
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}


#: What every Pod of an upgrade must put up with: nodes are cordoned, drained and rebooted while it runs.
TOLERATIONS: tuple[dict[str, Any], ...] = (
    _exists("node.kubernetes.io/unschedulable", "NoSchedule"),
    _exists("node.kubernetes.io/unreachable", "NoExecute"),
    _exists("node-role.kubernetes.io/control-plane", "NoExecute"),
    _exists("node-role.kubernetes.io/etcd", "NoExecute"),
    _equal("kubernetes.io/arch", "amd64", "NoSchedule"),
    _equal("kubernetes.io/arch", "arm64", "NoSchedule"),
    _equal("kubernetes.io/arch", "arm", "NoSchedule"),
    _exists("kubevirt.io/drain", "NoSchedule"),
    _exists("CriticalAddonsOnly"),
)


def tolerations() -> list[dict[str, Any]]:
    """A fresh copy for one Pod template."""
    return [dict(toleration) for toleration in TOLERATIONS]
