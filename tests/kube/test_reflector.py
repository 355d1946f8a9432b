"""Each row of client-go's error matrix, as status and in the stream; and the rules around it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.kube_server import (
    FedStream,
    Reply,
    ScriptedTransport,
    bookmark,
    event,
    listing,
    node,
    refusal,
    reset,
    status_object,
)
from upgrade_manager.kube.backoff import Backoff
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.kube.kinds import NODES, SECRETS
from upgrade_manager.kube.listing import Selection
from upgrade_manager.kube.observer import InformerObserver
from upgrade_manager.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resource import Resource
    from upgrade_manager.kube.transport import Request


@dataclass
class Recorded:
    """A sink and an observer that write down what they hear."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    def replace(self, items: list[Object], version: str) -> None:
        self.calls.append(("replace", ",".join(item["metadata"]["name"] for item in items)))
        self.versions.append(version)

    def put(self, obj: Object) -> None:
        self.calls.append(("put", obj["metadata"]["name"]))

    def drop(self, obj: Object) -> None:
        self.calls.append(("drop", obj["metadata"]["name"]))

    def advance(self, version: str) -> None:
        self.versions.append(version)


@dataclass
class Heard(InformerObserver):
    relists: list[str] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)

    def relisted(self, resource: str, *, reason: str) -> None:
        assert resource
        self.relists.append(reason)

    def watch_restarted(self, resource: str, *, reason: str) -> None:
        assert resource
        self.endings.append(reason)


@dataclass
class Run:
    transport: ScriptedTransport
    sink: Recorded
    heard: Heard

    def requests(self) -> list[str]:
        """`list RV limit=N` or `watch RV`, in order."""
        told = []
        for query in self.transport.asked:
            version = query.get("resourceVersion", "newest")
            limit = f" limit={query['limit']}" if "limit" in query else ""
            token = f" continue={query['continue']}" if "continue" in query else ""
            told.append(f"{'watch' if 'watch' in query else 'list'} {version}{limit}{token}")
        return told


@asynccontextmanager
async def reflecting(
    transport: ScriptedTransport,
    *,
    seconds: float = 0.0,
    resource: Resource = NODES,
    selection: Selection | None = None,
) -> AsyncIterator[Run]:
    """A reflector that has run for so many seconds."""
    run = Run(transport, Recorded(), Heard())
    random = Random(7)
    reflector = Reflector(
        Client(transport, user_agent="test", random=random),
        resource,
        selection or Selection(),
        sink=run.sink,
        backoff=Backoff(random=random),
        random=random,
        observer=run.heard,
    )
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(seconds or 0.001)
    assert not task.done(), task
    try:
        yield run
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transport.open_streams == 0


def scripted(*watches: Reply, lists: list[Reply] | None = None) -> ScriptedTransport:
    transport = ScriptedTransport()
    transport.lists.extend(lists or [listing(version="5"), listing(version="30"), listing(version="40")])
    transport.watches.extend(watches)
    return transport


def error_event(code: int, reason: str, **details: object) -> bytes:
    return event("ERROR", status_object(code, reason, message="no", details=details))


REOPENS, RELISTS = "watch 5", "list 5"
AT_ONCE, STEP = (0.0, 0.0), (0.8, 1.6)


@dataclass(frozen=True)
class Row:
    """One symptom: what the watch does, what the next request is and how long after the watch's end."""

    watch: Reply
    then: str
    wait: tuple[float, float]
    reason: str
    #: Seconds that the watch, with the client's own retries, takes.
    lasts: tuple[float, float] = (0.0, 0.0)
    #: Requests that it makes.
    attempts: int = 1


