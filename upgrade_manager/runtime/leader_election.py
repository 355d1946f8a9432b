"""Elects one leader among several replicas with a Lease (client-go's tools/leaderelection).

cli/application.py makes the elector, manager.py runs it; lease.py is the object.

Clocks of different machines are never compared: a candidate takes over a lease that it has seen unchanged for
LEASE_DURATION on its own clock. A leader's RENEW_DEADLINE begins before the request of its last successful renewal.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound, Terminal, Transient
from upgrade_manager.kube.resources import LEASES
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.lease import (
    LEASE_DURATION,
    RENEW_DEADLINE,
    REQUEST_TIMEOUT,
    RETRY_PERIOD,
    duration_of,
    held_lease,
    holder_of,
    new_lease,
    record_of,
    released_lease,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from random import Random

    from structlog.typing import FilteringBoundLogger

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport
    from upgrade_manager.runtime.metrics import Metrics

#: A candidate waits up to so many RETRY_PERIODs longer, so that candidates do not poll at the same time.
ACQUIRE_JITTER = 1.2
#: Seconds after LEASE_DURATION at which a leader without renewal is unhealthy.
HEALTH_TOLERANCE = 20.0
_REMEDY = "Allow the service account to get, create and update leases.coordination.k8s.io in this namespace"
_READS = frozenset({"GET", "HEAD"})


class LeaseLost(Exception):
    """This process is no longer the leader and must stop its work at once."""


def new_identity(random: Random) -> str:
    """Return a unique identity for this process: the host name, which is the Pod's, and a UUID."""
    return f"{socket.gethostname()}_{uuid.UUID(int=random.getrandbits(128), version=4)}"


