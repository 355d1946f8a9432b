"""Rancher's provisioning cluster: its absence, and the conditions that Rancher reports while it is not ready.

The webhook (webhook/checks/cluster.py), the node upgrade (pipeline/settings/rancher.py), the Jobs
(toolkit/charts/rancher.py, toolkit/charts/rancher_cluster.py) and the finder (blockers/rancher.py) call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.condition_words import unmet_conditions
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

#: The cluster in messages.
NAME = f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER}"
#: Rancher's Deployment.
RANCHER = "rancher"
#: The log of all replicas: any of them may be the leader.
LOGS = f"kubectl -n {CATTLE_SYSTEM} logs -l app={RANCHER} --tail=100 --prefix --timestamps"
#: The problem of a missing cluster, and the remedy.
ABSENT = f"{NAME} (provisioning.cattle.io) does not exist"
SHOW_LOG = Remedy("Rancher creates it; show Rancher's log", command=LOGS)
#: The most conditions in a message; the conditions of several objects often have equal messages.
_MAX_CONDITIONS = 3


def not_ready(cluster: Object) -> str:
    """Return why the cluster is not ready; empty if it is."""
    if objects.is_true(cluster, "status", "ready"):
        return ""
    return f"{NAME} is not ready: {reported(cluster) or 'Rancher does not report why'}"


def reported(cluster: Object) -> str:
    """Return Rancher's unmet conditions of the cluster; empty without such a condition."""
    return joined((unmet.partition(": ")[2], unmet) for unmet in unmet_conditions(cluster))


def joined(conditions: Iterable[tuple[str, str]]) -> str:
    """Return the first conditions, given by message: Rancher repeats a message in several conditions."""
    found: dict[str, str] = {}
    for message, condition in conditions:
        found.setdefault(message, condition)
    more = len(found) - _MAX_CONDITIONS
    return "; ".join([*found.values()][:_MAX_CONDITIONS]) + (f"; and {more} more conditions" if more > 0 else "")