MATRIX = {
    "the server ends the watch after an event": Row(FedStream(bookmark(5), None), REOPENS, AT_ONCE, "quick"),
    "the stream breaks after an event": Row(FedStream(bookmark(5), reset()), REOPENS, AT_ONCE, "quick"),
    "the stream closes at once with nothing": Row(FedStream(None), RELISTS, STEP, "short"),
    "the stream breaks at once with nothing": Row(FedStream(reset()), RELISTS, STEP, "short"),
    "connection refused": Row(Transient("no", reason=REFUSED), REOPENS, STEP, "refused"),
    "status 429": Row(refusal(429, "TooManyRequests"), REOPENS, STEP, "throttled"),
    "ERROR 429": Row(FedStream(error_event(429, "TooManyRequests")), REOPENS, STEP, "throttled"),
    "ERROR 429 with a wait": Row(
        FedStream(error_event(429, "TooManyRequests", retryAfterSeconds=20)), REOPENS, (20, 20), "throttled"
    ),
    "status 403": Row(refusal(403, "Forbidden"), RELISTS, STEP, "error"),
    "status 404": Row(refusal(404, "NotFound"), RELISTS, STEP, "error"),
    "status 500": Row(refusal(500, "InternalError"), RELISTS, STEP, "error"),
    "status 410 Gone": Row(refusal(410, "Gone"), RELISTS, STEP, "expired"),
    "status 410 Expired": Row(refusal(410, "Expired"), RELISTS, STEP, "expired"),
    "ERROR 410 Gone": Row(FedStream(error_event(410, "Gone")), RELISTS, STEP, "expired"),
    "ERROR 410 Expired": Row(FedStream(error_event(410, "Expired")), RELISTS, STEP, "expired"),
    "ERROR 500": Row(FedStream(error_event(500, "InternalError")), RELISTS, STEP, "error"),
    "ERROR 500 with a wait": Row(
        FedStream(error_event(500, "InternalError", retryAfterSeconds=9)), RELISTS, (9, 9), "error"
    ),
    "ERROR 403": Row(FedStream(error_event(403, "Forbidden")), RELISTS, STEP, "error"),
    "ERROR with what is no Status": Row(FedStream(event("ERROR", "what")), RELISTS, STEP, "undecodable"),
    "bytes that are no JSON": Row(FedStream(b"upstream timed out\n"), RELISTS, STEP, "undecodable"),
    "JSON that is no event": Row(FedStream(b'{"kind":"Status"}\n'), RELISTS, STEP, "undecodable"),
    "JSON that is no object": Row(FedStream(b"[1]\n"), RELISTS, STEP, "undecodable"),
}


@pytest.mark.parametrize("row", MATRIX.values(), ids=MATRIX.keys())
async def test_what_follows_the_end_of_a_watch(row: Row) -> None:
    transport = scripted(row.watch)
    async with reflecting(transport, seconds=25) as run:
        pass
    # A stream object is fed once; parametrised cases are not reused.
    assert run.requests()[:3] == ["list 0 limit=500", "watch 5", row.then]
    assert row.wait[0] <= transport.gaps[1] <= row.wait[1]
    assert run.heard.endings[0] == row.reason
    assert run.heard.relists == (["start", row.reason] if row.then == RELISTS else ["start"])


@pytest.mark.parametrize("is_quiet", [False, True], ids=["with events", "without"])
async def test_a_watch_that_lived_for_a_second_is_reopened_at_once(*, is_quiet: bool) -> None:
    stream = FedStream()
    async with reflecting(scripted(stream)) as run:
        await asyncio.sleep(2)
        if not is_quiet:
            stream.feed(event("ADDED", node("a", 9)))
        stream.feed(None)
        await asyncio.sleep(0.001)
        assert run.requests()[1:] == ["watch 5", "watch 5" if is_quiet else "watch 9"]
        assert run.heard.endings == ["closed"]


async def test_a_lost_connection_is_retried_ten_times_and_counts_as_a_very_short_watch_then() -> None:
    transport = scripted(*[reset() for _ in range(11)])
    async with reflecting(transport, seconds=30) as run:
        pass
    assert run.requests() == ["list 0 limit=500", *["watch 5"] * 11, "list 5", "watch 30"]
    assert all(1.0 <= gap <= 1.1 for gap in transport.gaps[1:11])
    assert 0.8 <= transport.gaps[11] <= 1.6
    assert run.heard.endings == ["unreachable"]


