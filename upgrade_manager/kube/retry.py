"""Retries of requests, and the backoff between failed lists and watches.

The rules are client-go's (rest/request.go, with_retry.go): a 429 or 5xx with Retry-After is retried up to ten times,
for any verb, because the server did not act on it; only a GET is also retried after a broken connection, because a
write may have been applied. Departures: no retry starts later than `RETRY_DEADLINE`, so that the caller's own
backoff takes over, and a resourceVersion that the server has not reached is reported at once.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import (
    TIMED_OUT,
    KubeError,
    Transient,
    error_from_response,
    is_refused,
    is_too_large_resource_version,
    parse_retry_after,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from random import Random

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

MAX_RETRIES = 10
#: Seconds after which a request is not retried.
RETRY_DEADLINE = 45.0
#: Seconds between two attempts after a broken connection.
RECONNECT_DELAY = 1.0
#: Seconds and bytes to read of the body of a failed stream.
_ERROR_BODY_TIMEOUT = 10.0
_ERROR_BODY_LIMIT = 1 << 20


def jittered(seconds: float, random: Random) -> float:
    """Return a delay of up to a tenth more, so that clients that failed at the same time spread their retries."""
    return seconds * random.uniform(1.0, 1.1)


class RestClient:
    """Sends requests over a transport, limits their time and retries them; raises only errors of `kube.errors`.

    `about` begins the message of every error: `get jobs.batch ns/x`.
    """

    def __init__(self, transport: Transport, *, random: Random, retries: int = MAX_RETRIES) -> None:
        self._transport = transport
        self._random = random
        self._retries = retries

    def without_retries(self) -> RestClient:
        """Return a client that sends each request once."""
        return RestClient(self._transport, random=self._random, retries=0)

    async def send(self, request: Request, *, about: str) -> Response:
        """Return the response, with a status below 400."""
        retry = _Retry(request, about, self._random, retries=self._retries)
        while True:
            try:
                async with _time_limit(request, about):
                    response = await self._transport.send(request)
            except Transient as error:
                delay = retry.after_break(error)
            else:
                if response.status < HTTPStatus.BAD_REQUEST:
                    return response
                delay = retry.after_error(response.status, response.headers, response.body)
            await asyncio.sleep(delay)

    @asynccontextmanager
    async def open(self, request: Request, *, about: str) -> AsyncIterator[Stream]:
        """Open a stream, with a status below 400."""
        retry = _Retry(request, about, self._random, retries=self._retries)
        while True:
            async with AsyncExitStack() as stack:
                try:
                    async with _time_limit(request, about):
                        stream = await stack.enter_async_context(self._transport.open(request))
                except Transient as error:
                    delay = retry.after_break(error)
                else:
                    if stream.status < HTTPStatus.BAD_REQUEST:
                        yield stream
                        return
                    delay = retry.after_error(stream.status, stream.headers, await _error_body(stream))
            await asyncio.sleep(delay)


class _Retry:
    """Decides for one request whether it is retried: each method returns the delay or raises the error."""

    def __init__(self, request: Request, about: str, random: Random, *, retries: int) -> None:
        self._is_read = request.method == "GET"
        self._about = about
        self._random = random
        self._left = retries
        self._deadline = loop_time() + RETRY_DEADLINE

    def after_break(self, error: Transient) -> float:
        """Handle a connection that broke before the response."""
        if not self._is_read or is_refused(error):
            raise error
        return self._delay(RECONNECT_DELAY, error)

    def after_error(self, status: int, headers: Mapping[str, str], body: bytes) -> float:
        """Handle a response that is an error."""
        error = error_from_response(self._about, status, headers, body)
        retry_after = parse_retry_after(headers)
        is_retryable = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if retry_after is None or not is_retryable or is_too_large_resource_version(error):
            raise error
        return self._delay(max(retry_after, RECONNECT_DELAY), error)

    def _delay(self, seconds: float, error: KubeError) -> float:
        self._left -= 1
        if self._left < 0 or loop_time() + seconds > self._deadline:
            raise error
        return jittered(seconds, self._random)


@asynccontextmanager
async def _time_limit(request: Request, about: str) -> AsyncIterator[None]:
    """Limit one attempt, and name the request in its errors."""
    try:
        async with asyncio.timeout(request.timeout):
            yield
    except TimeoutError as error:
        raise Transient(f"{about}: no response within {request.timeout:g} s", reason=TIMED_OUT) from error
    except Transient as error:
        raise Transient(f"{about}: {error}", status=error.status, reason=error.reason) from error


async def _error_body(stream: Stream) -> bytes:
    """Read the body of an error; empty if that fails, so that the error is classified by its status."""
    body = bytearray()
    try:
        async with asyncio.timeout(_ERROR_BODY_TIMEOUT):
            async for chunk in stream.chunks():
                body += chunk
                if len(body) > _ERROR_BODY_LIMIT:
                    break
    except (TimeoutError, Transient):
        return b""
    return bytes(body)


class Backoff:
    """Delays of client-go's reflector: uniform in [d, 2d), where d doubles from 0.8 to 30 s.

    Departure: client-go resets every two minutes, also during an outage. Here only two minutes of working connections
    since the last failure reset, so an outage of ten minutes costs about 18 attempts instead of 34.
    """

    FIRST = 0.8
    CAP = 30.0
    FACTOR = 2.0
    #: Seconds of working connections.
    RESET_AFTER = 120.0
    #: Seconds; a longer Retry-After would keep a cache stale after the server has recovered.
    MAX_RETRY_AFTER = 60.0

    def __init__(self, *, random: Random) -> None:
        self._random = random
        self._next = self.FIRST
        #: Seconds that connections have worked since the last failure.
        self._healthy = 0.0

    def succeeded(self, seconds: float) -> None:
        """Record that a connection has worked for so many seconds."""
        self._healthy += seconds
        if self._healthy >= self.RESET_AFTER:
            self._next = self.FIRST

    def failed(self, *, at_least: float = 0.0) -> float:
        """Record a failure; return the seconds to wait, no less than the Retry-After up to its limit."""
        delay, self._next = self._next, min(self._next * self.FACTOR, self.CAP)
        self._healthy = 0.0
        return max(self._random.uniform(delay, 2 * delay), min(at_least, self.MAX_RETRY_AFTER))
