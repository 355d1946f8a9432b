"""Rancher's Feature multi-cluster-management, which is false in a Harvester cluster.

The Job checks it after Rancher's upgrade (toolkit/charts/rancher_features.py), the webhook before
(webhook/checks/rancher_features.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.rancher_cluster import LOGS
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import RANCHER_FEATURES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

MULTI_CLUSTER = "multi-cluster-management"
#: The remedy, after which nothing is to be given back: Harvester needs the default.
FOLLOW_DEFAULT = Remedy(
    "Let the Feature follow its default, which restarts Rancher",
    command=f'kubectl patch {RANCHER_FEATURES.name} {MULTI_CLUSTER} --type merge -p \'{{"spec":{{"value":null}}}}\'',
)
#: The fields that hold its value; the first one that is set counts.
_FIELDS = (("status", "lockedValue"), ("spec", "value"), ("status", "default"))


def set_by_a_user(feature: Object) -> str:
    """Return that a user has made Rancher manage other clusters; empty if none has."""
    if objects.value(feature, "status", "lockedValue") is not None or not objects.is_true(feature, "spec", "value"):
        return ""
    return (
        f"Rancher's Feature {MULTI_CLUSTER} has spec.value true, with which Rancher manages other clusters, and "
        "cluster-upgrade fails once it has upgraded Rancher"
    )


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