async def test_retry_after_is_obeyed_ten_times_before_the_backoff() -> None:
    transport = scripted(*[refusal(429, "TooManyRequests", retry_after=2) for _ in range(11)])
    async with reflecting(transport, seconds=60) as run:
        pass
    assert run.requests() == ["list 0 limit=500", *["watch 5"] * 12]
    assert all(2.0 <= gap <= 2.2 for gap in transport.gaps[1:11])
    assert transport.gaps[11] >= 2.0


UNREACHED = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
OUT_OF_REACH = {
    "410 Gone": refusal(410, "Gone"),
    "410 Expired": refusal(410, "Expired"),
    "too large": refusal(504, "Timeout", retry_after=1, **UNREACHED),
    "too large, from a server too old to say so": refusal(504, "Timeout"),
}


@pytest.mark.parametrize("reply", OUT_OF_REACH.values(), ids=OUT_OF_REACH.keys())
async def test_a_list_out_of_reach_is_repeated_at_once_for_the_newest_state(reply: Reply) -> None:
    transport = scripted(FedStream(None), lists=[listing(version="5"), reply, listing(version="30")])
    async with reflecting(transport, seconds=10) as run:
        pass
    assert run.requests() == ["list 0 limit=500", "watch 5", "list 5", "list newest", "watch 30"]
    assert transport.gaps[2] == 0.0


async def test_the_newest_state_is_asked_for_until_a_list_succeeds_and_not_after() -> None:
    lists = [listing(version="5"), refusal(410, "Gone"), refusal(500), refusal(500), listing(version="30")]
    transport = scripted(FedStream(None), FedStream(None), lists=[*lists, listing(version="31")])
    async with reflecting(transport, seconds=60) as run:
        pass
    assert run.requests()[2:] == [
        "list 5",
        "list newest",
        "list newest limit=500",
        "list newest limit=500",
        "watch 30",
        "list 30",
        "watch 31",
    ]


async def test_a_first_list_that_is_gone_is_no_reason_to_hurry() -> None:
    transport = scripted(lists=[refusal(410, "Gone"), listing(version="5")])
    async with reflecting(transport, seconds=5) as run:
        pass
    assert run.requests() == ["list 0 limit=500", "list 0 limit=500", "watch 5"]
    assert transport.gaps[0] >= 0.8


LIST_FAILURES = {
    "403": refusal(403, "Forbidden"),
    "404, the kind is not there yet": refusal(404, "NotFound"),
    "500 text": refusal(500),
    "refused": Transient("no", reason=REFUSED),
}


@pytest.mark.parametrize("reply", LIST_FAILURES.values(), ids=LIST_FAILURES.keys())
async def test_a_list_that_fails_is_repeated_after_a_step(reply: Reply) -> None:
    transport = scripted(lists=[reply, listing(version="5")])
    async with reflecting(transport, seconds=5) as run:
        pass
    assert run.requests() == ["list 0 limit=500", "list 0 limit=500", "watch 5"]
    assert 0.8 <= transport.gaps[0] <= 1.6


async def test_a_server_that_pages_its_cache_has_none_so_paging_stays_on() -> None:
    first, rest = listing(node("a"), version="5", continues="t"), listing(node("b"), version="5")
    transport = scripted(FedStream(None), lists=[first, rest, listing(version="30")])
    async with reflecting(transport, seconds=5) as run:
        pass
    assert run.requests()[:4] == [
        "list 0 limit=500",
        "list newest limit=500 continue=t",
        "watch 5",
        "list 5 limit=500",
    ]
    assert run.sink.calls[0] == ("replace", "a,b")


async def test_versions_follow_every_event_and_bookmark() -> None:
    stream = FedStream(event("ADDED", node("a", 6)), event("MODIFIED", node("a", 7)), event("DELETED", node("a", 8)))
    async with reflecting(scripted(stream)) as run:
        stream.feed(bookmark(90), None)
        await asyncio.sleep(0.001)
    assert run.sink.calls == [("replace", ""), ("put", "a"), ("put", "a"), ("drop", "a")]
    assert run.sink.versions == ["5", "6", "7", "8", "90"]
    assert run.requests()[-1] == "watch 90"


