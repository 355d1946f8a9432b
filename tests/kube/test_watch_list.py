"""Streaming lists: each row of what a server may do with one, and what is remembered of the server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.kube_server import (
    FedStream,
    Reply,
    ScriptedTransport,
    bookmark,
    event,
    initial_end,
    node,
    not_offered,
    refusal,
    reset,
)
from tests.support.reflecting import AT_ONCE, STEP, error_event, reflecting, scripted
from upgrade_manager.kube.errors import REFUSED, Transient
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import SECRETS
from upgrade_manager.kube.watch_list import INITIAL_EVENTS_TIMEOUT, PROBE_INTERVAL

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

LIST = "list 0 limit=500"


def streaming(*streams: Reply, watches: list[Reply] | None = None) -> ScriptedTransport:
    """Streaming lists to answer with; without any more they are refused."""
    transport = scripted(*(watches or []))
    transport.streams.extend(streams)
    return transport


async def test_one_request_brings_what_exists_and_then_the_news() -> None:
    stream = FedStream(event("ADDED", node("b", 2)), event("ADDED", node("a", 1)), initial_end(7))
    async with reflecting(streaming(stream), streaming=True) as run:
        stream.feed(event("DELETED", node("b", 9)))
        await asyncio.sleep(0.001)
        assert run.requests() == ["stream newest"]
    assert run.store.calls == [("replace", "b,a"), ("delete", "b")]
    assert run.store.versions == ["7", "9"]
    assert run.list_reasons == ["start"]
    assert run.store.events == 4
    query = run.transport.queries[0]
    assert 300 <= int(query.pop("timeoutSeconds")) < 600
    assert query == {
        "watch": "1",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }


async def test_nothing_is_seen_before_the_end_and_nothing_behind_it_is_lost() -> None:
    stream = FedStream(event("ADDED", node("a", 1)))
    async with reflecting(streaming(stream), streaming=True) as run:
        assert run.store.calls == []
        stream.feed(initial_end(7) + event("ADDED", node("b", 8)) + b"rubbish\n")
        await asyncio.sleep(0.001)
        assert run.store.calls == [("replace", "a"), ("put", "b")]
        assert run.watch_endings == ["undecodable"]
        await asyncio.sleep(2)
        assert run.requests()[:2] == ["stream newest", "stream 8"]


INITIAL = {
    "nothing": ((), ""),
    "changed meanwhile": ((event("ADDED", node("a", 1)), event("MODIFIED", node("a", 6))), "a"),
    "deleted meanwhile": ((event("ADDED", node("a", 1)), event("DELETED", node("a", 6))), ""),
    "deleted, never seen": ((event("DELETED", node("a", 6)),), ""),
    "sent twice": ((event("ADDED", node("a", 1)),) * 2, "a"),
    "an ordinary bookmark": ((event("ADDED", node("a", 1)), bookmark(3)), "a"),
    "another kind": ((event("ADDED", {"kind": "Table", "metadata": {"resourceVersion": "3"}}),), ""),
    "an unknown type of event": ((event("SPARKLED", node("a", 3)),), ""),
}


@pytest.mark.parametrize(("events", "expected"), INITIAL.values(), ids=INITIAL.keys())
async def test_what_counts_among_the_initial_events(events: tuple[bytes, ...], expected: str) -> None:
    stream = FedStream(*events)
    async with reflecting(streaming(stream), streaming=True) as run:
        assert run.store.calls == []
        stream.feed(initial_end(7))
        await asyncio.sleep(0.001)
    assert (run.store.calls, run.store.versions) == ([("replace", expected)], ["7"])


async def test_an_object_cannot_end_the_initial_events() -> None:
    marked = node("a", 1)
    marked["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
    async with reflecting(streaming(FedStream(event("ADDED", marked))), streaming=True) as run:
        assert run.store.calls == []


@dataclass(frozen=True)
class Row:
    """One way to fail at the very first request: what the next one is, and how long after the failure."""

    stream: list[Reply]
    then: str
    wait: tuple[float, float] = AT_ONCE
    #: Whether the server is not asked again.
    is_remembered: bool = False


TIMEOUT = (INITIAL_EVENTS_TIMEOUT, INITIAL_EVENTS_TIMEOUT)
SOME = event("ADDED", node("a", 1))
AGAIN = "stream newest"
PLEASE_WAIT = {"retryAfterSeconds": 20}
FAILURES = {
    "connection refused": Row([Transient("no", reason=REFUSED)], AGAIN, STEP),
    "status 429": Row([refusal(429, "TooManyRequests")], AGAIN, STEP),
    "ERROR 429": Row([FedStream(error_event(429, "TooManyRequests"))], AGAIN, STEP),
    "ERROR 429 with a wait": Row([FedStream(error_event(429, "TooManyRequests", **PLEASE_WAIT))], AGAIN, (20, 20)),
    "status 422, the feature gate is off": Row([not_offered()], LIST, is_remembered=True),
    "status 422 without causes": Row([refusal(422, "Invalid")], LIST, is_remembered=True),
    "status 400": Row([refusal(400, "BadRequest")], LIST, is_remembered=True),
    "status 405": Row([refusal(405, "MethodNotAllowed")], LIST, is_remembered=True),
    "status 403": Row([refusal(403, "Forbidden")], LIST),
    "status 404": Row([refusal(404, "NotFound")], LIST),
    "status 410": Row([refusal(410, "Expired")], LIST),
    "status 500": Row([refusal(500, "InternalError")], LIST),
    "ERROR 422": Row([FedStream(error_event(422, "Invalid"))], LIST, is_remembered=True),
    "ERROR 410": Row([FedStream(error_event(410, "Expired"))], LIST),
    "ERROR 500": Row([FedStream(SOME, error_event(500, "InternalError"))], LIST),
    "no answer in spite of all retries": Row([reset() for _ in range(11)], LIST),
    "bytes that are no JSON": Row([FedStream(SOME, b"upstream timed out\n")], LIST),
    "the stream breaks": Row([FedStream(SOME, reset())], LIST),
    "the server closes it at once": Row([FedStream(None)], LIST, is_remembered=True),
    "the server closes it after some": Row([FedStream(SOME, None)], LIST, is_remembered=True),
    "the server closes it after an ordinary bookmark": Row([FedStream(bookmark(5), None)], LIST, is_remembered=True),
    "the end never comes": Row([FedStream(SOME)], LIST, TIMEOUT, is_remembered=True),
    "not a byte comes": Row([FedStream()], LIST, TIMEOUT, is_remembered=True),
}


@pytest.mark.parametrize("row", FAILURES.values(), ids=FAILURES.keys())
async def test_what_follows_a_streaming_list_that_fails(row: Row) -> None:
    transport = streaming(*row.stream)
    if row.then == AGAIN:
        transport.streams.append(FedStream(initial_end(5)))
    async with reflecting(transport, seconds=80, streaming=True) as run:
        count = len(row.stream)
        assert run.requests()[count - 1 : count + 1] == [AGAIN, row.then]
        assert row.wait[0] <= transport.gaps[count - 1] <= row.wait[1]
        assert run.client.watch_list_support.is_assumed() is not row.is_remembered
    assert run.store.calls == [("replace", "")]
    assert run.store.versions == ["5"]
    assert run.list_reasons == ["error" if row.then == AGAIN else "start"]


async def test_initial_events_that_trickle_are_not_waited_for_without_end() -> None:
    stream = FedStream()
    async with reflecting(streaming(stream), streaming=True) as run:
        for version in range(1, 8):
            await asyncio.sleep(INITIAL_EVENTS_TIMEOUT / 6)
            stream.feed(event("ADDED", node(f"n{version}", version)))
        assert run.requests() == [AGAIN, LIST, "watch 5"]
        assert run.transport.times[1] == INITIAL_EVENTS_TIMEOUT


UNREACHED = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
OUT_OF_REACH: dict[str, Reply] = {
    "status 410 Gone": refusal(410, "Gone"),
    "status 410 Expired": refusal(410, "Expired"),
    "status too large": refusal(504, "Timeout", retry_after=1, **UNREACHED),
    "ERROR 410": FedStream(error_event(410, "Expired")),
    # What kube-apiserver 1.35 sends after three seconds.
    "ERROR too large": FedStream(error_event(504, "Timeout", retryAfterSeconds=1, **UNREACHED)),
    "ERROR too large after some": FedStream(SOME, error_event(504, "Timeout", **UNREACHED)),
    "ERROR too large, from a server too old to say so": FedStream(error_event(504, "Timeout")),
}


@pytest.mark.parametrize("reply", OUT_OF_REACH.values(), ids=OUT_OF_REACH.keys())
async def test_a_version_out_of_reach_is_given_up_at_once_and_only_for_one_list(reply: Reply) -> None:
    expired = error_event(410, "Expired")
    streams = [
        FedStream(initial_end(9), expired),
        reply,
        FedStream(initial_end(30), expired),
        FedStream(initial_end(31)),
    ]
    async with reflecting(streaming(*streams), seconds=10, streaming=True) as run:
        assert run.requests() == [AGAIN, "stream 9", AGAIN, "stream 30"]
        assert run.transport.gaps[1] == 0.0
    assert run.store.versions == ["9", "9", "30", "30", "31"]
    assert run.list_reasons == ["start", "expired", "expired"]


async def test_a_newest_state_that_is_out_of_reach_is_listed() -> None:
    gone = refusal(410, "Expired")
    stream = FedStream(initial_end(9), error_event(410, "Expired"))
    async with reflecting(streaming(stream, gone, gone), seconds=10, streaming=True) as run:
        assert run.requests() == [AGAIN, "stream 9", AGAIN, "list newest limit=500", "watch 5"]


@dataclass(frozen=True)
class Later:
    """How a stream ends after its initial events, and the request after that."""

    pieces: tuple[bytes | Exception | None, ...]
    then: str
    reason: str
    wait: tuple[float, float] = AT_ONCE
    seconds: float = 0.0


LATER = {
    "closed at once": Later((None,), "watch 7", "quick"),
    "broken at once": Later((reset(),), "watch 7", "quick"),
    "closed after news": Later((event("ADDED", node("b", 9)), None), "watch 9", "quick"),
    "closed after a while": Later((None,), "watch 7", "closed", seconds=300.0),
    "ERROR 410": Later((error_event(410, "Expired"),), "stream 7", "expired", STEP),
    "ERROR 429": Later((error_event(429, "TooManyRequests"),), "watch 7", "throttled", STEP),
    "ERROR 500": Later((error_event(500, "InternalError"),), "stream 7", "error", STEP),
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER.keys())
async def test_what_follows_the_end_of_the_stream_is_what_follows_the_end_of_any_watch(later: Later) -> None:
    stream = FedStream(SOME, initial_end(7))
    async with reflecting(streaming(stream, FedStream(initial_end(20))), streaming=True) as run:
        for _ in range(int(later.seconds) // 60):
            await asyncio.sleep(60)
            stream.feed(bookmark(7))
        ended = asyncio.get_running_loop().time()
        stream.feed(*later.pieces)
        await asyncio.sleep(3)
    assert run.requests()[:2] == [AGAIN, later.then]
    assert run.watch_endings[0] == later.reason
    assert later.wait[0] <= run.transport.times[1] - ended <= later.wait[1] + 0.01


async def test_a_stream_that_goes_silent_after_its_initial_events_is_noticed_within_90_seconds() -> None:
    async with reflecting(streaming(FedStream(initial_end(7))), seconds=100, streaming=True) as run:
        assert run.requests() == [AGAIN, "watch 7"]
        assert run.transport.gaps[0] <= 90


async def test_an_older_server_is_asked_once_by_all_reflectors_together_and_again_after_an_hour() -> None:
    transport = streaming()
    async with reflecting(transport, streaming=True) as first:
        async with reflecting(transport, client=first.client, streaming=True):
            pass
        assert first.requests() == [AGAIN, LIST, "watch 5", LIST, "watch 30"]
        await asyncio.sleep(PROBE_INTERVAL)
        transport.streams.append(FedStream(initial_end(50)))
        async with reflecting(transport, client=first.client, streaming=True) as upgraded:
            assert upgraded.requests()[-1] == AGAIN
            assert upgraded.store.versions == ["50"]


async def test_a_refusal_that_a_plain_list_meets_too_says_nothing_about_the_server() -> None:
    bad = refusal(400, "BadRequest")
    transport = scripted(lists=[bad])
    transport.streams.append(bad)
    async with reflecting(transport, streaming=True) as run:
        assert run.requests() == [AGAIN, LIST]
        assert run.client.watch_list_support.is_assumed()


METADATA = {"name": "s", "resourceVersion": "3"}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": METADATA}


def partial(metadata: Object) -> Object:
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}


async def test_metadata_alone_can_be_streamed() -> None:
    end = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
    stream = FedStream(event("ADDED", partial(METADATA)), event("BOOKMARK", partial(end)))
    transport = streaming(stream)
    selection = Selection(resource=SECRETS, metadata_only=True, namespace="fleet-local", label_selector="a=b")
    async with reflecting(transport, streaming=True, selection=selection) as run:
        assert run.store.items == [SECRET]
    (request,) = transport.requests
    assert request.path == "/api/v1/namespaces/fleet-local/secrets"
    assert request.headers["accept"].startswith("application/json;as=PartialObjectMetadata;")
    assert ("labelSelector", "a=b") in request.query


async def test_whole_objects_where_metadata_was_asked_for_are_not_kept() -> None:
    stream = FedStream(event("ADDED", SECRET | {"data": {"k": "v"}}))
    selection = Selection(resource=SECRETS, metadata_only=True)
    async with reflecting(streaming(stream), streaming=True, selection=selection) as run:
        assert run.requests() == [AGAIN, LIST, "watch 5"]
    assert run.store.calls == [("replace", "")]


async def test_stopping_in_the_middle_of_the_initial_events_leaves_nothing_open() -> None:
    async with reflecting(streaming(FedStream(SOME)), streaming=True) as run:
        assert run.transport.open_streams == 1
    assert run.transport.open_streams == 0
