from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.support.kube_server import FedStream, Reply, ScriptedTransport, failure, reset, success
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Gone, KubeError, Throttled, Transient
from upgrade_manager.kube.retry import Backoff, RestClient
from upgrade_manager.kube.transport import Request

GET = Request(method="GET", path="/x", timeout=10)
POST = Request(method="POST", path="/x", timeout=10)


async def sent(request: Request, *replies: Reply) -> tuple[ScriptedTransport, KubeError | None]:
    transport = ScriptedTransport(others=replies)
    error = None
    try:
        await RestClient(transport, random=Random(1)).send(request, about="get x")
    except KubeError as caught:
        error = caught
    return transport, error


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("request_", [GET, POST], ids=["read", "write"])
async def test_a_refusal_with_retry_after_is_retried_after_that_time(request_: Request, status: int) -> None:
    transport, error = await sent(request_, failure(status, retry_after=3), failure(status, retry_after=0), success({}))
    assert error is None
    assert 3.0 <= transport.gaps[0] <= 3.3
    assert 1.0 <= transport.gaps[1] <= 1.1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_error_without_retry_after_is_raised_at_once(status: int) -> None:
    transport, error = await sent(GET, failure(status))
    assert error is not None
    assert error.status == status
    assert len(transport.requests) == 1


async def test_the_error_is_raised_after_ten_retries() -> None:
    transport, error = await sent(POST, *[failure(429, retry_after=1)] * 11)
    assert isinstance(error, Throttled)
    assert error.retry_after == 1
    assert len(transport.requests) == 11


async def test_no_retry_starts_after_45_seconds() -> None:
    transport, error = await sent(GET, *[failure(429, retry_after=20)] * 3)
    assert isinstance(error, Throttled)
    assert len(transport.requests) == 3
    transport, error = await sent(GET, failure(429, retry_after=60))
    assert isinstance(error, Throttled)
    assert error.retry_after == 60
    assert len(transport.requests) == 1


async def test_a_broken_read_is_retried_and_a_broken_write_is_not() -> None:
    transport, error = await sent(GET, reset(), reset(), success({}))
    assert error is None
    assert all(1.0 <= gap <= 1.1 for gap in transport.gaps)
    transport, error = await sent(POST, reset())
    assert isinstance(error, Transient)
    assert str(error) == "get x: the connection broke"
    assert len(transport.requests) == 1


async def test_a_refused_connection_is_raised_at_once() -> None:
    transport, error = await sent(GET, Transient("no", reason=REFUSED))
    assert error is not None
    assert error.reason == REFUSED
    assert len(transport.requests) == 1


async def test_a_read_that_times_out_is_retried() -> None:
    transport, error = await sent(GET, 20.0, success({}), success({}))
    assert error is None
    assert transport.gaps[0] == pytest.approx(11, abs=0.1)
    _, error = await sent(POST, 20.0, success({}))
    assert isinstance(error, Transient)
    assert error.reason == TIMED_OUT
    assert str(error) == "get x: no response within 10 s"


NOT_RETRIED = {
    "404": (failure(404, "NotFound", retry_after=1), "get x: 404 NotFound: no"),
    "a version that is too large": (
        failure(504, "Timeout", retry_after=1, causes=[{"reason": "ResourceVersionTooLarge"}]),
        "get x: 504 Timeout: no",
    ),
}


@pytest.mark.parametrize(("reply", "message"), NOT_RETRIED.values(), ids=NOT_RETRIED.keys())
async def test_some_errors_are_raised_despite_retry_after(reply: Reply, message: str) -> None:
    transport, error = await sent(GET, reply)
    assert (str(error), len(transport.requests)) == (message, 1)


async def opened(*replies: Reply) -> tuple[ScriptedTransport, KubeError | None]:
    transport = ScriptedTransport(watches=replies)
    error = None
    try:
        async with RestClient(transport, random=Random(1)).open(GET, about="watch x") as stream:
            assert stream.status == 200
            assert transport.open_streams == 1
    except KubeError as caught:
        error = caught
    assert transport.open_streams == 0
    return transport, error


async def test_streams_are_retried_by_the_same_rules() -> None:
    transport, error = await opened(reset(), failure(429, retry_after=2), FedStream())
    assert error is None
    assert [round(gap) for gap in transport.gaps] == [1, 2]
    _, error = await opened(failure(410, "Expired"))
    assert isinstance(error, Gone)
    _, error = await opened(Transient("no", reason=REFUSED))
    assert str(error) == "watch x: no"
    _, error = await opened(20.0, *[reset() for _ in range(11)])
    assert error is not None


BODIES = {
    "breaks off": FedStream(b'{"kind":"Status",', reset(), status=403),
    "never ends": FedStream(b'{"kind":"Status",', status=403),
    "is endless": FedStream(*[b"x" * 65536] * 40, status=403),
}


@pytest.mark.parametrize("stream", BODIES.values(), ids=BODIES.keys())
async def test_an_error_with_an_unreadable_body_has_its_status(stream: FedStream) -> None:
    started = asyncio.get_running_loop().time()
    _, error = await opened(stream)
    assert str(error) == "watch x: 403"
    assert asyncio.get_running_loop().time() - started <= 10


class Lowest(Random):
    """Returns the lower bound."""

    def random(self) -> float:
        return 0.0


def test_backoff_doubles_from_08_to_30_seconds() -> None:
    backoff = Backoff(random=Lowest())
    assert [backoff.failed() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_backoff_jitter_lies_between_one_and_two_steps() -> None:
    waits = []
    for seed in range(200):
        backoff = Backoff(random=Random(seed))
        backoff.failed()
        waits.append(backoff.failed())
    assert 1.6 <= min(waits) < 1.7
    assert 3.1 < max(waits) <= 3.2


def test_backoff_is_no_shorter_than_retry_after() -> None:
    backoff = Backoff(random=Lowest())
    assert backoff.failed(at_least=17) == 17
    assert backoff.failed(at_least=0.1) == 1.6


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
