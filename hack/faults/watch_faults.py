"""Faults of watch streams: each filters the lines between server and client."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Protocol

from hack.apiserver.status import expired
from hack.apiserver.watch import error_line
from hack.faults.rules import Cut, Duplicate, Expire, Stall, Thin
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from hack.faults.rules import WatchAction


class Lines(Protocol):
    """A source of lines."""

    async def next(self) -> bytes | None:
        """Return a complete line, or None at the end of the stream. Raises Transient when it breaks."""
        ...


class Whole:
    """Splits chunks into lines."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._lines: deque[bytes] = deque()
        self._rest = b""

    async def next(self) -> bytes | None:
        """Return the next line, as Lines defines."""
        while not self._lines:
            try:
                chunk = await anext(self._chunks)
            except StopAsyncIteration:
                rest, self._rest = self._rest, b""
                return rest or None
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(line + b"\n" for line in lines)
        return self._lines.popleft()


class Cutting:
    """Ends the stream early."""

    def __init__(self, lines: Lines, action: Cut) -> None:
        self._lines = lines
        self._action = action
        self._left = action.events or -1
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + action.seconds if action.seconds else None
        self._torn = False

    async def next(self) -> bytes | None:
        """Return the next line, as Lines defines."""
        if self._torn:
            raise _reset()
        try:
            async with asyncio.timeout_at(self._deadline):
                if self._left == 0 and not self._action.torn:
                    return self._ending()
                line = await self._lines.next()
        except TimeoutError:
            return self._ending()
        if line is not None and self._left == 0:
            self._torn = True
            return line[: len(line) // 2]
        self._left -= 1
        return line

    def _ending(self) -> bytes | None:
        if not self._action.clean:
            raise _reset()
        return None


class Expiring:
    """Sends 410 after some events."""

    def __init__(self, lines: Lines, action: Expire) -> None:
        self._lines = lines
        self._left = action.events

    async def next(self) -> bytes | None:
        """Return the next line, as Lines defines."""
        self._left -= 1
        if self._left >= 0:
            return await self._lines.next()
        return error_line(expired("too old resource version")) if self._left == -1 else None


class Stalling:
    """Stalls for a while."""

    def __init__(self, lines: Lines, action: Stall) -> None:
        self._lines = lines
        self._left = action.events
        self._seconds = action.seconds

    async def next(self) -> bytes | None:
        """Return the next line, as Lines defines."""
        if self._left == 0:
            await asyncio.sleep(self._seconds)
        self._left -= 1
        return await self._lines.next()


class Thinning:
    """Loses some events."""

    def __init__(self, lines: Lines, action: Thin, random: Random) -> None:
        self._lines = lines
        self._action = action
        self._random = random

    async def next(self) -> bytes | None:
        """Return the next line, as Lines defines."""
        while True:
            line = await self._lines.next()
            if line is None or not self._lost(line):
                return line

    def _lost(self, line: bytes) -> bool:
        if not line.endswith(b"\n"):
            # Another fault has torn it.
            return False
        kind = json.loads(line)["type"]
        chosen = kind in self._action.types if self._action.types else kind in {"ADDED", "MODIFIED", "DELETED"}
        return chosen and self._random.random() < self._action.probability


class Doubling:
    """Repeats some events."""

    def __init__(self, lines: Lines, action: Duplicate, random: Random) -> None:
        self._lines = lines
        self._action = action
        self._random = random
        self._again: bytes | None = None

    async def next(self) -> bytes | None:
        """Return the next line, as Lines defines."""
        again, self._again = self._again, None
        if again is not None:
            return again
        line = await self._lines.next()
        if line is not None and self._random.random() < self._action.probability:
            self._again = line
        return line


def disturbed(lines: Lines, action: WatchAction, *, random: Random) -> Lines:
    """Apply one fault to the lines."""
    match action:
        case Cut():
            return Cutting(lines, action)
        case Expire():
            return Expiring(lines, action)
        case Stall():
            return Stalling(lines, action)
        case Thin():
            return Thinning(lines, action, random)
        case Duplicate():
            return Doubling(lines, action, random)


def _reset() -> Transient:
    return Transient("the connection was reset in the middle of a watch")
