"""A transport that delays, drops or repeats one event of the manager's watches."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from hack.apiserver.status import expired
from hack.apiserver.streams import ChunkStream
from hack.apiserver.watch import error_line
from hack.faults.forwarding import Forwarding
from hack.faults.watch_faults import Whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.faults.watch_faults import Lines
    from upgrade_manager.kube.transport import Request, Stream, Transport

Mishap: TypeAlias = Literal["late", "lost", "twice"]

#: Virtual seconds by which an event and all later ones of its watch are delayed.
LATE = 5.0
#: Virtual seconds after which a watch that lost an event ends with 410, so that the reflector lists again.
UNTIL_RELIST = 20.0
_OK = 200
_EVENTS = {"ADDED", "MODIFIED", "DELETED"}


class Skewed(Forwarding):
    """Counts the events of all watches, from 1, and delays, drops or repeats one of them."""

    def __init__(self, inner: Transport, *, event: int = 0, mishap: Mishap = "late") -> None:
        super().__init__(inner)
        self._event = event
        self._mishap = mishap
        #: Events so far.
        self.events = 0

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Forward it; only watches are changed."""
        async with self._inner.open(request) as stream:
            if stream.status != _OK or not any(key == "watch" for key, _ in request.query):
                yield stream
                return
            lines = _Lines(Whole(stream.chunks()), self)
            yield ChunkStream(lines, status=_OK, headers=stream.headers)

    def meets(self, line: bytes) -> Mishap | None:
        """Count a line; return its mishap, if any."""
        if json.loads(line)["type"] not in _EVENTS:
            return None
        self.events += 1
        return self._mishap if self.events == self._event else None


class _Lines:
    """The lines of one watch."""

    def __init__(self, lines: Lines, skewed: Skewed) -> None:
        self._lines = lines
        self._skewed = skewed
        self._again: deque[bytes] = deque()
        #: Loop time at which the watch has expired.
        self._expires: float | None = None

    async def next(self) -> bytes | None:
        """See Lines."""
        if self._again:
            return self._again.popleft()
        try:
            async with asyncio.timeout_at(self._expires):
                return await self._next()
        except TimeoutError:
            self._expires = None
            return error_line(expired("too old resource version"))

    async def _next(self) -> bytes | None:
        line = await self._lines.next()
        match None if line is None else self._skewed.meets(line):
            case "late":
                await asyncio.sleep(LATE)
            case "lost":
                self._expires = asyncio.get_running_loop().time() + UNTIL_RELIST
                async with asyncio.timeout_at(self._expires):
                    return await self._next()
            case "twice" if line is not None:
                self._again.append(line)
            case _:
                pass
        return line