@pytest.mark.parametrize("start", ["0", ""])
async def test_versions_of_a_watch_that_starts_nowhere_count_only_after_the_first_other_event(start: str) -> None:
    stream = FedStream(event("ADDED", node("a", 9)), event("ADDED", node("b", 3)))
    async with reflecting(scripted(stream, lists=[listing(version=start)])) as run:
        assert run.sink.versions[-1] == start
        stream.feed(bookmark(4))
        await asyncio.sleep(0.001)
        assert run.sink.versions[-1] == "4"
        stream.feed(event("ADDED", node("c", 12)), None)
        await asyncio.sleep(0.001)
    assert run.requests()[-1] == "watch 12"


async def test_every_watch_asks_for_bookmarks_and_a_random_end_within_five_to_ten_minutes() -> None:
    transport = scripted()
    async with reflecting(transport, seconds=4 * 3600):
        pass
    watches = [query for query in transport.asked if "watch" in query]
    asked = {int(query["timeoutSeconds"]) for query in watches}
    assert all(query["allowWatchBookmarks"] == "true" for query in watches)
    assert len(asked) > 20
    assert min(asked) >= 300
    assert max(asked) < 600


async def test_a_silent_peer_is_noticed_within_90_seconds_and_the_watch_resumed() -> None:
    transport = scripted()
    async with reflecting(transport, seconds=200) as run:
        pass
    assert run.requests() == ["list 0 limit=500", *["watch 5"] * 3]
    assert max(transport.gaps) <= 90


async def test_a_server_that_does_not_end_its_watch_is_left() -> None:
    stream = FedStream()
    transport = scripted(stream)
    async with reflecting(transport) as run:
        asked = int(transport.asked[-1]["timeoutSeconds"])
        for _ in range(14):
            stream.feed(bookmark(5))
            await asyncio.sleep(50)
            if len(run.requests()) > 2:
                break
    assert run.requests()[:3] == ["list 0 limit=500", "watch 5", "watch 5"]
    assert transport.gaps[1] == pytest.approx(asked + 30)


ODD = {
    "another kind": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "resourceVersion": "9"}},
    "a Table": {"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {"resourceVersion": "9"}},
    "no metadata": {"apiVersion": "v1", "kind": "Node"},
    "no resourceVersion": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}},
}


@pytest.mark.parametrize("obj", ODD.values(), ids=ODD.keys())
async def test_an_unexpected_object_is_skipped_and_the_stream_kept(obj: Object) -> None:
    stream = FedStream(event("ADDED", obj), event("ADDED", node("a", 7)))
    async with reflecting(scripted(stream)) as run:
        assert run.sink.calls == [("replace", ""), ("put", "a")]
        assert run.sink.versions == ["5", "5", "7"]
        assert len(run.requests()) == 2


async def test_an_unknown_type_of_event_moves_the_version_only() -> None:
    async with reflecting(scripted(FedStream(event("SPARKLED", node("a", 7))))) as run:
        assert run.sink.calls == [("replace", "")]
        assert run.sink.versions == ["5", "7"]


async def test_events_before_a_bad_one_count() -> None:
    stream = FedStream(event("ADDED", node("a", 7)) + b"rubbish\n")
    async with reflecting(scripted(stream), seconds=5) as run:
        assert run.sink.calls[1] == ("put", "a")
        assert run.requests()[2] == "list 7"


async def test_an_event_that_the_end_cut_off_is_no_error() -> None:
    stream = FedStream(event("ADDED", node("a", 7)) + event("ADDED", node("b", 8))[:20], None)
    async with reflecting(scripted(stream), seconds=0.5) as run:
        assert run.requests()[2:] == ["watch 7"]


