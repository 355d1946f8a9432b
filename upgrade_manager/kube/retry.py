"""Requests that are repeated for as long as the server asks for patience, and answers of which only good ones return.

The rules are client-go's (rest/request.go, with_retry.go): a 429 or 5xx that carries a Retry-After is repeated up to
ten times, whatever the verb, because the server did not act on it; a GET is repeated after a lost connection too; a
write never is, because it may have happened. Departures: nothing is repeated past `PATIENCE`, so that a caller is never
held for minutes and its own backoff takes over, and a resourceVersion that the server has not reached yet is reported
at once, because the answer to it is another question.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import (
    REFUSED,
    TIMED_OUT,
    KubeError,
    Transient,
    error_from_answer,
    is_too_large,
    retry_after,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

RETRIES = 10
#: Seconds after which a call is not repeated any more.
PATIENCE = 45.0
#: Seconds between two attempts of a read whose connection broke.
RECONNECT = 1.0
#: Seconds and bytes granted to the body of a refused stream.
_REFUSAL_TIME = 10.0
_REFUSAL_SIZE = 1 << 20


class Rest:
    """Sends requests over a transport under the rules above; raises kube.errors only."""

    def __init__(self, transport: Transport, *, random: Random) -> None:
        self._transport = transport
        self._random = random

    async def send(self, request: Request, *, about: str) -> Response:
        """The answer, its status below 400. `about` starts every error's message: `get jobs.batch ns/x`."""
        attempts = _Attempts(request, self._random)
        while True:
            try:
                response = await self._send_once(request, about)
            except Transient as error:
                wait = attempts.after_break(error)
            else:
                if response.status < HTTPStatus.BAD_REQUEST:
                    return response
                refusal = error_from_answer(about, response.status, response.headers, response.body)
                wait = attempts.after_refusal(refusal, retry_after(response.headers))
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def open(self, request: Request, *, about: str) -> AsyncIterator[Stream]:
        """A stream whose status is below 400."""
        attempts = _Attempts(request, self._random)
        while True:
            async with AsyncExitStack() as stack:
                try:
                    stream = await self._open_once(request, about, stack)
                    body = b"" if stream.status < HTTPStatus.BAD_REQUEST else await _refusal(stream)
                except Transient as error:
                    wait = attempts.after_break(error)
                else:
                    if stream.status < HTTPStatus.BAD_REQUEST:
                        yield stream
                        return
                    refusal = error_from_answer(about, stream.status, stream.headers, body)
                    wait = attempts.after_refusal(refusal, retry_after(stream.headers))
            await asyncio.sleep(wait)

    async def _send_once(self, request: Request, about: str) -> Response:
        try:
            async with asyncio.timeout(request.timeout):
                return await self._transport.send(request)
        except TimeoutError as error:
            raise Transient(f"{about}: no answer within {request.timeout:g} s", reason=TIMED_OUT) from error
        except Transient as error:
            raise _told(about, error) from error

    async def _open_once(self, request: Request, about: str, stack: AsyncExitStack) -> Stream:
        try:
            async with asyncio.timeout(request.timeout):
                return await stack.enter_async_context(self._transport.open(request))
        except TimeoutError as error:
            raise Transient(f"{about}: no answer within {request.timeout:g} s", reason=TIMED_OUT) from error
        except Transient as error:
            raise _told(about, error) from error


class _Attempts:
    """How often a call was repeated and whether it may be again; each method gives the wait or raises the error."""

    def __init__(self, request: Request, random: Random) -> None:
        self._repeatable = request.method == "GET"
        self._random = random
        self._left = RETRIES
        self._deadline = loop_time() + PATIENCE

    def after_break(self, error: Transient) -> float:
        """No answer came."""
        if not self._repeatable or error.reason == REFUSED:
            raise error
        return self._granted(RECONNECT, error)

    def after_refusal(self, error: KubeError, patience: float | None) -> float:
        """An answer came, and it was a refusal; `patience` is its Retry-After."""
        retryable = error.status == HTTPStatus.TOO_MANY_REQUESTS or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if patience is None or not retryable or is_too_large(error):
            raise error
        return self._granted(max(patience, RECONNECT), error)

    def _granted(self, wait: float, error: KubeError) -> float:
        self._left -= 1
        if self._left < 0 or loop_time() + wait > self._deadline:
            raise error
        # Callers that were refused together must not return together.
        return wait * self._random.uniform(1.0, 1.1)


def _told(about: str, error: Transient) -> Transient:
    return Transient(f"{about}: {error}", status=error.status, reason=error.reason, details=error.details)


async def _refusal(stream: Stream) -> bytes:
    """The body of an error, as far as it comes soon."""
    body = bytearray()
    try:
        async with asyncio.timeout(_REFUSAL_TIME):
            async for chunk in stream.chunks():
                body += chunk
                if len(body) > _REFUSAL_SIZE:
                    break
    except (TimeoutError, Transient):
        # The status alone decides then.
        return b""
    return bytes(body)


class Backoff:
    """Waits of a repeated attempt: uniform in [d, 2d), d doubling from 0.8 to 30 s, as a client-go reflector's.

    Departure: client-go starts over two minutes after it last started over, in the middle of an outage too. Here only
    two minutes of working connections since the last failure start over, so an outage of ten minutes costs about 18
    attempts, not 34.
    """

    FIRST = 0.8
    CAP = 30.0
    FACTOR = 2.0
    #: Seconds of health that make the next wait the first one again.
    HEALED = 120.0

    def __init__(self, *, random: Random) -> None:
        self._random = random
        self._next = self.FIRST
        #: Seconds that connections have worked since the last failure.
        self._health = 0.0

    def worked(self, seconds: float) -> None:
        """A connection was good for so long."""
        self._health += seconds
        if self._health >= self.HEALED:
            self._next = self.FIRST

    def failed(self, *, at_least: float = 0.0) -> float:
        """Seconds to wait now; `at_least` is what the server asked for."""
        delay, self._next = self._next, min(self._next * self.FACTOR, self.CAP)
        self._health = 0.0
        return max(self._random.uniform(delay, 2 * delay), at_least)
