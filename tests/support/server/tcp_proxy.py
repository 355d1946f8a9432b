"""A proxy on loopback whose connections freeze or are reset, as those through a middlebox or to a dead peer."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_CHUNK = 65536
#: SO_LINGER on, 0 s: closing sends RST.
_RESET = struct.pack("ii", 1, 0)


class TcpProxy:
    """Forwards connections to a port of loopback; a fault concerns the connections that exist then."""

    def __init__(self, target: int) -> None:
        self._target = target
        #: Connections so far.
        self.accepted = 0
        self.port = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._frozen: set[asyncio.StreamWriter] = set()

    def freeze(self) -> None:
        """Keep the present connections open, and forward nothing more on them, in either direction."""
        self._frozen |= self._clients

    def reset(self) -> None:
        """Reset the present connections."""
        for client in self._clients:
            client.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.transport.abort()

    async def forward(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions until one side ends it."""
        self.accepted += 1
        self._clients.add(client)
        try:
            with suppress(OSError):
                upstream, server = await asyncio.open_connection("127.0.0.1", self._target)
                try:
                    async with asyncio.TaskGroup() as group:
                        there = group.create_task(self._copy(reader, server, client))
                        back = group.create_task(self._copy(upstream, client, client))
                        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
                        there.cancel()
                        back.cancel()
                finally:
                    server.transport.abort()
        finally:
            self._clients.discard(client)
            self._frozen.discard(client)
            client.transport.abort()

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while chunk := await source.read(_CHUNK):
                if client not in self._frozen:
                    sink.write(chunk)
                    await sink.drain()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[TcpProxy]:
    """Run a proxy to a port of loopback."""
    made = TcpProxy(target)
    async with asyncio.TaskGroup() as group:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
            tasks.add(group.create_task(made.forward(reader, client)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        made.port = server.sockets[0].getsockname()[1]
        async with server:
            yield made
            server.close()
            for task in tasks:
                task.cancel()
