"""The Lease object of an election (coordination.k8s.io/v1), filled as by client-go's LeaseLock.

leader_election.py writes it; display/leader.py and cli/leader_check.py judge by it whether a replica leads.
"""

from __future__ import annotations

from datetime import UTC
from math import ceil
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.text import bounded_line
from upgrade_manager.api.timestamps import format_duration, parse_time, seconds_between
from upgrade_manager.kube.resources import LEASES

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: Seconds without a change of the lease after which a candidate takes it over (client-go's default, as the next two).
LEASE_DURATION = 15.0
#: Seconds since its last renewal after which a leader stops: less than LEASE_DURATION, so that it stops first.
RENEW_DEADLINE = 10.0
#: Seconds between the starts of two attempts.
RETRY_PERIOD = 2.0
#: Seconds for one request: after one on a dead connection there is time for two on new ones before the deadline.
REQUEST_TIMEOUT = 3.0
#: The lease's durations without a renewal after which no replica leads: within two, another one takes over.
_TAKEN_OVER = 2
#: Characters of a Pod's name.
_MAX_NAME = 253


def micro_time(moment: datetime) -> str:
    """Format as Kubernetes' MicroTime: `2025-11-21T09:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def record_of(lease: Object) -> dict[str, Any]:
    """Return the election record, whose changes extend the lease."""
    return dict(lease.get("spec") or {})


def holder_of(lease: Object) -> str:
    """Return the identity of the holder; empty without one."""
    return str(record_of(lease).get("holderIdentity") or "")


def duration_of(lease: Object) -> float:
    """Seconds for which the lease is valid after a change."""
    seconds = record_of(lease).get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else LEASE_DURATION


def pod_of(lease: Object) -> str:
    """Return the Pod, or the machine, of the holder: its identity less the UUID."""
    return bounded_line(holder_of(lease).partition("_")[0], limit=_MAX_NAME)


def renewed_at(lease: Object) -> datetime | None:
    """Return the time of the last renewal or release; None if it is invalid."""
    return parse_time(record_of(lease).get("renewTime"))


def last_renewal(lease: Object, *, now: datetime) -> str:
    """Return who renewed the lease last, or that it was released, and how long ago, as a sentence without full stop."""
    holder = pod_of(lease)
    done = f"{holder} last renewed its lease" if holder else "the last leader released its lease"
    return done + renewal_age(lease, now=now)


def renewal_age(lease: Object, *, now: datetime) -> str:
    """Return how long ago the last renewal was, to follow a verb; empty if its time is invalid."""
    renewed = renewed_at(lease)
    return f" {format_duration(seconds_between(renewed, now))} ago" if renewed else ""


def is_led(lease: Object, *, at: datetime) -> bool:
    """Return True if a replica led at that time, by the API server's clock, as which the holder's own counts."""
    renewed = renewed_at(lease)
    if not holder_of(lease) or renewed is None:
        return False
    return seconds_between(renewed, at) <= _TAKEN_OVER * duration_of(lease)


def new_lease(name: str, *, namespace: str, identity: str, now: datetime) -> Object:
    """Return a new lease held by `identity`."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": ceil(LEASE_DURATION),
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": 0,
        },
    }


def held_lease(lease: Object, *, identity: str, now: datetime) -> Object:
    """Return the lease renewed by `identity`, or taken over; unknown fields and labels are kept."""
    old = record_of(lease)
    spec = old | {"leaseDurationSeconds": ceil(LEASE_DURATION), "renewTime": micro_time(now)}
    if holder_of(lease) != identity:
        spec |= {
            "holderIdentity": identity,
            "acquireTime": micro_time(now),
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + 1,
        }
    return {**lease, "spec": spec}


def released_lease(lease: Object, *, now: datetime) -> Object:
    """Return the lease without a holder, so that a candidate can take it at once."""
    released = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": micro_time(now),
        "renewTime": micro_time(now),
    }
    return {**lease, "spec": record_of(lease) | released}
