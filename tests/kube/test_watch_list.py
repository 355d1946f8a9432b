"""Streaming lists: each way in which a server may respond, and whether it is remembered."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from tests.support.server.kube_server import (
    FedStream,
    Reply,
    ScriptedTransport,
    bookmark,
    event,
    failure,
    initial_end,
    node,
    reset,
    unsupported,
)
from tests.support.server.reflecting import AT_ONCE, OLD_TOO_LARGE, STEP, TOO_LARGE, error_event, reflecting, scripted
from upgrade_manager.kube.errors import REFUSED, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import SECRETS
from upgrade_manager.kube.watch_list import INITIAL_EVENTS_TIMEOUT, PROBE_INTERVAL

LIST = "list 0 limit=500"


def streaming(*streams: Reply, watches: list[Reply] | None = None) -> ScriptedTransport:
    """Respond with these streaming lists; further ones are unsupported."""
    transport = scripted(*(watches or []))
    transport.streams.extend(streams)
    return transport


async def test_one_request_lists_and_watches() -> None:
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


async def test_initial_events_are_stored_at_their_end() -> None:
    stream = FedStream(event("ADDED", node("a", 1)))
    async with reflecting(streaming(stream), streaming=True) as run:
        assert run.store.calls == []
        stream.feed(initial_end(7) + event("ADDED", node("b", 8)) + b"garbage\n")
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
async def test_each_initial_event_has_its_effect(events: tuple[bytes, ...], expected: str) -> None:
    stream = FedStream(*events)
    async with reflecting(streaming(stream), streaming=True) as run:
        assert run.store.calls == []
        stream.feed(initial_end(7))
        await asyncio.sleep(0.001)
    assert (run.store.calls, run.store.versions) == ([("replace", expected)], ["7"])


async def test_only_a_bookmark_ends_the_initial_events() -> None:
    marked = node("a", 1)
    marked["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
    async with reflecting(streaming(FedStream(event("ADDED", marked))), streaming=True) as run:
        assert run.store.calls == []


@dataclass(frozen=True)
class Row:
    """One failure of the first request: the next request, and the delay before it."""

    stream: list[Reply]
    then: str
    wait: tuple[float, float] = AT_ONCE
    #: True if the server is marked as unsupported.
    is_marked: bool = False


TIMEOUT = (INITIAL_EVENTS_TIMEOUT, INITIAL_EVENTS_TIMEOUT)
SOME = event("ADDED", node("a", 1))
STREAM = "stream newest"
WITH_WAIT = {"retryAfterSeconds": 20}
FAILURES = {
    "connection refused": Row([Transient("no", reason=REFUSED)], STREAM, STEP),
    "status 429": Row([failure(429, "TooManyRequests")], STREAM, STEP),
    "ERROR 429": Row([FedStream(error_event(429, "TooManyRequests"))], STREAM, STEP),
    "ERROR 429 with a wait": Row([FedStream(error_event(429, "TooManyRequests", **WITH_WAIT))], STREAM, (20, 20)),
    "status 422, the feature gate is off": Row([unsupported()], LIST, is_marked=True),
    "status 422 without causes": Row([failure(422, "Invalid")], LIST, is_marked=True),
    "status 400": Row([failure(400, "BadRequest")], LIST, is_marked=True),
    "status 405": Row([failure(405, "MethodNotAllowed")], LIST, is_marked=True),
    "status 403": Row([failure(403, "Forbidden")], LIST),
    "status 404": Row([failure(404, "NotFound")], LIST),
    "status 410": Row([failure(410, "Expired")], LIST),
    "status 500": Row([failure(500, "InternalError")], LIST),
    "ERROR 422": Row([FedStream(error_event(422, "Invalid"))], LIST, is_marked=True),
    "ERROR 410": Row([FedStream(error_event(410, "Expired"))], LIST),
    "ERROR 500": Row([FedStream(SOME, error_event(500, "InternalError"))], LIST),
    "status 504 of an overloaded server": Row([failure(504, "Timeout")], LIST),
    "no response after all retries": Row([reset() for _ in range(11)], LIST),
    "not JSON": Row([FedStream(SOME, b"upstream timed out\n")], LIST),
    "broken after an event": Row([FedStream(SOME, reset())], LIST),
    "closed at once": Row([FedStream(None)], LIST),
    "closed after an event": Row([FedStream(SOME, None)], LIST),
    "closed after an ordinary bookmark": Row([FedStream(bookmark(5), None)], LIST),
    "no final bookmark": Row([FedStream(SOME)], LIST, TIMEOUT),
    "no data": Row([FedStream()], LIST, TIMEOUT),
}


@pytest.mark.parametrize("row", FAILURES.values(), ids=FAILURES.keys())
async def test_each_failure_of_a_streaming_list_has_its_reaction(row: Row) -> None:
    transport = streaming(*row.stream)
    if row.then == STREAM:
        transport.streams.append(FedStream(initial_end(5)))
    async with reflecting(transport, seconds=80, streaming=True) as run:
        count = len(row.stream)
        assert run.requests()[count - 1 : count + 1] == [STREAM, row.then]
        assert row.wait[0] <= transport.gaps[count - 1] <= row.wait[1]
        assert run.client.watch_list_support.is_assumed() is not row.is_marked
    assert run.store.calls == [("replace", "")]
    assert run.store.versions == ["5"]
    assert run.list_reasons == ["error" if row.then == STREAM else "start"]


async def test_slow_initial_events_time_out() -> None:
    stream = FedStream()
    async with reflecting(streaming(stream), streaming=True) as run:
        for version in range(1, 8):
            await asyncio.sleep(INITIAL_EVENTS_TIMEOUT / 6)
            stream.feed(event("ADDED", node(f"n{version}", version)))
        assert run.requests() == [STREAM, LIST, "watch 5"]
        assert run.transport.times[1] == INITIAL_EVENTS_TIMEOUT


UNAVAILABLE: dict[str, Reply] = {
    "status 410 Gone": failure(410, "Gone"),
    "status 410 Expired": failure(410, "Expired"),
    "status too large": failure(504, "Timeout", retry_after=1, **TOO_LARGE),
    "ERROR 410": FedStream(error_event(410, "Expired")),
    # kube-apiserver 1.35 sends it after three seconds.
    "ERROR too large": FedStream(error_event(504, "Timeout", retryAfterSeconds=1, **TOO_LARGE)),
    "ERROR too large after some": FedStream(SOME, error_event(504, "Timeout", **TOO_LARGE)),
    "ERROR too large, from an old server": FedStream(error_event(504, "Timeout", **OLD_TOO_LARGE)),
}


@pytest.mark.parametrize("reply", UNAVAILABLE.values(), ids=UNAVAILABLE.keys())
async def test_unavailable_version_is_skipped_for_one_list(reply: Reply) -> None:
    expired = error_event(410, "Expired")
    streams = [
        FedStream(initial_end(9), expired),
        reply,
        FedStream(initial_end(30), expired),
        FedStream(initial_end(31)),
    ]
    async with reflecting(streaming(*streams), seconds=10, streaming=True) as run:
        assert run.requests() == [STREAM, "stream 9", STREAM, "stream 30"]
        assert run.transport.gaps[1] == 0.0
    assert run.store.versions == ["9", "9", "30", "30", "31"]
    assert run.list_reasons == ["start", "expired", "expired"]


async def test_unavailable_latest_state_falls_back_to_a_list() -> None:
    expired = failure(410, "Expired")
    stream = FedStream(initial_end(9), error_event(410, "Expired"))
    async with reflecting(streaming(stream, expired, expired), seconds=10, streaming=True) as run:
        assert run.requests() == [STREAM, "stream 9", STREAM, "list newest limit=500", "watch 5"]


#: By ending, after the initial events: the next request, the reported reason, and the delay between.
LATER: dict[str, tuple[list[bytes | Exception | None], str, str, tuple[float, float]]] = {
    "closed at once": ([None], "watch 7", "quick", AT_ONCE),
    "broken at once": ([reset()], "watch 7", "quick", AT_ONCE),
    "closed after an event": ([event("ADDED", node("b", 9)), None], "watch 9", "quick", AT_ONCE),
    "ERROR 410": ([error_event(410, "Expired")], "stream 7", "expired", STEP),
    "ERROR 429": ([error_event(429, "TooManyRequests")], "watch 7", "throttled", STEP),
    "ERROR 500": ([error_event(500, "InternalError")], "stream 7", "error", STEP),
}


@pytest.mark.parametrize(("pieces", "then", "reason", "wait"), LATER.values(), ids=LATER)
async def test_stream_ends_as_any_watch_does(
    pieces: list[bytes | Exception | None], then: str, reason: str, wait: tuple[float, float]
) -> None:
    stream = FedStream(SOME, initial_end(7))
    async with reflecting(streaming(stream, FedStream(initial_end(20))), streaming=True) as run:
        ended = asyncio.get_running_loop().time()
        stream.feed(*pieces)
        await asyncio.sleep(3)
    assert run.requests()[:2] == [STREAM, then]
    assert run.watch_endings[0] == reason
    assert wait[0] <= run.transport.times[1] - ended <= wait[1] + 0.01


async def test_stream_that_closes_or_is_silent_for_90_s_is_reopened() -> None:
    stream = FedStream(initial_end(7))
    async with reflecting(streaming(stream), streaming=True) as run:
        for _ in range(5):
            await asyncio.sleep(60)
            stream.feed(bookmark(7))
        stream.feed(None)
        await asyncio.sleep(100)
        assert run.requests() == [STREAM, "watch 7", "watch 7"]
        assert run.watch_endings[0] == "closed"
        assert run.transport.gaps == [pytest.approx(300, abs=0.1), pytest.approx(80, abs=0.1)]


async def test_older_server_is_probed_once_an_hour() -> None:
    transport = streaming()
    async with reflecting(transport, streaming=True) as first:
        async with reflecting(transport, client=first.client, streaming=True):
            pass
        assert first.requests() == [STREAM, LIST, "watch 5", LIST, "watch 30"]
        await asyncio.sleep(PROBE_INTERVAL)
        transport.streams.append(FedStream(initial_end(50)))
        async with reflecting(transport, client=first.client, streaming=True) as upgraded:
            assert upgraded.requests()[-1] == STREAM
            assert upgraded.store.versions == ["50"]


async def test_stream_closed_by_a_restart_changes_no_other_informer() -> None:
    transport = streaming(FedStream(SOME, None), FedStream(initial_end(7)))
    async with reflecting(transport, streaming=True) as first:
        assert first.requests() == [STREAM, LIST, "watch 5"]
        async with reflecting(transport, client=first.client, streaming=True) as second:
            assert second.requests()[-1] == STREAM
            assert second.store.versions == ["7"]


async def test_error_of_the_list_too_marks_nothing_unsupported() -> None:
    bad = failure(400, "BadRequest")
    transport = scripted(lists=[bad])
    transport.streams.append(bad)
    async with reflecting(transport, streaming=True) as run:
        assert run.requests() == [STREAM, LIST]
        assert run.client.watch_list_support.is_assumed()


METADATA = {"name": "s", "resourceVersion": "3"}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": METADATA}


def partial(metadata: Object) -> Object:
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata}


async def test_metadata_can_be_streamed() -> None:
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


async def test_whole_objects_in_a_metadata_stream_are_rejected() -> None:
    stream = FedStream(event("ADDED", SECRET | {"data": {"k": "v"}}))
    selection = Selection(resource=SECRETS, metadata_only=True)
    async with reflecting(streaming(stream), streaming=True, selection=selection) as run:
        assert run.requests() == [STREAM, LIST, "watch 5"]
    assert run.store.calls == [("replace", "")]
