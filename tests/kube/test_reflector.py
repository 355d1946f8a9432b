"""Which lists and watches a reflector asks for, and what it makes of their versions."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.kube_server import (
    FedStream,
    Reply,
    bookmark,
    event,
    listing,
    node,
    refusal,
)
from tests.support.reflecting import reflecting, scripted
from upgrade_manager.kube.errors import REFUSED, Transient

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
    assert run.store.calls[0] == ("replace", "a,b")


async def test_versions_follow_every_event_and_bookmark() -> None:
    stream = FedStream(event("ADDED", node("a", 6)), event("MODIFIED", node("a", 7)), event("DELETED", node("a", 8)))
    async with reflecting(scripted(stream)) as run:
        stream.feed(bookmark(90), None)
        await asyncio.sleep(0.001)
    assert run.store.calls == [("replace", ""), ("put", "a"), ("put", "a"), ("delete", "a")]
    assert run.store.versions == ["5", "6", "7", "8", "90"]
    assert run.requests()[-1] == "watch 90"


@pytest.mark.parametrize("start", ["0", ""])
async def test_versions_of_a_watch_that_starts_nowhere_count_only_after_the_first_other_event(start: str) -> None:
    stream = FedStream(event("ADDED", node("a", 9)), event("ADDED", node("b", 3)))
    async with reflecting(scripted(stream, lists=[listing(version=start)])) as run:
        assert run.store.versions[-1] == start
        stream.feed(bookmark(4))
        await asyncio.sleep(0.001)
        assert run.store.versions[-1] == "4"
        stream.feed(event("ADDED", node("c", 12)), None)
        await asyncio.sleep(0.001)
    assert run.requests()[-1] == "watch 12"


async def test_every_watch_asks_for_bookmarks_and_a_random_end_within_five_to_ten_minutes() -> None:
    transport = scripted()
    async with reflecting(transport, seconds=4 * 3600):
        pass
    watches = [query for query in transport.queries if "watch" in query]
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
        asked = int(transport.queries[-1]["timeoutSeconds"])
        for _ in range(14):
            stream.feed(bookmark(5))
            await asyncio.sleep(50)
            if len(run.requests()) > 2:
                break
    assert run.requests()[:3] == ["list 0 limit=500", "watch 5", "watch 5"]
    assert transport.gaps[1] == pytest.approx(asked + 30)


async def test_events_before_a_bad_one_count() -> None:
    stream = FedStream(event("ADDED", node("a", 7)) + b"rubbish\n")
    async with reflecting(scripted(stream), seconds=5) as run:
        assert run.store.calls[1] == ("put", "a")
        assert run.requests()[2] == "list 7"


async def test_an_event_that_the_end_cut_off_is_no_error() -> None:
    stream = FedStream(event("ADDED", node("a", 7)) + event("ADDED", node("b", 8))[:20], None)
    async with reflecting(scripted(stream), seconds=0.5) as run:
        assert run.requests()[2:] == ["watch 7"]


async def test_a_long_line_in_many_pieces_is_one_event() -> None:
    big = event("ADDED", node("a", 7, status={"text": "x" * 5_000_000}))
    pieces = [big[start : start + 65536] for start in range(0, len(big), 65536)]
    async with reflecting(scripted(FedStream(*pieces))) as run:
        assert run.store.calls == [("replace", ""), ("put", "a")]


async def test_no_log_line_shows_what_was_sent(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = FedStream(b"token: hunter2\n" + json.dumps({"type": "ADDED", "object": {"secret": "hunter2"}}).encode())
    async with reflecting(scripted(stream), seconds=5):
        pass
    out = capsys.readouterr()
    assert "undecodable" in out.out + out.err + caplog.text
    assert "hunter2" not in out.out + out.err + caplog.text
