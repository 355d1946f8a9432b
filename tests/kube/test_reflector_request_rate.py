"""The request rate of a reflector at a failing server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import pytest

from tests.support.server.kube_server import (
    FedStream,
    Reply,
    ScriptedTransport,
    bookmark,
    failure,
    initial_end,
    listing,
    reset,
)
from tests.support.server.reflecting import error_event, reflected, reflecting
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.transport import Request

    Handler: TypeAlias = Callable[[Request], Reply]


def at_once(*pieces: bytes) -> Handler:
    """Respond to lists; close watches and streaming lists at once after these bytes."""

    def handler(request: Request) -> Reply:
        return FedStream(*pieces, None) if "watch" in dict(request.query) else listing(version="5")

    return handler


FAILING: dict[str, Handler] = {
    "closes at once": at_once(),
    "sends a bookmark and closes": at_once(bookmark(5)),
    "ends the initial events and closes": at_once(initial_end(5)),
    "sends text": at_once(b"bad gateway\n"),
    "sends 410": at_once(error_event(410, "Expired")),
    "ends the initial events and sends 410": at_once(initial_end(5), error_event(410, "Expired")),
    "sends 429": at_once(error_event(429, "TooManyRequests")),
    "refuses connections": lambda _: Transient("no", reason=REFUSED),
    "resets connections": lambda _: reset(),
    "times out": lambda _: Transient("no", reason=TIMED_OUT),
    "responds 404": lambda _: failure(404, "NotFound"),
    "responds 410": lambda _: failure(410, "Expired"),
    "responds 500": lambda _: failure(500),
    "responds 429, retry at once": lambda _: failure(429, retry_after=0),
    "responds 502": lambda _: failure(502),
}


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "lists"])
@pytest.mark.parametrize("handler", FAILING.values(), ids=FAILING.keys())
async def test_no_failure_makes_a_tight_loop(handler: Handler, *, streaming: bool) -> None:
    transport = ScriptedTransport(handler)
    await reflected(transport, seconds=600, streaming=streaming)
    assert len(transport.requests) <= 1.3 * 600
    assert max(transport.gaps) <= 60
    if handler is FAILING["refuses connections"]:
        assert 15 <= len(transport.requests) <= 22


async def test_two_healthy_minutes_reset_the_backoff() -> None:
    is_up = False

    def handler(request: Request) -> Reply:
        if not is_up:
            return Transient("no", reason=REFUSED)
        return FedStream() if "watch" in dict(request.query) else listing(version="5")

    transport = ScriptedTransport(handler)
    async with reflecting(transport, seconds=300):
        assert transport.gaps[-1] > 20
        is_up = True
        await asyncio.sleep(60 + 180)
        is_up = False
        count = len(transport.requests)
        await asyncio.sleep(90)
        assert 0.8 <= transport.gaps[count] <= 1.6
