"""Rancher's provisioning cluster is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.rancher_cluster import ABSENT, SHOW_LOG, not_ready
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from webhook.check import Check, Finding
from webhook.listings import CLUSTERS

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    clusters = await subject.cluster.list(CLUSTERS)
    if not clusters:
        return [Finding(problem=ABSENT, remedies=(SHOW_LOG,))]
    problem = not_ready(clusters[0])
    if not problem:
        return []
    show = f"kubectl describe {PROVISIONING_CLUSTERS.name} -n {FLEET_LOCAL} {PROVISIONING_CLUSTER}"
    return [Finding(problem=problem, remedies=(Remedy("Wait until it is, or repair it", command=show),))]


CHECK = Check(name="cluster", field="spec", find=_find)
