"""Reads the body of a review within limits of size, time and memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import ClientError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from webhook.review import BadReview

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

#: The API server's limit for a request, and so for both objects of a review.
MAX_BODY = 3 << 20
#: Seconds for the whole body: with the checks' deadline, the API server's time-out.
BODY_TIMEOUT = 2.0
#: A larger review counts against the limits below. Plans have about 2 KiB, and 200 bytes more for each upgraded node.
LARGE_BODY = 8 << 10
#: Bytes of all large reviews in progress. Decoded JSON takes up to 25 times its size.
MAX_LARGE_BODIES = MAX_BODY
#: Bytes of all large bodies that are being received. At the limit the oldest gives way, so slow senders block no other.
MAX_RECEIVING = 4 * MAX_BODY


@dataclass(slots=True, eq=False)
class _Incoming:
    """A body that is being received until its time-out."""

    timeout: asyncio.Timeout
    data: bytearray = field(default_factory=bytearray)


class BodyReader:
    """Reads the bodies of all requests of a server."""

    def __init__(self) -> None:
        #: Bytes of the large reviews in progress.
        self._large = 0
        #: Large bodies that are being received, oldest first.
        self._receiving: dict[_Incoming, None] = {}

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytes]:
        """Yield the body, which counts as in progress until the context ends. Raises BadReview."""
        body = await self._receive(request)
        counted = len(body) if len(body) > LARGE_BODY else 0
        if counted and self._large + counted > MAX_LARGE_BODIES:
            raise _too_many()
        self._large += counted
        try:
            yield body
        finally:
            self._large -= counted

    async def _receive(self, request: web.Request) -> bytes:
        """Return the body. Raises BadReview."""
        body = _Incoming(asyncio.timeout(BODY_TIMEOUT))
        try:
            async with body.timeout:
                while chunk := await request.content.readany():
                    self._add(body, chunk)
        except TimeoutError as error:
            if len(body.data) > LARGE_BODY and body not in self._receiving:
                raise _too_many() from error
            message = f"the body was not received within {BODY_TIMEOUT:g} s"
            raise BadReview(message, status=HTTPStatus.REQUEST_TIMEOUT) from error
        except (ClientError, HttpProcessingError, RequestPayloadError, OSError) as error:
            raise BadReview(f"the body was not received: {type(error).__name__}") from error
        finally:
            self._receiving.pop(body, None)
        return bytes(body.data)

    def _add(self, body: _Incoming, chunk: bytes) -> None:
        """Add a chunk; end the oldest body at the limit. Raises BadReview."""
        body.data += chunk
        if len(body.data) > MAX_BODY:
            message = f"the body has more than {MAX_BODY} bytes"
            raise BadReview(message, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if len(body.data) > LARGE_BODY:
            self._receiving.setdefault(body)
        if sum(len(one.data) for one in self._receiving) > MAX_RECEIVING:
            oldest = next(iter(self._receiving))
            del self._receiving[oldest]
            oldest.timeout.reschedule(asyncio.get_running_loop().time())


def _too_many() -> BadReview:
    message = f"other reviews of more than {LARGE_BODY} bytes are in progress. Try again"
    return BadReview(message, status=HTTPStatus.TOO_MANY_REQUESTS)
