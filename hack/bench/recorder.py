"""A transport that takes down all that passes, for counting, for timing and for playing it again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

CONFLICT = 409
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what became of it."""

    request: Request
    status: int
    #: Loop time when the request came, and when its answer (a stream's headers) went back.
    began: float
    ended: float
    #: The answer's body, where it came in one piece.
    answer: bytes = b""

    @property
    def watches(self) -> bool:
        """Whether it is a watch."""
        return any(key == "watch" and value in {"true", "1"} for key, value in self.request.query)

    @property
    def user_agent(self) -> str:
        """Who asked."""
        return self.request.headers.get("user-agent", "")

    @property
    def writes(self) -> bool:
        """Whether it asked for a change."""
        return self.request.method in _WRITES

    @property
    def writes_status(self) -> bool:
        """Whether it asked for a change of a plan's status."""
        return self.writes and "/upgradeplans/" in self.request.path and self.request.path.endswith("/status")


class Recorder:
    """Passes everything on; `exchanges` is what has been answered, in the order of the answers."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.exchanges: list[Exchange] = []

    def of(self, user_agent: str) -> list[Exchange]:
        """What one client, known by the beginning of its User-Agent, has asked."""
        return [exchange for exchange in self.exchanges if exchange.user_agent.startswith(user_agent)]

    async def send(self, request: Request) -> Response:
        """Pass on and take down."""
        began = self._now()
        response = await self._inner.send(request)
        self._note(request, response.status, began, answer=response.body)
        return response

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass on and take down when the stream is there."""
        began = self._now()
        async with self._inner.open(request) as stream:
            self._note(request, stream.status, began)
            yield stream

    def _note(self, request: Request, status: int, began: float, *, answer: bytes = b"") -> None:
        exchange = Exchange(request=request, status=status, began=began, ended=self._now(), answer=answer)
        self.exchanges.append(exchange)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
