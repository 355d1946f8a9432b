"""Rancher's provisioning cluster is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from webhook.check import Check, Finding
from webhook.listings import CLUSTERS

if TYPE_CHECKING:
    from webhook.check import Subject

_ABOUT = f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER}"


async def _find(subject: Subject) -> list[Finding]:
    clusters = await subject.cluster.list(CLUSTERS)
    if not clusters:
        logs = f"kubectl logs -n {CATTLE_SYSTEM} -l app=rancher --tail=100 --prefix"
        return [Finding(message=f"{_ABOUT} does not exist. Rancher creates it; see its log: {logs}")]
    if objects.is_true(clusters[0], "status", "ready"):
        return []
    reason = objects.excerpt(objects.condition(clusters[0], "Ready"), "message") or "Rancher has not reported"
    show = f"kubectl describe {PROVISIONING_CLUSTERS.name} -n {FLEET_LOCAL} {PROVISIONING_CLUSTER}"
    return [Finding(message=f"{_ABOUT} is not ready: {reason}. Wait until it is, or repair it: {show}")]


CHECK = Check(name="cluster", field="spec", find=_find)