class LeaderElector:
    """Acquires, renews and releases a lease.

    After `acquire()`, run `renew()` and `watch()` beside the work, and stop the work when either raises LeaseLost. Call
    `release()` only after all work has stopped. An elector can be reused.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        namespace: str,
        identity: str,
        random: Random,
        now: Callable[[], datetime],
        metrics: Metrics,
    ) -> None:
        self.name = name
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._random = random
        self._now = now
        self._metrics = metrics.leader_election(name)
        self._log: FilteringBoundLogger = structlog.get_logger(__name__, lease=f"{namespace}/{name}", identity=identity)
        #: The lease as last read or written, and the loop time at which its record was first seen.
        self._observed: Object = {}
        self._observed_at = float("-inf")
        #: True if a request may have made this process the holder, so that the lease must be released.
        self._is_claimed = False
        #: Loop time before the last successful renewal was sent; None while not leading.
        self._renewed_at: float | None = None
        self._is_failing = False
        #: The refusal of the last request, such as 403, which only another configuration ends; "" after any other.
        self._refusal = ""

    @property
    def is_leader(self) -> bool:
        """True while the last renewal is younger than RENEW_DEADLINE."""
        return self._renewed_at is not None and loop_time() < self._renewed_at + RENEW_DEADLINE

    async def acquire(self) -> None:
        """Wait until this process is the leader, retrying failed requests."""
        while not await self._try(self._acquire):  # noqa: ASYNC110  # only polling shows a change of the lease
            await asyncio.sleep(self._poll_interval())
        self._metrics.master_status.set(1)
        self._log.info("became leader")

    async def renew(self) -> None:
        """Renew the lease until cancelled. Raises LeaseLost when another process holds it."""
        started = loop_time()
        while True:
            # From start to start, as client-go's ticker: an attempt that timed out is repeated at once.
            await asyncio.sleep(max(started + RETRY_PERIOD - loop_time(), 0))
            started = loop_time()
            await self._try(self._renew)

    async def watch(self) -> None:
        """Raise LeaseLost when the lease is not renewed in time; separate from `renew`, whose requests may hang."""
        while self._renewed_at is not None:
            seconds = self._renewed_at + RENEW_DEADLINE - loop_time()
            if seconds <= 0:
                raise self._lost(f"not renewed within {RENEW_DEADLINE:g} s")
            await asyncio.sleep(seconds)

    async def release(self) -> None:
        """Give up the lease so that another candidate can lead at once; on failure it expires instead."""
        if not self._is_claimed:
            return
        self._stop_leading()
        try:
            async with asyncio.timeout(RENEW_DEADLINE):
                while not await self._try(self._release):  # noqa: ASYNC110  # each attempt is a request
                    await asyncio.sleep(RETRY_PERIOD)
        except TimeoutError:
            self._log.warning("lease not released; it expires", seconds=LEASE_DURATION)

    async def check(self) -> None:
        """Liveness: raise Unhealthy when this process still counts as leader long after the lease has expired."""
        limit = LEASE_DURATION + HEALTH_TOLERANCE
        if self._renewed_at is not None and loop_time() > self._renewed_at + limit:
            raise Unhealthy(f"lease {self.name}: not renewed for more than {limit:g} s by its leader")

    async def check_access(self) -> None:
        """Readiness: raise Unhealthy while the API server refuses the requests, so that this process cannot lead."""
        if self._refusal:
            raise Unhealthy(f"lease {self._namespace}/{self.name}: {self._refusal}")

    async def _try(self, attempt: Callable[[float], Awaitable[bool]]) -> bool:
        """Run one attempt; False when it fails. Only the first of consecutive failures is a warning."""
        try:
            succeeded = await attempt(loop_time())
        except (KubeError, TimeoutError) as error:
            self._failed(error)
            return False
        self._is_failing, self._refusal = False, ""
        return succeeded

    def _failed(self, error: Exception) -> None:
        reason = str(error) or f"timed out after {REQUEST_TIMEOUT:g} s"
        if isinstance(error, Forbidden):
            reason = f"{reason}. {_REMEDY}"
        self._refusal = reason if isinstance(error, Terminal) else ""
        log = self._log.debug if self._is_failing else self._log.warning
        log("lease request failed", error=reason)
        self._is_failing = True

    async def _acquire(self, started: float) -> bool:
        """Create or take over the lease; False while another process holds it."""
        try:
            lease = await self._read()
        except NotFound:
            return await self._create(started)
        if holder_of(lease) not in {"", self.identity} and self._seconds_to_expiry() > 0:
            return False
        return await self._hold(lease, started)

    async def _renew(self, started: float) -> bool:
        """Update the lease as last written, without reading it first unless that fails."""
        if holder_of(self._observed) == self.identity:
            try:
                return await self._hold(self._observed, started)
            except (Conflict, NotFound):
                self._metrics.slowpath.inc()
        try:
            lease = await self._read()
        except NotFound:
            return await self._create(started)
        if holder_of(lease) not in {"", self.identity}:
            raise self._lost(f"{holder_of(lease)} holds it")
        return await self._hold(lease, started)

    async def _release(self, _started: float) -> bool:
        try:
            lease = await self._read()
        except NotFound:
            return True
        if holder_of(lease) != self.identity:
            return True
        await self._update(released_lease(lease, now=self._now()))
        self._is_claimed = False
        self._log.info("lease released")
        return True

    async def _read(self) -> Object:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            lease = await self._client.get(LEASES, self.name, namespace=self._namespace)
        self._observe(lease)
        return lease

    async def _create(self, started: float) -> bool:
        lease = new_lease(self.name, namespace=self._namespace, identity=self.identity, now=self._now())
        self._is_claimed = True
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                self._observe(await self._client.create(LEASES, lease, namespace=self._namespace))
        except AlreadyExists:
            return False
        self._renewed_at = started
        return True

    async def _hold(self, lease: Object, started: float) -> bool:
        self._is_claimed = True
        await self._update(held_lease(lease, identity=self.identity, now=self._now()))
        self._renewed_at = started
        return True

    async def _update(self, lease: Object) -> None:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            self._observe(await self._client.update(LEASES, lease))

    def _observe(self, lease: Object) -> None:
        """Record the lease, and the time if its record has changed."""
        if record_of(self._observed) != record_of(lease):
            if holder_of(lease) not in {"", holder_of(self._observed)}:
                self._log.info("new leader elected", leader=holder_of(lease))
            self._observed_at = loop_time()
        self._observed = lease

    def _seconds_to_expiry(self) -> float:
        return self._observed_at + duration_of(self._observed) - loop_time()

    def _poll_interval(self) -> float:
        """Return the jittered retry period, or the time to the lease's expiry if that is shorter."""
        interval = RETRY_PERIOD * (1 + ACQUIRE_JITTER * self._random.random())
        expiry = self._seconds_to_expiry()
        return expiry if 0 < expiry < interval else interval

    def _stop_leading(self) -> None:
        self._renewed_at = None
        self._metrics.master_status.set(0)

    def _lost(self, reason: str) -> LeaseLost:
        self._stop_leading()
        return LeaseLost(f"leader election lost: lease {self._namespace}/{self.name}: {reason}")


class LeaderTransport:
    """A transport that refuses writes while this process is not the leader.

    Losing the lease cancels all work, but after a long suspension of the process some work may run before it is
    cancelled. The lease is checked twice: at first, and when the connection is ready, which may take long.
    """

    def __init__(self, inner: Transport, *, is_leader: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_leader = is_leader

    async def send(self, request: Request) -> Response:
        """Pass on the request. Raises Transient for a write without the lease."""
        if request.method in _READS:
            return await self._inner.send(request)

        def fence() -> None:
            if not self._is_leader():
                raise Transient(f"{request.method} {request.path} refused: this process is not the leader")

        fence()
        return await self._inner.send(replace(request, fence=fence))

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Pass on the request: streams only read."""
        return self._inner.open(request)
