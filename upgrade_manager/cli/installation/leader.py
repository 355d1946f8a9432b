"""Checks that a replica leads; catalogue.py lists it. display/leader.py has the same rule for a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE, MANAGER
from upgrade_manager.cli.installation.row import Row, failed, passed, skipped
from upgrade_manager.facts.deployments import is_elected
from upgrade_manager.kube.resources import LEASES
from upgrade_manager.runtime.lease import is_led, last_renewal, pod_of, renewal_age

if TYPE_CHECKING:
    from upgrade_manager.cli.installation.cluster import Cluster

_CHECK = "leader"
_LOGS = f"kubectl -n {HARVESTER_SYSTEM} logs -l app.kubernetes.io/name={MANAGER} --prefix"


async def check_leader(cluster: Cluster) -> Row:
    """Check that a replica has renewed the Lease."""
    manager = await cluster.deployment(MANAGER)
    if manager is not None and not is_elected(manager):
        return skipped(_CHECK, "The manager runs without leader election.")
    lease = await cluster.client.find(LEASES, LEASE, namespace=HARVESTER_SYSTEM)
    if lease is None:
        return failed(_CHECK, f"Lease {HARVESTER_SYSTEM}/{LEASE} does not exist: no replica has led.", _LOGS)
    now = cluster.now()
    if is_led(lease, at=now):
        return passed(_CHECK, f"{pod_of(lease)} has renewed its lease{renewal_age(lease, now=now)}.")
    return failed(_CHECK, f"No replica leads: {last_renewal(lease, now=now)}.", _LOGS)
