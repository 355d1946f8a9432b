"""What a manager asks of its API server, and when: whether it is patient while nobody answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.faults.call import call_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, repetitions included."""

    #: The loop's time at which it was sent.
    at: float
    verb: str
    #: With the subresource.
    resource: str


class RequestLog:
    """A `Transport` that notes every request before it is sent."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.asked: list[Asked] = []

    async def send(self, request: Request) -> Response:
        """Note it and pass it on."""
        self._note(request)
        return await self._inner.send(request)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Note it and pass it on."""
        self._note(request)
        return self._inner.open(request)

    def between(self, began: float, ended: float) -> Counter[str]:
        """How many requests of each kind there were in that time: `watch jobs.batch`."""
        return Counter(f"{one.verb} {one.resource}" for one in self.asked if began <= one.at < ended)

    def total(self) -> int:
        """How many there were, but for the lease's, which go on for as long as the manager lives."""
        return sum("leases" not in one.resource for one in self.asked)

    def _note(self, request: Request) -> None:
        call = call_of(request)
        resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        self.asked.append(Asked(at=asyncio.get_running_loop().time(), verb=call.verb, resource=resource))
