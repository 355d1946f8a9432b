"""One leader among several processes, by a Lease (client-go's tools/leaderelection, with its known gaps closed).

Nothing here compares clocks of different machines. A candidate takes a lease over when it has seen its record unchanged
for the whole lease duration on its own monotonic clock. A leader counts its renewal from before the request was sent,
so it stops `Timing.lease - Timing.deadline` seconds before anyone can take over, whatever the network does.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from upgrade_manager.kube.resources import LEASES
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.lease import (
    Timing,
    duration_of,
    held_lease,
    holder_of,
    new_lease,
    record_of,
    released_lease,
)
from upgrade_manager.runtime.rate_limiter import spread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from random import Random

    from structlog.typing import FilteringBoundLogger

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: A candidate waits between 1 and 1 + this times `Timing.retry`, so that candidates do not come in step.
ACQUIRE_JITTER = 1.2
#: Seconds past the lease duration after which a leader without renewal is unhealthy.
TOLERANCE = 20.0


class LeaseLost(Exception):
    """We do not lead any more: the work must have stopped before anything else happens."""


class LeaderMetrics(Protocol):
    """Who wants to know; `NoLeaderMetrics` when nobody does."""

    def leading(self, *, is_leader: bool) -> None:
        """We lead, or do not."""
        ...

    def slow_path(self) -> None:
        """A renewal had to read the lease first."""
        ...


class NoLeaderMetrics:
    """Keeps nothing."""

    def leading(self, *, is_leader: bool) -> None:
        """Keep nothing."""

    def slow_path(self) -> None:
        """Keep nothing."""


UNMEASURED = NoLeaderMetrics()


def new_identity(random: Random, *, hostname: str = "") -> str:
    """This process among all candidates: the host's (in a cluster the pod's) name and a UUID."""
    return f"{hostname or socket.gethostname()}_{uuid.UUID(int=random.getrandbits(128), version=4)}"


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A lease as last read or written."""

    lease: Object
    #: Local time at which its record was first seen as it is.
    at: float


