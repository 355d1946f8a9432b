from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.support.random_runs.randomness import Highest, Lowest
from tests.support.server.kube_server import FedStream, Reply, ScriptedTransport, failure, reset, success
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Gone, KubeError, Throttled, Transient
from upgrade_manager.kube.retry import Backoff, RestClient, jittered
from upgrade_manager.kube.transport import Request

GET = Request(method="GET", path="/x", timeout=10)
POST = Request(method="POST", path="/x", timeout=10)


async def sent(
    request: Request, *replies: Reply, is_stream: bool = False
) -> tuple[ScriptedTransport, KubeError | None]:
    transport = ScriptedTransport(others=() if is_stream else replies, watches=replies if is_stream else ())
    client = RestClient(transport, random=Random(1))
    error = None
    try:
        if is_stream:
            async with client.open(request, about="get x") as stream:
                assert (stream.status, transport.open_streams) == (200, 1)
        else:
            await client.send(request, about="get x")
    except KubeError as caught:
        error = caught
    assert transport.open_streams == 0
    return transport, error


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("request_", [GET, POST], ids=["read", "write"])
async def test_refusal_with_retry_after_is_retried_after_that_time(request_: Request, status: int) -> None:
    transport, error = await sent(request_, failure(status, retry_after=3), failure(status, retry_after=0), success({}))
    assert error is None
    assert 3.0 <= transport.gaps[0] <= 3.3
    assert 1.0 <= transport.gaps[1] <= 1.1


async def test_broken_or_silent_read_is_retried() -> None:
    transport, error = await sent(GET, reset(), reset(), success({}))
    assert error is None
    assert all(1.0 <= gap <= 1.1 for gap in transport.gaps)
    transport, error = await sent(GET, 20.0, success({}), success({}))
    assert error is None
    assert transport.gaps[0] == pytest.approx(11, abs=0.1)


TOO_LARGE = failure(504, "Timeout", retry_after=1, causes=[{"reason": "ResourceVersionTooLarge"}])
REFUSAL = Transient("no", reason=REFUSED)
#: By name: the request, the replies, the error, and how many requests are sent.
RAISED: dict[str, tuple[Request, list[Reply], str, int]] = {
    "429 without retry-after": (GET, [failure(429)], "429 no", 1),
    "500 without retry-after": (GET, [failure(500)], "500 no", 1),
    "503 without retry-after": (GET, [failure(503)], "503 no", 1),
    "404": (GET, [failure(404, "NotFound", retry_after=1)], "404 NotFound: no", 1),
    "a version that is too large": (GET, [TOO_LARGE], "504 Timeout: no", 1),
    "a retry-after beyond 45 seconds": (GET, [failure(429, retry_after=60)], "429 no", 1),
    "45 seconds of retries": (GET, [failure(429, retry_after=20)] * 3, "429 no", 3),
    "ten retries": (POST, [failure(429, retry_after=1)] * 11, "429 no", 11),
    "a refused connection": (GET, [REFUSAL], "no", 1),
    "a broken write": (POST, [reset()], "the connection broke", 1),
    "a silent write": (POST, [20.0, success({})], "no response within 10 s", 1),
}


@pytest.mark.parametrize(("request_", "replies", "message", "count"), RAISED.values(), ids=RAISED)
async def test_error_is_raised_without_further_retry(
    request_: Request, replies: list[Reply], message: str, count: int
) -> None:
    transport, error = await sent(request_, *replies)
    assert (str(error), len(transport.requests)) == (f"get x: {message}", count)


async def test_error_has_its_reason_and_retry_after() -> None:
    for reply, reason in ((REFUSAL, REFUSED), (20.0, TIMED_OUT)):
        _, error = await sent(POST, reply, success({}))
        assert isinstance(error, Transient)
        assert error.reason == reason
    for seconds in (1, 60):
        _, error = await sent(GET, *[failure(429, retry_after=seconds)] * 11)
        assert isinstance(error, Throttled)
        assert error.retry_after == seconds


async def test_streams_are_retried_by_the_same_rules() -> None:
    transport, error = await sent(GET, reset(), failure(429, retry_after=2), FedStream(), is_stream=True)
    assert error is None
    assert [round(gap) for gap in transport.gaps] == [1, 2]
    _, error = await sent(GET, failure(410, "Expired"), is_stream=True)
    assert isinstance(error, Gone)
    _, error = await sent(GET, REFUSAL, is_stream=True)
    assert str(error) == "get x: no"
    _, error = await sent(GET, 20.0, *[reset() for _ in range(11)], is_stream=True)
    assert isinstance(error, Transient)


BODIES = {
    "breaks off": FedStream(b'{"kind":"Status",', reset(), status=403),
    "never ends": FedStream(b'{"kind":"Status",', status=403),
    "is endless": FedStream(*[b"x" * 65536] * 40, status=403),
}


@pytest.mark.parametrize("stream", BODIES.values(), ids=BODIES.keys())
async def test_error_with_an_unreadable_body_has_its_status(stream: FedStream) -> None:
    started = asyncio.get_running_loop().time()
    _, error = await sent(GET, stream, is_stream=True)
    assert str(error) == "get x: 403"
    assert asyncio.get_running_loop().time() - started <= 10


@pytest.mark.parametrize(("random", "delay"), [(Lowest(), 10.0), (Highest(), 11.0)])
def test_jitter_adds_up_to_a_tenth(random: Random, delay: float) -> None:
    assert jittered(10.0, random) == pytest.approx(delay)


def test_backoff_doubles_from_08_to_30_seconds() -> None:
    backoff = Backoff(random=Lowest())
    assert [backoff.failed() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert Backoff(random=Lowest()).failed(at_least=17) == 17
    assert Backoff(random=Lowest()).failed(at_least=0.1) == 0.8
    assert Backoff(random=Lowest()).failed(at_least=3600) == 60


def test_backoff_jitter_lies_between_one_and_two_steps() -> None:
    waits = []
    for seed in range(200):
        backoff = Backoff(random=Random(seed))
        backoff.failed()
        waits.append(backoff.failed())
    assert 1.6 <= min(waits) < 1.7
    assert 3.1 < max(waits) <= 3.2


def test_backoff_resets_after_two_healthy_minutes() -> None:
    backoff = Backoff(random=Lowest())
    for _ in range(4):
        backoff.failed()
    backoff.succeeded(119)
    assert backoff.failed() == 12.8
    backoff.succeeded(119)
    assert backoff.failed() == 25.6
    backoff.succeeded(60)
    backoff.succeeded(60)
    assert backoff.failed() == 0.8
