from __future__ import annotations

import asyncio
from typing import Self

import pytest

from tests.support.server.kube_server import FedStream, event, listing, node, reset
from tests.support.server.reflecting import reflecting, scripted
from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import TIMED_OUT, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import SECRETS
from upgrade_manager.kube.transport import Stream
from upgrade_manager.kube.watch import StreamWatcher


def watcher_of(stream: Stream, *, timeout: int = 300) -> StreamWatcher:
    return StreamWatcher(stream, timeout=timeout)


async def test_broken_stream_raises_after_its_last_event() -> None:
    batches = watcher_of(FedStream(event("ADDED", node("a")), reset()))
    assert len(await anext(batches)) == 1
    with pytest.raises(Transient, match="broke"):
        await anext(batches)


async def test_iteration_stops_and_resumes_with_unread_events() -> None:
    lines = [event("ADDED", node(called)) for called in "abc"]
    watcher = watcher_of(FedStream(b"".join(lines) + b"rubbish\n"))
    async for events in watcher:
        watcher.unread(events[1:])
        break
    assert [entry.object["metadata"]["name"] for entry in await anext(watcher)] == ["b", "c"]
    with pytest.raises(Undecodable):
        await anext(watcher)
    assert watcher.received == 3


@pytest.mark.parametrize(("requested", "after"), [(300, 80), (20, 50)], ids=["silence", "the deadline"])
async def test_silent_or_overdue_stream_times_out(requested: int, after: float) -> None:
    with pytest.raises(Transient) as caught:
        await anext(watcher_of(FedStream(), timeout=requested))
    assert caught.value.reason == TIMED_OUT
    assert asyncio.get_running_loop().time() == after


async def test_line_that_never_ends_times_out_at_the_deadline() -> None:
    stream = FedStream()
    watcher = watcher_of(stream, timeout=100)

    async def drip() -> None:
        while True:
            stream.feed(b"x")
            await asyncio.sleep(10)

    task = asyncio.create_task(drip())
    with pytest.raises(Transient):
        await anext(watcher)
    task.cancel()
    assert asyncio.get_running_loop().time() == 130


async def test_stream_without_aclose_is_accepted() -> None:
    class Pieces:
        status = 200
        headers: dict[str, str] = {}  # noqa: RUF012  # the protocol's type

        def chunks(self) -> Self:
            return self

        def __aiter__(self) -> Self:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

    watcher = watcher_of(Pieces())
    assert [batch async for batch in watcher] == []
    await watcher.aclose()


UNEXPECTED = {
    "another kind": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "resourceVersion": "9"}},
    "a Table": {"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {"resourceVersion": "9"}},
    "no metadata": {"apiVersion": "v1", "kind": "Node"},
    "no resourceVersion": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}},
}


@pytest.mark.parametrize("obj", UNEXPECTED.values(), ids=UNEXPECTED.keys())
async def test_unexpected_object_is_skipped(obj: Object) -> None:
    stream = FedStream(event("ADDED", obj), event("ADDED", node("a", 7)))
    async with reflecting(scripted(stream)) as run:
        assert run.store.calls == [("replace", ""), ("put", "a")]
        assert run.store.versions == ["5", "5", "7"]
        assert len(run.requests()) == 2


async def test_unknown_event_type_only_advances_the_version() -> None:
    async with reflecting(scripted(FedStream(event("SPARKLED", node("a", 7))))) as run:
        assert run.store.calls == [("replace", "")]
        assert run.store.versions == ["5", "7"]


async def test_whole_objects_in_a_metadata_watch_are_rejected() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "resourceVersion": "7"},
        "data": {"k": "v"},
    }
    selection = Selection(resource=SECRETS, metadata_only=True)
    transport = scripted(FedStream(event("ADDED", secret)))
    async with reflecting(transport, seconds=5, selection=selection) as run:
        assert run.store.calls == [("replace", "")] * 2
        assert run.watch_endings == ["error"]
        assert transport.requests[0].headers["accept"].startswith("application/json;as=PartialObjectMetadataList;")
        assert transport.requests[1].headers["accept"].startswith("application/json;as=PartialObjectMetadata;")
    transport = scripted(lists=[listing(secret), listing()])
    async with reflecting(transport, seconds=5, selection=selection) as run:
        assert run.store.calls == [("replace", "")]


async def test_metadata_is_stored_under_the_kind_of_its_object() -> None:
    kept: list[Object] = []
    meta = {"name": "s", "resourceVersion": "7"}
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta}
    transport = scripted()
    selection = Selection(resource=SECRETS, metadata_only=True, namespace="fleet-local")
    stream = FedStream()
    transport.watches.append(stream)
    async with reflecting(transport, selection=selection) as run:
        run.store.put = kept.append  # type: ignore[assignment,method-assign]
        stream.feed(event("ADDED", partial))
        await asyncio.sleep(0.001)
    assert kept == [{"apiVersion": "v1", "kind": "Secret", "metadata": meta}]
    assert transport.requests[0].path == "/api/v1/namespaces/fleet-local/secrets"
