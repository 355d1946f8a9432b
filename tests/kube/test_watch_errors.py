"""Each row of client-go's error matrix, as a status and in the stream."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.server.kube_server import FedStream, Reply, bookmark, event, failure, listing, node, reset
from tests.support.server.reflecting import AT_ONCE, STEP, error_event, reflected, reflecting, scripted
from upgrade_manager.kube.errors import REFUSED, Transient

REOPENS, RELISTS = "watch 5", "list 5"


#: By ending of the watch: the next request, the delay before it, and the reported reason.
MATRIX: dict[str, tuple[Reply, str, tuple[float, float], str]] = {
    "the server ends the watch after an event": (FedStream(bookmark(5), None), REOPENS, AT_ONCE, "quick"),
    "the stream breaks after an event": (FedStream(bookmark(5), reset()), REOPENS, AT_ONCE, "quick"),
    "the stream closes at once with nothing": (FedStream(None), RELISTS, STEP, "short"),
    "the stream breaks at once with nothing": (FedStream(reset()), RELISTS, STEP, "short"),
    "connection refused": (Transient("no", reason=REFUSED), REOPENS, STEP, "refused"),
    "status 429": (failure(429, "TooManyRequests"), REOPENS, STEP, "throttled"),
    "ERROR 429": (FedStream(error_event(429, "TooManyRequests")), REOPENS, STEP, "throttled"),
    "ERROR 429 with a wait": (
        FedStream(error_event(429, "TooManyRequests", retryAfterSeconds=20)),
        REOPENS,
        (20, 20),
        "throttled",
    ),
    "status 403": (failure(403, "Forbidden"), RELISTS, STEP, "error"),
    "status 404": (failure(404, "NotFound"), RELISTS, STEP, "error"),
    "status 500": (failure(500, "InternalError"), RELISTS, STEP, "error"),
    "status 410 Gone": (failure(410, "Gone"), RELISTS, STEP, "expired"),
    "status 410 Expired": (failure(410, "Expired"), RELISTS, STEP, "expired"),
    "ERROR 410 Gone": (FedStream(error_event(410, "Gone")), RELISTS, STEP, "expired"),
    "ERROR 410 Expired": (FedStream(error_event(410, "Expired")), RELISTS, STEP, "expired"),
    "ERROR 500": (FedStream(error_event(500, "InternalError")), RELISTS, STEP, "error"),
    "ERROR 500 with a wait": (
        FedStream(error_event(500, "InternalError", retryAfterSeconds=9)),
        RELISTS,
        (9, 9),
        "error",
    ),
    "ERROR 403": (FedStream(error_event(403, "Forbidden")), RELISTS, STEP, "error"),
    "ERROR without a Status": (FedStream(event("ERROR", "what")), RELISTS, STEP, "undecodable"),
    "not JSON": (FedStream(b"upstream timed out\n"), RELISTS, STEP, "undecodable"),
    "JSON, but not an event": (FedStream(b'{"kind":"Status"}\n'), RELISTS, STEP, "undecodable"),
    "JSON, but not an object": (FedStream(b"[1]\n"), RELISTS, STEP, "undecodable"),
}


@pytest.mark.parametrize(("watch", "then", "wait", "reason"), MATRIX.values(), ids=MATRIX)
async def test_each_ending_of_a_watch_has_its_reaction(
    watch: Reply, then: str, wait: tuple[float, float], reason: str
) -> None:
    transport = scripted(watch)
    run = await reflected(transport, seconds=25)
    assert run.requests()[:3] == ["list 0 limit=500", "watch 5", then]
    assert wait[0] <= transport.gaps[1] <= wait[1]
    assert run.watch_endings[0] == reason
    assert run.list_reasons == (["start", reason] if then == RELISTS else ["start"])


@pytest.mark.parametrize("seconds", [3600, 10**9])
async def test_retry_after_delays_an_informer_a_minute_at_most(seconds: int) -> None:
    in_stream = FedStream(error_event(429, "TooManyRequests", retryAfterSeconds=seconds))
    transport = scripted(
        failure(429, retry_after=seconds), in_stream, lists=[failure(503, retry_after=seconds), listing(version="5")]
    )
    run = await reflected(transport, seconds=200)
    assert run.requests() == [*["list 0 limit=500"] * 2, *["watch 5"] * 3]
    assert transport.gaps == [60, 0, 60, 60]


@pytest.mark.parametrize("is_quiet", [False, True], ids=["with events", "without"])
async def test_watch_of_a_second_is_reopened_at_once(*, is_quiet: bool) -> None:
    stream = FedStream()
    async with reflecting(scripted(stream)) as run:
        await asyncio.sleep(2)
        if not is_quiet:
            stream.feed(event("ADDED", node("a", 9)))
        stream.feed(None)
        await asyncio.sleep(0.001)
        assert run.requests()[1:] == ["watch 5", "watch 5" if is_quiet else "watch 9"]
        assert run.watch_endings == ["closed"]


async def test_lost_connection_is_retried_ten_times_then_relists() -> None:
    transport = scripted(*[reset() for _ in range(11)])
    run = await reflected(transport, seconds=30)
    assert run.requests() == ["list 0 limit=500", *["watch 5"] * 11, "list 5", "watch 30"]
    assert all(1.0 <= gap <= 1.1 for gap in transport.gaps[1:11])
    assert 0.8 <= transport.gaps[11] <= 1.6
    assert run.watch_endings == ["unreachable"]


async def test_retry_after_is_obeyed_ten_times_before_the_backoff() -> None:
    transport = scripted(*[failure(429, "TooManyRequests", retry_after=2) for _ in range(11)])
    run = await reflected(transport, seconds=60)
    assert run.requests() == ["list 0 limit=500", *["watch 5"] * 12]
    assert all(2.0 <= gap <= 2.2 for gap in transport.gaps[1:11])
    assert transport.gaps[11] >= 2.0
