"""A real control plane as the backend of a simulated cluster."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Self

from hack.apiserver.handlers import Handlers
from hack.control_plane.authorized_handlers import AuthorizedHandlers
from hack.control_plane.control_plane import ADMIN, API_SERVER, CONTROLLER_MANAGER
from hack.control_plane.crds import real_crds
from hack.control_plane.direct import direct
from hack.control_plane.inventory import inventory
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    from types import TracebackType

    from hack.control_plane.control_plane import ControlPlane
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

#: Seconds between two checks of the processes.
_CHECK_INTERVAL = 1.0


class RealBackend:
    """kube-controller-manager runs Deployments, Jobs, EndpointSlices, garbage collection and TTLs.

    Raises ControlPlaneError, in a group, when a process ends unexpectedly.
    """

    has_controllers = True
    concurrency = 16

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.token = ADMIN.token
        self.handlers = Handlers()
        self._admin, self._as_caller = direct(plane, token=ADMIN.token), direct(plane)
        self.transport: Transport = AuthorizedHandlers(self._admin, handlers=self.handlers)
        self.client_transport: Transport = AuthorizedHandlers(self._as_caller, handlers=self.handlers)
        self._stack = AsyncExitStack()

    def now(self) -> datetime:
        """Return the wall time."""
        return datetime.now(UTC)

    def actor_transport(self) -> Transport:
        """Return the transport as it is: it has a latency already."""
        return self.transport

    def foreign_crds(self) -> list[Object]:
        """Return the other projects' own definitions. Raises AssetsError."""
        return real_crds(self._plane.assets)

    async def on_crds_established(self) -> None:
        """Start the controllers: the garbage collector discovers later kinds only after half a minute."""
        await asyncio.to_thread(self._plane.start, CONTROLLER_MANAGER)

    async def stop_api_server(self) -> None:
        """Kill it, and the controllers with it: they would retry ever more rarely."""
        for name in (API_SERVER, CONTROLLER_MANAGER):
            await asyncio.to_thread(self._plane.kill, name)

    async def start_api_server(self) -> None:
        """Start what was killed."""
        await asyncio.to_thread(self._plane.start, API_SERVER)
        if self.has_controllers:
            await asyncio.to_thread(self._plane.start, CONTROLLER_MANAGER)

    async def objects(self) -> list[Object]:
        """Return every object of every kind."""
        return await inventory(Client(self.transport, user_agent="inventory", random=Random()))

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._admin)
        await self._stack.enter_async_context(self._as_caller)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(group.create_task(self._check(), name="control plane").cancel)
        return self

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            await asyncio.to_thread(self._plane.check)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
