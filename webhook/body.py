"""Reads the body of a review within limits of size, time and memory, in equal shares for all peers.

`server` reads each review by it; `upgrade_manager.runtime.peers` decides which peer gives way.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import ClientError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.peers import largest
from webhook.review import BadReview

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from aiohttp import web

    from upgrade_manager.runtime.peers import Peer, Peers

#: The API server's limit for a request, which also limits the old and the new object of a review.
MAX_BODY = 3 << 20
#: Seconds for the whole body; together with the checks' deadline, they make up the API server's time-out.
BODY_TIMEOUT = 2.0
#: A larger review counts against the limits below. Plans have about 2 KiB, and 200 bytes more for each upgraded node.
LARGE_BODY = 8 << 10
#: Bytes of all large reviews in progress. Decoded JSON takes up to 25 times its size.
MAX_LARGE_BODIES = MAX_BODY
#: Bytes of all large bodies that are being received. At the limit a body gives way, so that slow senders do not block
#: other senders.
MAX_RECEIVING = 4 * MAX_BODY


@dataclass(slots=True, eq=False)
class _Body:
    """A body of a peer that is being received, then reviewed, until its time-out."""

    peer: Peer
    timeout: asyncio.Timeout
    data: bytearray = field(default_factory=bytearray)
    #: True once it gives way to another body.
    gives_way: bool = False
    #: Set when the body's memory is free.
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def give_way(self) -> None:
        """End the review, unless its time-out has already ended it."""
        if not self.gives_way and not self.timeout.expired():
            self.gives_way = True
            self.timeout.reschedule(loop_time())


class BodyReader:
    """Reads the bodies of all requests of a server."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        #: Large bodies that are being received, and large reviews in progress; oldest first.
        self._receiving: dict[_Body, None] = {}
        self._reviewed: dict[_Body, None] = {}

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytes]:
        """Yield the body, which counts as in progress until the context ends. Raises BadReview."""
        body = _Body(self._peers.of(request.transport), asyncio.timeout(BODY_TIMEOUT))
        await self._receive(request, body)
        if body.gives_way:
            # The body gave way before its time-out.
            raise _too_many()
        if len(body.data) <= LARGE_BODY:
            yield bytes(body.data)
            return
        body.timeout = asyncio.timeout(None)
        try:
            async with body.timeout:
                await self._start_review(body)
                yield bytes(body.data)
        except TimeoutError as error:
            if not body.timeout.expired():
                raise
            raise _too_many() from error
        finally:
            self._reviewed.pop(body, None)
            body.ended.set()

    async def _receive(self, request: web.Request, body: _Body) -> None:
        """Fill the body. Raises BadReview."""
        try:
            async with body.timeout:
                while chunk := await request.content.readany():
                    self._add(body, chunk)
        except TimeoutError as error:
            if body.gives_way:
                raise _too_many() from error
            message = f"the body was not received within {BODY_TIMEOUT:g} s"
            raise BadReview(message, status=HTTPStatus.REQUEST_TIMEOUT) from error
        except (ClientError, HttpProcessingError, RequestPayloadError, OSError) as error:
            raise BadReview(f"the body was not received: {type(error).__name__}") from error
        finally:
            self._receiving.pop(body, None)

    def _add(self, body: _Body, chunk: bytes) -> None:
        """Add a chunk; end a body at the limit. Raises BadReview."""
        body.data += chunk
        if len(body.data) > MAX_BODY:
            message = f"the body has more than {MAX_BODY} bytes"
            raise BadReview(message, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if len(body.data) > LARGE_BODY:
            self._receiving.setdefault(body)
        while _size(self._receiving) > MAX_RECEIVING:
            ended = _first_of_largest(self._receiving)
            del self._receiving[ended]
            ended.give_way()

    async def _start_review(self, body: _Body) -> None:
        """Count the body as in progress after reviews of peers with a larger share have made room. Raises BadReview."""
        while _size(self._reviewed) + len(body.data) > MAX_LARGE_BODIES:
            peers = largest((one.peer, len(one.data)) for one in (*self._reviewed, body))
            ended = next((one for one in self._reviewed if one.peer in peers), body)
            if body.peer in peers or ended.peer.goes_last:
                raise _too_many()
            ended.give_way()
            await ended.ended.wait()
        self._reviewed[body] = None


def _size(bodies: Iterable[_Body]) -> int:
    return sum(len(body.data) for body in bodies)


def _first_of_largest(bodies: Iterable[_Body]) -> _Body:
    """Return the oldest body of the peer whose bodies have the most bytes."""
    found = list(bodies)
    peers = largest((body.peer, len(body.data)) for body in found)
    return next(body for body in found if body.peer in peers)


def _too_many() -> BadReview:
    message = f"other reviews of more than {LARGE_BODY} bytes are in progress. Try again"
    return BadReview(message, status=HTTPStatus.TOO_MANY_REQUESTS)
