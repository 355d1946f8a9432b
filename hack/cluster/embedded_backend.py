"""The embedded API server as the backend of a cluster: in virtual time and reproducible, or in real time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Self

from hack.actors.virt_api import migration_stage
from hack.apiserver.identity import ADMIN
from hack.apiserver.posting import NoPoster
from hack.apiserver.server import ApiServer
from hack.crds.foreign import foreign_crds
from hack.faults.breakable_transport import BreakableTransport
from hack.faults.forwarding import SlowTransport
from hack.virtual_time import virtual_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from types import TracebackType

    from hack.actors.freezer import Freezer
    from hack.apiserver.admission import Stage
    from hack.apiserver.posting import Poster
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

#: The latency of an actor's request in seconds, least and most.
LEAST_LATENCY, MOST_LATENCY = 0.002, 0.012


class EmbeddedBackend:
    """Garbage collection is built into the server; actors simulate the controllers of Deployments and Jobs."""

    has_controllers = False
    #: One at a time, so that the same seed gives the same objects.
    concurrency = 1

    def __init__(self, *, seed: int, now: Callable[[], datetime], poster: Poster, least: float, most: float) -> None:
        self.server = ApiServer(now=now, random=Random(f"{seed}/server"), poster=poster)
        self.server.chain.mutating.append(migration_stage)
        self.line = BreakableTransport(self.server)
        self.transport: Transport = self.line
        self.client_transport: Transport = self.line
        self.handlers = self.server.handlers
        self.token = token_urlsafe()
        self.server.authenticator.register(self.token, ADMIN)
        self.now = now
        self._latency = Random(f"{seed}/latency")
        self._least, self._most = least, most
        self._stack = AsyncExitStack()

    def actor_transport(self) -> Transport:
        """Return a transport with a random latency per request, derived from the seed."""
        return SlowTransport(self.transport, random=self._latency, least=self._least, most=self._most)

    def admit(self, stage: Stage) -> None:
        """See Backend."""
        self.server.chain.validating.append(stage)

    def configure(self, scenario: Scenario, freezer: Freezer) -> None:
        """Do nothing: actors read the scenario, and freeze, themselves."""

    async def define(self, further: list[Object]) -> None:
        """Install the reduced definitions of hack/crds and further ones."""
        self.server.define([*foreign_crds(), *further])

    async def stop_api_server(self) -> None:
        """Refuse all requests and keep the storage."""
        self.line.cut()

    async def start_api_server(self) -> None:
        """Serve requests again."""
        self.line.mend()

    async def objects(self) -> list[Object]:
        """Return every object of every kind."""
        storage = self.server.storage
        return [obj for collection in storage.collections() for obj in storage.objects(collection.name)]

    async def __aenter__(self) -> Self:
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(group.create_task(self.server.run(), name="API server").cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        self.server.close()


def virtual_backend(seed: int) -> EmbeddedBackend:
    """Create a backend in virtual time: the same seed gives the same bytes."""
    return EmbeddedBackend(seed=seed, now=virtual_now, poster=NoPoster(), least=LEAST_LATENCY, most=MOST_LATENCY)
