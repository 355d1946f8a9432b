"""An API server with one lease, and a breakable transport to it for each candidate."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from hack.virtual_time import virtual_now
from tests.support.server.kube_server import failure, success
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request, Response, Stream
from upgrade_manager.runtime.leader_election import LeaderElector
from upgrade_manager.runtime.metrics import Metrics

NAME, NAMESPACE = "manager.example", "harvester-system"
#: Seconds for which a stuck request hangs.
STALL = 100.0


class State(Enum):
    """The state of a transport."""

    HEALTHY = "healthy"
    REFUSING = "refusing"
    HANGING = "hanging"
    #: Requests arrive, but their responses are lost.
    LOSING_RESPONSES = "losing responses"
    #: Requests hang for 100 s and ignore cancellation.
    STUCK = "stuck"
    #: Requests get status 500.
    FAILING = "failing"
    #: Requests get status 403.
    FORBIDDEN = "forbidden"
    #: Requests get status 422.
    INVALID = "invalid"


BROKEN = [state for state in State if state is not State.HEALTHY]


@dataclass
class LeaseServer:
    """Stores the lease with optimistic locking."""

    lease: dict[str, Any] | None = None
    version: int = 0
    #: (time, spec) of each write.
    writes: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def handle(self, request: Request) -> Response:
        if request.method == "GET":
            return success(self.lease) if self.lease else failure(404, "NotFound")
        body = json.loads(request.body)
        if request.method == "POST":
            return self.store(body) if self.lease is None else failure(409, "AlreadyExists")
        if self.lease is None:
            return failure(404, "NotFound")
        if body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
            return failure(409, "Conflict")
        return self.store(body)

    def store(self, lease: dict[str, Any]) -> Response:
        self.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = lease
        self.writes.append((asyncio.get_running_loop().time(), lease["spec"]))
        return success(lease)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    def set_holder(self, identity: str) -> None:
        """Write the lease as another client would."""
        assert self.lease is not None
        self.spec["holderIdentity"] = identity
        self.store(self.lease)


@dataclass
class LeaseTransport:
    """The transport of a candidate."""

    server: LeaseServer
    state: State = State.HEALTHY
    #: Seconds for a request to arrive, and for its response.
    delay: float = 0.01
    #: So many updates get status 503.
    failing_puts: int = 0
    #: Methods and times of all requests.
    requests: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    #: Paths of all requests.
    paths: set[str] = field(default_factory=set)

    async def send(self, request: Request) -> Response:
        self.requests.append(request.method)
        self.paths.add(request.path)
        self.times.append(asyncio.get_running_loop().time())
        if request.method == "PUT" and self.failing_puts:
            self.failing_puts -= 1
            return Response(status=503)
        state = self.state
        await asyncio.sleep(self.delay)
        if state is State.REFUSING:
            raise Transient("connection refused")
        if state is State.FAILING:
            return failure(500, "InternalError")
        if state is State.FORBIDDEN:
            return failure(403, "Forbidden")
        if state is State.INVALID:
            return failure(422, "Invalid")
        if state is State.HANGING:
            await asyncio.sleep(1e6)
        if state is State.STUCK:
            await sleep_uncancelled(STALL)
            raise asyncio.CancelledError
        response = self.server.handle(request)
        if state is State.LOSING_RESPONSES:
            await asyncio.sleep(1e6)
        await asyncio.sleep(self.delay)
        return response

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError


async def sleep_uncancelled(seconds: float) -> None:
    """Sleep in spite of cancellation."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(left)


def candidate(
    transport: LeaseTransport,
    identity: str,
    *,
    metrics: Metrics | None = None,
    seed: int = 1,
    now: Callable[[], datetime] = virtual_now,
) -> LeaderElector:
    """Return an elector that uses this transport."""
    random = Random(f"{identity}-{seed}")
    return LeaderElector(
        Client(transport, user_agent=identity, random=random),
        name=NAME,
        namespace=NAMESPACE,
        identity=identity,
        random=random,
        now=now,
        metrics=metrics or Metrics(CollectorRegistry()),
    )
