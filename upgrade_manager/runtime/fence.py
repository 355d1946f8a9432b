"""Keeps a process that may not be the leader any more from writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

_READS = frozenset({"GET", "HEAD"})


class Fence:
    """A transport that passes reads always and writes only while `is_leader()`.

    Losing the lease cancels the work, but an event loop that was stopped for long, with its whole machine perhaps, may
    run a piece of work once more before it runs the cancellation. What the leader's work writes goes through here; the
    lease itself, and events, do not.
    """

    def __init__(self, inner: Transport, *, is_leader: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_leader = is_leader

    async def send(self, request: Request) -> Response:
        """Pass it on. Raises Transient for a write without the lease."""
        if request.method not in _READS and not self._is_leader():
            raise Transient(f"{request.method} {request.path} was held back: this process does not hold the lease")
        return await self._inner.send(request)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Pass it on: streams only read."""
        return self._inner.open(request)