async def test_whole_objects_where_metadata_was_asked_for_are_refused_and_not_kept() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "resourceVersion": "7"},
        "data": {"k": "v"},
    }
    selection = Selection(metadata_only=True)
    transport = scripted(FedStream(event("ADDED", secret)))
    async with reflecting(transport, seconds=5, resource=SECRETS, selection=selection) as run:
        assert run.sink.calls == [("replace", "")] * 2
        assert run.heard.endings == ["error"]
        assert transport.requests[0].headers["accept"].startswith("application/json;as=PartialObjectMetadataList;")
        assert transport.requests[1].headers["accept"].startswith("application/json;as=PartialObjectMetadata;")
    transport = scripted(lists=[listing(secret), listing()])
    async with reflecting(transport, seconds=5, resource=SECRETS, selection=selection) as run:
        assert run.sink.calls == [("replace", "")]


async def test_metadata_is_handed_on_under_its_own_kind() -> None:
    kept: list[Object] = []
    meta = {"name": "s", "resourceVersion": "7"}
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta}
    transport = scripted()
    selection = Selection(metadata_only=True, namespace="fleet-local")
    stream = FedStream()
    transport.watches.append(stream)
    async with reflecting(transport, resource=SECRETS, selection=selection) as run:
        run.sink.put = kept.append  # type: ignore[assignment,method-assign]
        stream.feed(event("ADDED", partial))
        await asyncio.sleep(0.001)
    assert kept == [{"apiVersion": "v1", "kind": "Secret", "metadata": meta}]
    assert transport.requests[0].path == "/api/v1/namespaces/fleet-local/secrets"


def at_once(watch: bytes | None) -> ScriptedTransport:
    """A server that fails at once, in one way."""

    def handler(request: Request) -> Reply:
        if "watch" not in dict(request.query):
            return listing(version="5")
        return FedStream(watch, None)

    return ScriptedTransport(handler)


HASTY = {
    "closes at once": at_once(None),
    "sends a bookmark and closes": at_once(bookmark(5)),
    "sends text": at_once(b"bad gateway\n"),
    "sends 410": at_once(error_event(410, "Expired")),
    "sends 429": at_once(error_event(429, "TooManyRequests")),
    "refuses": ScriptedTransport(lambda _: Transient("no", reason=REFUSED)),
    "resets": ScriptedTransport(lambda _: reset()),
    "times out": ScriptedTransport(lambda _: Transient("no", reason=TIMED_OUT)),
    "answers 500": ScriptedTransport(lambda _: refusal(500)),
    "answers 429, retry at once": ScriptedTransport(lambda _: refusal(429, retry_after=0)),
    "answers 502": ScriptedTransport(lambda _: refusal(502)),
}


@pytest.mark.parametrize("transport", HASTY.values(), ids=HASTY.keys())
async def test_no_failure_makes_a_tight_loop(transport: ScriptedTransport) -> None:
    async with reflecting(transport, seconds=600):
        pass
    assert len(transport.requests) <= 1.3 * 600
    assert max(transport.gaps) <= 60


async def test_an_outage_of_ten_minutes_costs_about_18_attempts() -> None:
    transport = ScriptedTransport(lambda _: Transient("no", reason=REFUSED))
    async with reflecting(transport, seconds=600):
        pass
    assert 15 <= len(transport.requests) <= 22


async def test_health_of_two_minutes_makes_the_next_wait_short_again() -> None:
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


async def test_a_long_line_in_many_pieces_is_one_event() -> None:
    big = event("ADDED", node("a", 7, status={"text": "x" * 5_000_000}))
    pieces = [big[start : start + 65536] for start in range(0, len(big), 65536)]
    async with reflecting(scripted(FedStream(*pieces))) as run:
        assert run.sink.calls == [("replace", ""), ("put", "a")]


async def test_no_log_line_shows_what_was_sent(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = FedStream(b"token: hunter2\n" + json.dumps({"type": "ADDED", "object": {"secret": "hunter2"}}).encode())
    async with reflecting(scripted(stream), seconds=5):
        pass
    out = capsys.readouterr()
    assert "undecodable" in out.out + out.err + caplog.text
    assert "hunter2" not in out.out + out.err + caplog.text
