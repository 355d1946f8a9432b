"""Refuses to run a manager beside a leader: both would write the same plans and answer the same hooks.

run.py makes the check for a manager on a user's machine, which has a kubeconfig and no service account. A replica in
the cluster runs as its Deployment says: as a candidate, or alone. With --leader-elect a user's manager is a candidate,
too. The check is made once: a replica that is started later is not held by this manager, which has no lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE, MANAGER
from upgrade_manager.cli.api_server_check import StartError
from upgrade_manager.kube.errors import NotFound, Terminal
from upgrade_manager.kube.resources import LEASES
from upgrade_manager.runtime.lease import is_led, pod_of, renewal_age

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock

_REMEDY = (
    f"Stop it with kubectl -n {HARVESTER_SYSTEM} scale deployment/{MANAGER} --replicas=0, or add --leader-elect, "
    "with which this manager waits until it can lead"
)
_log = structlog.get_logger(__name__)


async def refuse_beside_leader(client: Client, *, clock: Clock) -> None:
    """Return if no other manager leads, or if that cannot be read. Raises StartError."""
    try:
        lease = await client.get(LEASES, LEASE, namespace=HARVESTER_SYSTEM)
    except NotFound:
        return
    except Terminal as error:
        _log.warning("it is unknown whether another manager leads", error=str(error))
        return
    now = clock.now()
    if is_led(lease, at=now):
        renewed = f"it renewed lease {HARVESTER_SYSTEM}/{LEASE}{renewal_age(lease, now=now)}"
        raise StartError(f"{pod_of(lease)} leads: {renewed}. {_REMEDY}")
