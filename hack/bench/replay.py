"""The same requests again, without anybody who thinks about them: what a run costs the API server alone."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.bench.recorder import Exchange
    from upgrade_manager.kube.transport import Request, Transport

#: The share of answers that must have the same status as in the run; else it was another run.
FAITHFUL = 0.95
_VERSION = re.compile(rb'"resourceVersion": ?"(\d+)"')


class UnfaithfulReplay(Exception):
    """The server answered otherwise than in the run, so the time says nothing."""


async def replay(server: Transport, exchanges: Sequence[Exchange]) -> None:
    """Send all requests, one after another; watches stay open and are read to the end. Raises UnfaithfulReplay.

    The server's own controllers write at slightly other moments than in the run, so versions are shifted: a request
    that is pinned to the version of an earlier answer is pinned to that of the same answer here.
    """
    versions = _Versions()
    same = 0
    async with asyncio.TaskGroup() as group:
        readers = []
        for exchange in exchanges:
            request = versions.translate(exchange.request)
            if exchange.watches:
                opened = asyncio.Event()
                readers.append(group.create_task(_read(server, request, opened)))
                await opened.wait()
                same += 1
            else:
                answer = await server.send(request)
                same += answer.status == exchange.status
                if exchange.writes:
                    versions.learn(exchange.answer, answer.body)
            # Watches are read and the server's controllers work between two requests, as they did in the run.
            await asyncio.sleep(0)
        for reader in readers:
            reader.cancel()
    if same < FAITHFUL * len(exchanges):
        raise UnfaithfulReplay(f"only {same} of {len(exchanges)} requests were answered as before")


class _Versions:
    """Which version of the run is which one here."""

    def __init__(self) -> None:
        self._here: dict[bytes, bytes] = {}

    def learn(self, then: bytes, now: bytes) -> None:
        before, after = _VERSION.search(then), _VERSION.search(now)
        if before and after:
            self._here[before[1]] = after[1]

    def translate(self, request: Request) -> Request:
        if not request.body:
            return request
        return replace(request, body=_VERSION.sub(self._pinned, request.body))

    def _pinned(self, found: re.Match[bytes]) -> bytes:
        return b'"resourceVersion":"' + self._here.get(found[1], found[1]) + b'"'


async def _read(server: Transport, request: Request, opened: asyncio.Event) -> None:
    async with server.open(request) as stream:
        opened.set()
        async for _ in stream.chunks():
            pass
