"""Rancher's Feature multi-cluster-management, which is false in a Harvester cluster.

The Job checks it after Rancher's upgrade (toolkit/charts/rancher_features.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.facts.rancher_cluster import LOGS
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

MULTI_CLUSTER = "multi-cluster-management"
#: The fields that hold its value; the first one that is set counts.
_FIELDS = (("status", "lockedValue"), ("spec", "value"), ("status", "default"))


def unmet(feature: Object | None) -> str:
    """Return why Rancher is a multi-cluster manager, or may be; empty if it is none."""
    if feature is None:
        return f"Feature {MULTI_CLUSTER} does not exist; Rancher creates it when it starts. Show Rancher's log: {LOGS}"
    found = ((".".join(path), objects.value(feature, *path)) for path in _FIELDS)
    field, value = next(((field, value) for field, value in found if value is not None), ("status.default", None))
    if value is False:
        return ""
    state = "is true" if value else "has no value"
    return (
        f"Feature {MULTI_CLUSTER} {state} in {field}, so that Rancher would manage other clusters. If it refused the "
        f"features of its chart, its log names the key: {LOGS}"
    )