class LeaderElector:
    """Gets and keeps the lease `namespace`/`name` for `identity`.

    Use: `acquire()`; then run `renew()` and `watch()` beside the work, and stop the work as soon as either raises
    LeaseLost; when the work has fully stopped, stop both and `release()`. One object serves for one term after another.
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
        timing: Timing | None = None,
        metrics: LeaderMetrics = UNMEASURED,
    ) -> None:
        self.name = name
        self.identity = identity
        self.timing = timing or Timing()
        self._client = client
        self._namespace = namespace
        self._jitter = spread(random, ACQUIRE_JITTER)
        self._now = now
        self._metrics = metrics
        self._log: FilteringBoundLogger = structlog.get_logger(__name__, lease=f"{namespace}/{name}", identity=identity)
        self._seen = _Sighting({}, float("-inf"))
        #: Whether we sent a write that may have made the lease ours, so that it has to be given up.
        self._claimed = False
        #: Local time before the request that last made or kept us leader; None while we do not lead.
        self._renewed: float | None = None
        self._failing = False
        metrics.leading(is_leader=False)

    @property
    def is_leader(self) -> bool:
        """Whether we may act now: we hold the lease and its renewal is younger than the deadline."""
        return self._renewed is not None and loop_time() < self._renewed + self.timing.deadline

    @property
    def leader(self) -> str:
        """The identity that was last seen to hold the lease; empty when nobody's was."""
        return holder_of(self._seen.lease)

    async def acquire(self) -> None:
        """Wait until we lead, for ever if need be; no failure of the API ends the wait."""
        while not await self._try(self._take):  # noqa: ASYNC110  # the lease is elsewhere: only asking tells
            await asyncio.sleep(self._pause())
        self._metrics.leading(is_leader=True)
        self._log.info("became leader")

    async def renew(self) -> None:
        """Keep the lease until cancelled. Raises LeaseLost as soon as someone else is seen to hold it."""
        while True:
            await asyncio.sleep(self.timing.retry)
            await self._try(self._keep)

    async def watch(self) -> None:
        """Raises LeaseLost when no renewal succeeded within the deadline.

        Stands apart from `renew` so that no request, however it hangs, can hold it up.
        """
        while self._renewed is not None:
            left = self._renewed + self.timing.deadline - loop_time()
            if left <= 0:
                raise self._lost(f"no renewal succeeded within {self.timing.deadline:g} s")
            await asyncio.sleep(left)

    async def release(self) -> None:
        """Give the lease up, so that others need not wait for it to run out; only once all work has stopped.

        Tries until the deadline, then leaves it to run out; never raises for the API's failures.
        """
        if not self._claimed:
            return
        self._resign()
        try:
            async with asyncio.timeout(self.timing.deadline):
                while not await self._try(self._free):  # noqa: ASYNC110  # the same
                    await asyncio.sleep(self.timing.retry)
        except TimeoutError:
            self._log.warning("lease not released", hint="others wait until it runs out")

    async def check(self) -> None:
        """Liveness: raises Unhealthy when we still lead by our own account, long after the lease has run out."""
        limit = self.timing.lease + TOLERANCE
        if self._renewed is not None and loop_time() > self._renewed + limit:
            raise Unhealthy(f"lease {self.name}: leading, but not renewed for more than {limit:g} s")

    async def _try(self, step: Callable[[float], Awaitable[bool]]) -> bool:
        """One attempt, given its time; every failure is a reason for the next, and the first of a row is told."""
        try:
            done = await step(loop_time())
        except (KubeError, TimeoutError) as error:
            tell = self._log.debug if self._failing else self._log.warning
            tell("lease attempt failed", error=str(error) or f"no answer within {self.timing.call:g} s")
            self._failing = True
            return False
        self._failing = False
        return done

    async def _take(self, started: float) -> bool:
        """Create, take over or find the lease ours; False while someone else holds it."""
        try:
            lease = await self._read()
        except NotFound:
            return await self._create(started)
        if holder_of(lease) not in {"", self.identity} and self._left() > 0:
            return False
        return await self._write(lease, started)

    async def _keep(self, started: float) -> bool:
        """Renew from what we last wrote; when that is not what is stored, from what is."""
        if self.leader == self.identity:
            try:
                return await self._write(self._seen.lease, started)
            except (Conflict, NotFound):
                self._metrics.slow_path()
        try:
            lease = await self._read()
        except NotFound:
            return await self._create(started)
        if holder_of(lease) not in {"", self.identity}:
            raise self._lost(f"{holder_of(lease)} holds it")
        return await self._write(lease, started)

    async def _free(self, started: float) -> bool:  # noqa: ARG002  # a step like the others
        try:
            lease = await self._read()
        except NotFound:
            return True
        if holder_of(lease) != self.identity:
            return True
        await self._update(released_lease(lease, now=self._now()))
        self._claimed = False
        self._log.info("released the lease")
        return True

    async def _read(self) -> Object:
        async with asyncio.timeout(self.timing.call):
            lease = await self._client.get(LEASES, self.name, namespace=self._namespace)
        self._saw(lease)
        return lease

    async def _create(self, started: float) -> bool:
        lease = new_lease(
            self.name,
            namespace=self._namespace,
            identity=self.identity,
            duration=self.timing.lease,
            now=self._now(),
        )
        self._claimed = True
        try:
            async with asyncio.timeout(self.timing.call):
                self._saw(await self._client.create(LEASES, lease, namespace=self._namespace))
        except AlreadyExists:
            return False
        self._renewed = started
        return True

    async def _write(self, lease: Object, started: float) -> bool:
        self._claimed = True
        await self._update(
            held_lease(lease, identity=self.identity, duration=self.timing.lease, now=self._now()),
        )
        self._renewed = started
        return True

    async def _update(self, lease: Object) -> None:
        async with asyncio.timeout(self.timing.call):
            self._saw(await self._client.update(LEASES, lease))

    def _saw(self, lease: Object) -> None:
        """Note the lease; the time only when its record changed."""
        if record_of(self._seen.lease) == record_of(lease):
            self._seen = _Sighting(lease, self._seen.at)
            return
        if holder_of(lease) not in {"", self.leader}:
            self._log.info("new leader seen", leader=holder_of(lease))
        self._seen = _Sighting(lease, loop_time())

    def _left(self) -> float:
        """Seconds until the record has not changed for as long as its own holder promised to renew it in."""
        return self._seen.at + duration_of(self._seen.lease, default=self.timing.lease) - loop_time()

    def _pause(self) -> float:
        """Until the next look: the jittered period, or the end of the lease that runs out within it.

        The latter keeps the time after a leader's death below a lease and one period, where client-go needs two.
        """
        pause = self._jitter(self.timing.retry)
        left = self._left()
        return left if 0 < left < pause else pause

    def _resign(self) -> None:
        self._renewed = None
        self._metrics.leading(is_leader=False)

    def _lost(self, why: str) -> LeaseLost:
        self._resign()
        return LeaseLost(f"leader election lost: lease {self._namespace}/{self.name}: {why}")
