"""The embedded API server as the ground of a cluster: in virtual time and reproducible, or in real time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from random import Random
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Self

from hack.apiserver.identity import ADMIN
from hack.apiserver.server import ApiServer
from hack.cluster.foreign import foreign_crds
from hack.latency import SlowTransport
from hack.line import Line
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hack.apiserver.posting import Poster, Target
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Response, Transport

#: The wall time at the loop's time 0.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
#: Seconds that an inhabitant's request takes, there and back.
LEAST_LATENCY, MOST_LATENCY = 0.002, 0.012


class NoPoster:
    """Reaches no admission webhook."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        """Fail."""
        raise Transient(f"{target.url or target.service_name}: nothing is reached from inside a simulation")


class EmbeddedGround:
    """Garbage collection and the like are the server's own; Deployments and Jobs have to be played."""

    has_controllers = False
    #: In order, for the same seed is to give the same objects.
    takes_at_once = 1

    def __init__(self, *, seed: int, now: Callable[[], datetime], poster: Poster, least: float, most: float) -> None:
        self.server = ApiServer(now=now, random=Random(f"{seed}/server"), poster=poster)
        self.line = Line(self.server)
        self.transport: Transport = self.line
        self.front: Transport = self.line
        self.handlers = self.server.handlers
        self.token = token_urlsafe()
        self.server.authenticator.register(self.token, ADMIN)
        self.now = now
        self._slow = SlowTransport(self.line, random=Random(f"{seed}/latency"), least=least, most=most)
        self._stack = AsyncExitStack()

    def slowed(self) -> Transport:
        """A request in virtual time takes a little, a different little for every seed."""
        return self._slow

    def foreign_crds(self) -> list[Object]:
        """Small ones of our own."""
        return foreign_crds()

    async def defined(self) -> None:
        """Nobody waits for that."""

    async def fall(self) -> None:
        """Nobody gets through any more; what is stored stays."""
        self.line.cut()

    async def rise(self) -> None:
        """Everybody gets through again."""
        self.line.mend()

    async def objects(self) -> list[Object]:
        """Every object of every kind."""
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


def virtual_now() -> datetime:
    """The loop's time as a date."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


def virtual_ground(seed: int) -> EmbeddedGround:
    """In virtual time: the same seed gives the same to the byte."""
    return EmbeddedGround(seed=seed, now=virtual_now, poster=NoPoster(), least=LEAST_LATENCY, most=MOST_LATENCY)
