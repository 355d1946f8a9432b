"""The status of a new Pod: it waits, and its quality of service is settled by what its containers ask for."""

from __future__ import annotations

from typing import Any

_COUNTED = ("cpu", "memory")


def pending(pod: dict[str, Any]) -> dict[str, Any]:
    """The status that a Pod begins with."""
    return {"phase": "Pending", "qosClass": _class_of(pod.get("spec") or {})}


def _class_of(spec: dict[str, Any]) -> str:
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    wanted = [_counted(container, "requests") for container in containers]
    limits = [_counted(container, "limits") for container in containers]
    if not any(wanted) and not any(limits):
        return "BestEffort"
    guaranteed = all(len(limit) == len(_COUNTED) for limit in limits) and wanted == limits
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(container: dict[str, Any], kind: str) -> dict[str, Any]:
    amounts = (container.get("resources") or {}).get(kind) or {}
    return {name: amounts[name] for name in _COUNTED if name in amounts}
