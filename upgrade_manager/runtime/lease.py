"""What a Lease says, and what is written into it (coordination.k8s.io/v1, as client-go's LeaseLock fills it)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from math import ceil
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.resources import LEASES

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of an election; the defaults are client-go's. Raises ValueError for values that cannot be safe.

    lease > deadline: a leader stops before others may start. deadline > 1.2 · retry: one try fits in at least.
    """

    #: How long others wait for a sign of life.
    lease: float = 15.0
    #: How long after its last renewal a leader stops.
    deadline: float = 10.0
    #: Between two tries.
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.deadline > 1.2 * self.retry > 0:
            raise ValueError(f"leader election: need lease > deadline > 1.2 x retry > 0, not {self}")

    @property
    def call(self) -> float:
        """For one request, so that none that hangs eats the whole deadline."""
        return max(1.0, self.deadline / 2)


def micro_time(moment: datetime) -> str:
    """Kubernetes' MicroTime: `2025-11-21T09:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def record_of(lease: Object) -> dict[str, Any]:
    """The part of a lease that tells a change; whatever else is in the object does not matter."""
    return dict(lease.get("spec") or {})


def holder_of(lease: Object) -> str:
    """The identity of who holds it; empty when it is free."""
    return str(record_of(lease).get("holderIdentity") or "")


def duration_of(lease: Object, *, default: float) -> float:
    """Seconds that its holder promised to renew it in."""
    seconds = record_of(lease).get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else default


def new_lease(name: str, *, namespace: str, identity: str, duration: float, now: datetime) -> Object:
    """A lease that its first holder creates."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": ceil(duration),
            "acquireTime": micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": 0,
        },
    }


def held_lease(lease: Object, *, identity: str, duration: float, now: datetime) -> Object:
    """The lease as taken over by `identity`, or as renewed where that holds it already.

    Everything that is not an elector's, such as labels and fields of newer servers, stays.
    """
    old = record_of(lease)
    spec = old | {"leaseDurationSeconds": ceil(duration), "renewTime": micro_time(now)}
    if holder_of(lease) != identity:
        spec |= {
            "holderIdentity": identity,
            "acquireTime": micro_time(now),
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + 1,
        }
    return {**lease, "spec": spec}


def released_lease(lease: Object, *, now: datetime) -> Object:
    """The lease as free for anyone at once; the transitions stay."""
    stamp = micro_time(now)
    spec = record_of(lease) | {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": stamp,
        "renewTime": stamp,
    }
    return {**lease, "spec": spec}
