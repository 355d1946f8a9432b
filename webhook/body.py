"""Reads the body of a review within limits of size, time and memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
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
#: Seconds for the whole body.
BODY_TIMEOUT = 5.0
#: A larger review counts against MAX_LARGE_BODIES. Plans have about 2 KiB, and 200 bytes more for each upgraded node.
LARGE_BODY = 8 << 10
#: Bytes of all large reviews in progress. Decoded JSON takes up to 25 times its size.
MAX_LARGE_BODIES = MAX_BODY


class BodyReader:
    """Reads the bodies of all requests of a server."""

    def __init__(self) -> None:
        #: Bytes of the large reviews in progress.
        self._large = 0

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytes]:
        """Yield the body, which counts as in progress until the context ends. Raises BadReview."""
        body = bytearray()
        counted = 0
        try:
            async for chunk in _chunks(request):
                body += chunk
                if len(body) > LARGE_BODY:
                    self._large += len(body) - counted
                    counted = len(body)
                self._check(len(body))
            yield bytes(body)
        finally:
            self._large -= counted

    def _check(self, size: int) -> None:
        if size > MAX_BODY:
            message = f"the body has more than {MAX_BODY} bytes"
            raise BadReview(message, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if self._large > MAX_LARGE_BODIES:
            message = f"other reviews of more than {LARGE_BODY} bytes are in progress. Try again"
            raise BadReview(message, status=HTTPStatus.TOO_MANY_REQUESTS)


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises BadReview."""
    deadline = asyncio.get_running_loop().time() + BODY_TIMEOUT
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                chunk = await request.content.readany()
        except TimeoutError as error:
            message = f"the body was not received within {BODY_TIMEOUT:g} s"
            raise BadReview(message, status=HTTPStatus.REQUEST_TIMEOUT) from error
        except (ClientError, HttpProcessingError, RequestPayloadError, OSError) as error:
            raise BadReview(f"the body was not received: {type(error).__name__}") from error
        if not chunk:
            return
        yield chunk
