"""The addresses of Services, as kube-proxy and the cluster's DNS serve them to Pods and to the API server."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import LABEL_SERVICE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import ENDPOINT_SLICES, SERVICES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hack.actors.context import ActorContext
    from hack.host.pod_network import PodNetwork
    from upgrade_manager.kube.objects import Object

#: Bytes that are copied at once, and seconds between two polls of the Services.
_PIECE = 65536
_POLL = 0.1
_NONE = "None"


class ServiceProxy:
    """Listens on the address of each Service and connects clients to a ready endpoint; writes a file of hosts.

    Endpoints without a process are simulated by the server at `simulated`, the upgrade repository's.
    """

    def __init__(
        self, context: ActorContext, *, network: PodNetwork, hosts_file: Path, simulated: tuple[str, int]
    ) -> None:
        self._services = context.caches.of(SERVICES)
        self._slices = context.caches.of(ENDPOINT_SLICES)
        self._synced = context.caches.synced
        self._network = network
        self._hosts_file = hosts_file
        self._simulated = simulated
        #: Addresses by the Service's uid.
        self._addresses: dict[str, str] = {}
        self._servers: list[asyncio.Server] = []
        #: The open connections, of clients and to endpoints, and the tasks that copy between them.
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the Services. Addresses stay: a deleted Service has no endpoint."""
        await self._synced()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._follow(), name="service proxy")
            try:
                yield
            finally:
                following.cancel()
                for server in self._servers:
                    server.close()
                # A connection to an endpoint may open meanwhile.
                while self._serving:
                    for writer in self._writers:
                        writer.transport.abort()
                    await asyncio.wait(self._serving, timeout=_POLL)

    async def _follow(self) -> None:
        while True:
            for service in self._services.store.list():
                if _address(service) and objects.uid(service) not in self._addresses:
                    await self._add(service)
            await asyncio.sleep(_POLL)

    async def _add(self, service: Object) -> None:
        address = _address(service)
        self._addresses[objects.uid(service)] = address
        self._network.own(address)
        for port in objects.spec(service).get("ports") or ():
            serve = partial(self._accept, service, port)
            self._servers.append(await asyncio.start_server(serve, address, port["port"]))
        names = [f"{objects.name(service)}.{objects.namespace(service)}{zone}" for zone in ("", ".svc")]
        # In place: the file is mounted.
        with self._hosts_file.open("a", encoding="utf-8") as file:
            file.write(f"{address} {' '.join(names)}\n")

    def _accept(
        self, service: Object, port: Object, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        serving = asyncio.create_task(self._serve(service, port, reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(
        self, service: Object, port: Object, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        async with self._closing(writer):
            target = self._endpoint(service, port)
            if target is None:
                return
            with contextlib.suppress(OSError):
                upstream_reader, upstream = await asyncio.open_connection(*target)
                async with self._closing(upstream), asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, upstream))
                    group.create_task(_copy(upstream_reader, writer))

    @contextlib.asynccontextmanager
    async def _closing(self, writer: asyncio.StreamWriter) -> AsyncIterator[None]:
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _endpoint(self, service: Object, port: Object) -> tuple[str, int] | None:
        for one in self._slices.store.list():
            if objects.namespace(one) != objects.namespace(service):
                continue
            if objects.labels(one).get(LABEL_SERVICE_NAME) != objects.name(service):
                continue
            numbers = {entry.get("name") or "": entry["port"] for entry in one.get("ports") or ()}
            for endpoint in one.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready"):
                    address = endpoint["addresses"][0]
                    is_real = self._network.has(address)
                    return (address, numbers[port.get("name") or ""]) if is_real else self._simulated
        return None


def _address(service: Object) -> str:
    """Return the cluster IP of a Service with a selector; the API server's own has none."""
    spec = objects.spec(service)
    address = str(spec.get("clusterIP") or "") if spec.get("selector") else ""
    return "" if address == _NONE else address


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    if writer.can_write_eof():
        with contextlib.suppress(OSError):
            writer.write_eof()
