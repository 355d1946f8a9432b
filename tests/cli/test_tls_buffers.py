from __future__ import annotations

import asyncio
import tracemalloc
from asyncio import sslproto
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hack.control_plane.certificates import Authority, client_context, server_context
from upgrade_manager.cli import tls_buffers

CONNECTIONS = 10
#: Bytes of both ends of a connection, of which asyncio's default takes 524,288 for its buffers.
LIMIT = 200_000


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readline())
    await reader.read()
    writer.close()


@pytest.mark.real_loop
async def test_idle_tls_connection_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)
    tls_buffers.use_small_buffers()
    authority = Authority(now=datetime.now(UTC))
    server = await asyncio.start_server(_echo, "127.0.0.1", 0, ssl=server_context(authority.server(), tmp_path))
    host, port = server.sockets[0].getsockname()
    context = client_context(authority.certificate)
    tracemalloc.start()
    try:
        pairs = [await asyncio.open_connection(host, port, ssl=context) for _ in range(CONNECTIONS)]
        for reader, writer in pairs:
            writer.write(b"ready\n")
            assert await reader.readline() == b"ready\n"
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for _, writer in pairs:
        writer.close()
        await writer.wait_closed()
    server.close()
    await server.wait_closed()
    assert size / CONNECTIONS < LIMIT
