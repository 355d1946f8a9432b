"""The base of transports that change, count or refuse requests: `hack.cluster.strict`, and those of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class Forwarding:
    """A `Transport` that passes requests and streams to another one; subclasses override what they change."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    def outgoing(self, request: Request) -> Request:
        """Return the request that is passed on."""
        return request

    async def send(self, request: Request) -> Response:
        """Pass on a request. Raises Transient."""
        return await self._inner.send(self.outgoing(request))

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Pass on a request whose response is a stream. Raises Transient."""
        return self._inner.open(self.outgoing(request))
