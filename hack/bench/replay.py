"""The same requests again, without anybody who thinks about them: what a run costs the API server alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.bench.recorder import Exchange
    from hack.bench.translation import Translation
    from upgrade_manager.kube.transport import Request, Transport

#: The share of answers that must have the same status as in the run; else it was another run.
FAITHFUL = 0.95


class UnfaithfulReplay(Exception):
    """The server answered otherwise than in the run, so the time says nothing."""


async def replay(server: Transport, exchanges: Sequence[Exchange], translation: Translation) -> None:
    """Send all requests, one after another; watches stay open and are read to the end. Raises UnfaithfulReplay.

    Another server makes up other uids, and its own controllers write at slightly other moments than in the run, so
    that versions are shifted. A request that has them from an earlier answer gets those of the same answer here.
    """
    same = 0
    async with asyncio.TaskGroup() as group:
        readers = []
        for exchange in exchanges:
            request = translation.translate(exchange.request)
            if exchange.watches:
                opened = asyncio.Event()
                readers.append(group.create_task(_read(server, request, opened)))
                await opened.wait()
                same += 1
            else:
                answer = await server.send(request)
                same += answer.status == exchange.status
                if exchange.writes:
                    translation.learn(exchange.answer, answer.body)
            # Watches are read and the server's controllers work between two requests, as they did in the run.
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
