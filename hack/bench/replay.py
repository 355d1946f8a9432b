"""The same requests again, without anybody who thinks about them: what a run costs the API server alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.bench.recorder import Exchange
    from upgrade_manager.kube.transport import Request, Transport

#: The share of answers that must have the same status as in the run; else it was another run.
FAITHFUL = 0.99


class UnfaithfulReplay(Exception):
    """The server answered otherwise than in the run, so the time says nothing."""


async def replay(server: Transport, exchanges: Sequence[Exchange]) -> None:
    """Send all requests, one after another; watches stay open and are read to the end. Raises UnfaithfulReplay."""
    same = 0
    async with asyncio.TaskGroup() as group:
        readers = []
        for exchange in exchanges:
            if exchange.watches:
                opened = asyncio.Event()
                readers.append(group.create_task(_read(server, exchange.request, opened)))
                await opened.wait()
                same += 1
            else:
                same += (await server.send(exchange.request)).status == exchange.status
        await asyncio.sleep(0)
        for reader in readers:
            reader.cancel()
    if same < FAITHFUL * len(exchanges):
        raise UnfaithfulReplay(f"only {same} of {len(exchanges)} requests were answered as before")


async def _read(server: Transport, request: Request, opened: asyncio.Event) -> None:
    async with server.open(request) as stream:
        opened.set()
        async for _ in stream.chunks():
            pass
