"""The manager in a test: the whole process without sockets, which a test can kill and restart."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry

import upgrade_manager.pipeline.reconciler_factory  # noqa: F401  # not during the first run
from hack.faults.forwarding import Forwarding
from upgrade_manager.cli.application import build_manager
from upgrade_manager.cli.environment import Environment
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube.clock import Clock
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request, Response, Transport
from upgrade_manager.preflight.certificate_probe import CertificateProbe
from upgrade_manager.preflight.kubelets import KubeletReader
from upgrade_manager.release.repository_client import RepositoryClient
from upgrade_manager.runtime.metrics import Metrics

_READS = frozenset({"GET", "HEAD"})


class InterruptibleTransport(Forwarding):
    """A transport of one manager that simulates a crash or a lost response.

    `die_at` is the number of a write, from 1. The transport is cut before the request is sent, or after the response
    has come but before the manager gets it; `died` is set, and the request never returns. `lose_at` is the number of a
    write whose response is lost.
    """

    def __init__(self, inner: Transport, *, die_at: int = 0, after: bool = False, lose_at: int = 0) -> None:
        super().__init__(inner)
        self._die_at = die_at
        self._after = after
        self._lose_at = lose_at
        self._cut = False
        #: Writes so far: method and path.
        self.writes: list[str] = []
        self.died = asyncio.Event()

    def cut(self) -> None:
        self._cut = True

    async def send(self, request: Request) -> Response:
        """Forward it, unless the transport is cut."""
        self._check()
        if request.method in _READS:
            return await self._inner.send(request)
        self.writes.append(f"{request.method} {request.path}")
        last = len(self.writes) == self._die_at
        if last and not self._after:
            await self._die()
        response = await self._inner.send(request)
        if last:
            await self._die()
        if len(self.writes) == self._lose_at:
            raise Transient("the response was lost")
        self._check()
        return response

    def outgoing(self, request: Request) -> Request:
        """Return the request, unless the transport is cut."""
        self._check()
        return request

    def _check(self) -> None:
        if self._cut:
            raise Transient("this manager is dead")

    async def _die(self) -> None:
        self._cut = True
        self.died.set()
        await asyncio.get_running_loop().create_future()


@dataclass(kw_only=True)
class ManagerProcess:
    """One process of the manager; an async context."""

    transport: Transport
    repository: RepositoryClient
    certificates: CertificateProbe
    kubelets: KubeletReader
    clock: Clock
    seed: str = "manager"
    options: RunOptions = field(default_factory=RunOptions)
    die_at: int = 0
    after: bool = False
    lose_at: int = 0

    def __post_init__(self) -> None:
        self.wire = InterruptibleTransport(self.transport, die_at=self.die_at, after=self.after, lose_at=self.lose_at)
        self.metrics = Metrics(CollectorRegistry())
        environment = Environment(
            transport=self.wire,
            lease=self.wire,
            repository=self.repository,
            certificates=self.certificates,
            kubelets=self.kubelets,
            clock=self.clock,
            random=Random(self.seed),
        )
        self.manager = build_manager(environment, self.options, self.metrics)
        self._task: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.manager.run(), name="manager")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it in order, or kill it after a simulated crash."""
        if self.wire.died.is_set():
            await self.kill()
            return
        self.manager.stop()
        await self._task

    async def ended(self) -> None:
        """Wait until it has ended by itself, and raise its failure."""
        await self._task

    async def kill(self) -> None:
        self.wire.cut()
        self.wire.died.set()
        self._task.cancel()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._task
