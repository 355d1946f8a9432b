"""Which lists and watches a reflector requests, and from which versions."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.server.kube_server import FedStream, Reply, bookmark, event, failure, listing, node
from tests.support.server.reflecting import OLD_TOO_LARGE, STEP, TOO_LARGE, reflected, reflecting, scripted
from upgrade_manager.kube.errors import REFUSED, Transient

UNAVAILABLE = {
    "410 Gone": failure(410, "Gone"),
    "410 Expired": failure(410, "Expired"),
    "too large": failure(504, "Timeout", retry_after=1, **TOO_LARGE),
    "too large, from an old server": failure(504, "Timeout", **OLD_TOO_LARGE),
}


@pytest.mark.parametrize("reply", UNAVAILABLE.values(), ids=UNAVAILABLE.keys())
async def test_unavailable_version_lists_the_latest_state_at_once(reply: Reply) -> None:
    transport = scripted(FedStream(None), lists=[listing(version="5"), reply, listing(version="30")])
    run = await reflected(transport, seconds=10)
    assert run.requests() == ["list 0 limit=500", "watch 5", "list 5", "list newest", "watch 30"]
    assert transport.gaps[2] == 0.0


OVERLOADED = {
    "504 of a timeout": failure(504, "Timeout"),
    "504 without reason": failure(504),
    "504 with another cause": failure(504, "Timeout", causes=[{"reason": "x", "message": "x"}]),
}


@pytest.mark.parametrize("reply", OVERLOADED.values(), ids=OVERLOADED.keys())
async def test_overloaded_server_is_not_listed_from_etcd(reply: Reply) -> None:
    transport = scripted(FedStream(None), lists=[listing(version="5"), reply, listing(version="30")])
    run = await reflected(transport, seconds=10)
    assert run.requests() == ["list 0 limit=500", "watch 5", "list 5", "list 5", "watch 30"]
    assert STEP[0] <= transport.gaps[2] <= 2 * STEP[1]


async def test_latest_state_is_listed_until_a_list_succeeds() -> None:
    lists = [listing(version="5"), failure(410, "Gone"), failure(500), failure(500), listing(version="30")]
    transport = scripted(FedStream(None), FedStream(None), lists=[*lists, listing(version="31")])
    run = await reflected(transport, seconds=60)
    assert run.requests()[2:] == [
        "list 5",
        "list newest",
        "list newest limit=500",
        "list newest limit=500",
        "watch 30",
        "list 30",
        "watch 31",
    ]


LIST_FAILURES = {
    "403": failure(403, "Forbidden"),
    "404, the kind does not exist yet": failure(404, "NotFound"),
    "410": failure(410, "Gone"),
    "500 text": failure(500),
    "refused": Transient("no", reason=REFUSED),
}


@pytest.mark.parametrize("reply", LIST_FAILURES.values(), ids=LIST_FAILURES.keys())
async def test_failed_list_backs_off(reply: Reply) -> None:
    transport = scripted(lists=[reply, listing(version="5")])
    run = await reflected(transport, seconds=5)
    assert run.requests() == ["list 0 limit=500", "list 0 limit=500", "watch 5"]
    assert 0.8 <= transport.gaps[0] <= 1.6


async def test_paging_stays_on_for_a_server_without_watch_cache() -> None:
    first, rest = listing(node("a"), version="5", continues="t"), listing(node("b"), version="5")
    transport = scripted(FedStream(None), lists=[first, rest, listing(version="30")])
    run = await reflected(transport, seconds=5)
    assert run.requests()[:4] == ["list 0 limit=500", "list newest limit=500 continue=t", "watch 5", "list 5 limit=500"]
    assert run.store.calls[0] == ("replace", "a,b")


async def test_events_and_bookmarks_advance_the_version() -> None:
    stream = FedStream(event("ADDED", node("a", 6)), event("MODIFIED", node("a", 7)), event("DELETED", node("a", 8)))
    async with reflecting(scripted(stream)) as run:
        stream.feed(bookmark(90), None)
        await asyncio.sleep(0.001)
    assert run.store.calls == [("replace", ""), ("put", "a"), ("put", "a"), ("delete", "a")]
    assert run.store.versions == ["5", "6", "7", "8", "90"]
    assert run.requests()[-1] == "watch 90"


@pytest.mark.parametrize("start", ["0", ""])
async def test_unordered_added_events_do_not_advance_the_version(start: str) -> None:
    stream = FedStream(event("ADDED", node("a", 9)), event("ADDED", node("b", 3)))
    async with reflecting(scripted(stream, lists=[listing(version=start)])) as run:
        assert run.store.versions[-1] == start
        stream.feed(bookmark(4))
        await asyncio.sleep(0.001)
        assert run.store.versions[-1] == "4"
        stream.feed(event("ADDED", node("c", 12)), None)
        await asyncio.sleep(0.001)
    assert run.requests()[-1] == "watch 12"


async def test_silent_watches_are_reopened_within_90_seconds() -> None:
    transport = scripted()
    await reflected(transport, seconds=4 * 3600)
    watches = [query for query in transport.queries if "watch" in query]
    requested = {int(query["timeoutSeconds"]) for query in watches}
    assert len(watches) == len(transport.queries) - 1
    assert max(transport.gaps) <= 90
    assert all(query["allowWatchBookmarks"] == "true" for query in watches)
    assert len(requested) > 20
    assert min(requested) >= 300
    assert max(requested) < 600


async def test_overdue_watch_is_reopened() -> None:
    stream = FedStream()
    transport = scripted(stream)
    async with reflecting(transport) as run:
        requested = int(transport.queries[-1]["timeoutSeconds"])
        for _ in range(14):
            stream.feed(bookmark(5))
            await asyncio.sleep(50)
            if len(run.requests()) > 2:
                break
    assert run.requests()[:3] == ["list 0 limit=500", "watch 5", "watch 5"]
    assert transport.gaps[1] == pytest.approx(requested + 30)


async def test_events_before_a_bad_line_are_applied() -> None:
    stream = FedStream(event("ADDED", node("a", 7)) + b"garbage\n")
    async with reflecting(scripted(stream), seconds=5) as run:
        assert run.store.calls[1] == ("put", "a")
        assert run.requests()[2] == "list 7"


async def test_logs_show_no_response_content(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = FedStream(b"token: hunter2\n" + json.dumps({"type": "ADDED", "object": {"secret": "hunter2"}}).encode())
    await reflected(scripted(stream), seconds=5)
    out = capsys.readouterr()
    assert "undecodable" in out.out + out.err + caplog.text
    assert "hunter2" not in out.out + out.err + caplog.text
