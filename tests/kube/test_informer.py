from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.server.kube_server import (
    FedStream,
    Reply,
    ScriptedTransport,
    background,
    bookmark,
    event,
    failure,
    initial_end,
    listing,
    node,
    reset,
    status_object,
    unsupported,
)
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.objects import Object, name
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES
from upgrade_manager.kube.store import Change, ChangeKind
from upgrade_manager.kube.transport import Request


@asynccontextmanager
async def running(transport: ScriptedTransport, *, streaming: bool = False, **options: Any) -> AsyncIterator[Informer]:
    """Run an informer; the server has no streaming lists by default."""
    random = Random(1)
    client = Client(transport, user_agent="test", random=random)
    if not streaming:
        client.watch_list_support.mark_unsupported()
    informer = Informer(client, Selection(resource=NODES), random=random, **options)
    async with background(informer.run()):
        yield informer
    assert transport.open_streams == 0


async def test_store_follows_the_list_and_the_watch() -> None:
    stream = FedStream()
    transport = ScriptedTransport(lists=[listing(node("a", 1), node("b", 2), version="5")], watches=[stream])
    changes: list[Change] = []
    async with running(transport, handlers=[changes.append]) as informer:
        await informer.wait_for_sync()
        assert [name(obj) for obj in informer.store.list()] == ["a", "b"]
        stream.feed(event("ADDED", node("c", 6)), event("MODIFIED", node("a", 7)), event("DELETED", node("b", 8)))
        stream.feed(bookmark(20))
        assert await informer.wait_for_version("20")
        assert [name(obj) for obj in informer.store.list()] == ["a", "c"]
    seen = [f"{change.kind.value} {name(change.obj)}" for change in changes]
    assert seen == ["added a", "added b", "added c", "updated a", "deleted b"]
    first, second = transport.queries
    assert first == {"resourceVersion": "0", "limit": "500"}
    assert (second["watch"], second["allowWatchBookmarks"], second["resourceVersion"]) == ("1", "true", "5")


async def test_relist_is_atomic_and_notifies_deletions_first() -> None:
    transport = ScriptedTransport(
        lists=[listing(node("a", 1), node("b", 2), version="5"), listing(node("c", 8), version="9")],
        watches=[FedStream(None)],
    )
    seen: list[tuple[str, str, list[str]]] = []

    def observe(change: Change) -> None:
        names = [name(obj) for obj in informer.store.list()]
        seen.append((change.kind.value, name(change.obj), names))

    async with running(transport, handlers=[observe]) as informer:
        assert not informer.has_synced
        assert await informer.wait_for_version("9")
        assert informer.has_synced
    assert seen == [
        ("added", "a", ["a", "b"]),
        ("added", "b", ["a", "b"]),
        ("deleted", "a", ["c"]),
        ("deleted", "b", ["c"]),
        ("added", "c", ["c"]),
    ]


async def test_last_error_is_set_until_a_list_succeeds() -> None:
    transport = ScriptedTransport(
        lists=[failure(403, "Forbidden"), listing(node("a", 1), version="5")], watches=[FedStream()]
    )
    async with running(transport) as informer:
        await asyncio.sleep(0.1)
        assert "list nodes" in informer.last_error
        await informer.wait_for_sync()
        assert informer.last_error == ""


async def test_informer_fails_until_a_watch_is_open() -> None:
    stream = FedStream()
    transport = ScriptedTransport(
        lists=[listing(version="5"), *[listing(version="6")] * 20], watches=[failure(403, "Forbidden")] * 3
    )
    transport.watches.append(stream)
    async with running(transport) as informer:
        await asyncio.sleep(1)
        assert informer.has_synced
        assert informer.failing_for == pytest.approx(1, abs=0.1)
        assert informer.following_for == 0
        while informer.failing_for:
            failing_for = informer.failing_for
            await asyncio.sleep(0.1)
        assert failing_for > 0.8 + 1.6 + 3.2
        assert transport.open_streams == 1


async def test_informer_follows_while_a_watch_is_open() -> None:
    first, second = FedStream(), FedStream()
    transport = ScriptedTransport(lists=[listing(version="5")], watches=[first, second])
    async with running(transport) as informer:
        await asyncio.sleep(10)
        assert informer.following_for == pytest.approx(10, abs=0.1)
        first.feed(None)
        await asyncio.sleep(0.01)
        assert informer.following_for < 0.1
        await asyncio.sleep(5)
        assert informer.following_for == pytest.approx(5, abs=0.1)


async def test_wait_for_version_ends_at_the_version_or_the_timeout() -> None:
    stream = FedStream()
    transport = ScriptedTransport(lists=[listing(version="5")], watches=[stream])
    async with running(transport) as informer:
        await informer.wait_for_sync()
        assert len(informer.store) == 0
        assert await informer.wait_for_version("5")
        assert await informer.wait_for_version("3")
        assert await informer.wait_for_version("no number")
        started = asyncio.get_running_loop().time()
        assert not await informer.wait_for_version("7")
        assert asyncio.get_running_loop().time() - started == 5
        waits = [asyncio.create_task(informer.wait_for_version(version)) for version in ("7", "7", "8")]
        await asyncio.sleep(1)
        stream.feed(event("ADDED", node("a", 6)), event("MODIFIED", node("a", 7)))
        assert [await wait for wait in waits] == [True, True, False]
        assert informer._waiters == []


async def test_wait_for_version_requires_the_first_list() -> None:
    transport = ScriptedTransport(lists=[2.0, listing(version="5")])
    async with running(transport) as informer:
        assert not await informer.wait_for_version("", timeout=1)
        assert await informer.wait_for_version("", timeout=5)


async def test_failing_handler_does_not_affect_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: Change) -> None:
        raise RuntimeError("broken handler")

    transport = ScriptedTransport(lists=[listing(node("a", 1), node("b", 2), version="5")])
    changes: list[Change] = []
    async with running(transport, handlers=[fail, changes.append]) as informer:
        await informer.wait_for_sync()
    assert [name(change.obj) for change in changes] == ["a", "b"]
    assert "handler failed" in capsys.readouterr().out


async def test_objects_are_transformed_before_they_are_stored() -> None:
    fields = {"managedFields": [{"manager": "kubelet"}]}
    listed, watched = node("a", 1), node("b", 6)
    listed["metadata"] |= fields
    watched["metadata"] |= fields
    transport = ScriptedTransport(lists=[listing(listed, version="5")], watches=[FedStream(event("ADDED", watched))])
    async with running(transport) as informer:
        assert await informer.wait_for_version("6")
        assert informer.store.list() == [node("a", 1), node("b", 6)]


async def test_initial_events_are_stored_when_they_are_complete() -> None:
    transformed: list[str] = []

    def transform(obj: Object) -> Object:
        transformed.append(name(obj))
        return {**obj, "seen": True}

    stream = FedStream(event("ADDED", node("a", 1)), event("ADDED", node("b", 2)))
    transport = ScriptedTransport(streams=[stream])
    changes: list[Change] = []
    async with running(transport, streaming=True, transform=transform, handlers=[changes.append]) as informer:
        await asyncio.sleep(1)
        assert transformed == ["a", "b"]
        assert not informer.has_synced
        assert not await informer.wait_for_version("2", timeout=1)
        assert (len(informer.store), changes) == (0, [])
        stream.feed(initial_end(7) + event("ADDED", node("c", 8)))
        await informer.wait_for_sync()
        assert informer.store.resource_version == "8"
        assert all(obj["seen"] for obj in informer.store.list())
    assert transformed == ["a", "b", "c"]
    assert [name(change.obj) for change in changes] == ["a", "b", "c"]
    assert len(transport.requests) == 1


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming list", "list"])
async def test_error_in_a_transform_is_raised(*, streaming: bool) -> None:
    transport = ScriptedTransport(lists=[listing(node("a", 1), version="5")])
    if streaming:
        transport.streams.append(FedStream(event("ADDED", node("a", 1))))
    random = Random(1)
    client = Client(transport, user_agent="test", random=random)
    informer = Informer(client, Selection(resource=NODES), random=random, transform=lambda obj: obj["nothing"])
    with pytest.raises(KeyError, match="nothing"):
        await informer.run()


async def test_restarts_and_progress_are_reported() -> None:
    transport = ScriptedTransport(
        lists=[listing(node("a", 1), node("b", 2), version="5")],
        watches=[FedStream(event("DELETED", node("a", 6)), None)],
    )
    calls: list[tuple[object, ...]] = []

    def record(*call: object) -> None:
        calls.append(call)

    metrics = SimpleNamespace(on_restart=record, on_progress=record, on_stop=record)
    async with running(transport, name="a", metrics=metrics) as informer:
        assert await informer.wait_for_version("6")
    name = "a /api/v1/nodes"
    assert calls == [
        ("nodes", name, 0, 2),
        ("nodes", "list", "start"),
        ("nodes", name, 1, 1),
        ("nodes", "watch", "quick"),
        ("nodes", name),
    ]


def test_selection_is_shown_as_its_path_and_selectors() -> None:
    assert str(Selection(resource=NODES)) == "/api/v1/nodes"
    some = Selection(resource=NODES, label_selector="a=b,c", field_selector="metadata.name=x")
    assert str(some) == "/api/v1/nodes?labelSelector=a=b,c&fieldSelector=metadata.name=x"


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming lists", "lists"])
async def test_store_converges_after_random_writes_and_faults(*, streaming: bool) -> None:
    """A server with a bounded history, closed watches and broken connections."""
    for seed in range(15):
        random = Random(seed)
        server = SmallServer(random, streaming=streaming)
        transport = ScriptedTransport(server.respond)
        replayed: dict[str, str] = {}

        def replay(change: Change, replayed: dict[str, str] = replayed) -> None:
            if change.kind is ChangeKind.DELETED:
                del replayed[name(change.obj)]
            elif change.kind is ChangeKind.ADDED:
                assert name(change.obj) not in replayed
                replayed[name(change.obj)] = change.obj["metadata"]["uid"]
            else:
                assert replayed[name(change.obj)] == change.obj["metadata"]["uid"]

        async with running(transport, handlers=[replay], streaming=True) as informer:
            for _ in range(150):
                server.write()
                await asyncio.sleep(random.choice([0, 0, 0.1, 3, 40]))
            server.is_faulty = False
            await asyncio.sleep(300)
            assert informer.store.list() == server.objects()
            assert replayed == {name(obj): obj["metadata"]["uid"] for obj in server.objects()}
        assert len(transport.requests) < 1.3 * asyncio.get_running_loop().time()


class SmallServer:
    """Writes to five names at random, keeps ten events, and fails one request in three."""

    def __init__(self, random: Random, *, streaming: bool) -> None:
        self.is_faulty = True
        self._streaming = streaming
        self._random = random
        self._version = 10
        self._nodes: dict[str, Object] = {}
        self._history: list[tuple[int, bytes]] = []
        self._streams: list[FedStream] = []

    def objects(self) -> list[Object]:
        return [self._nodes[key] for key in sorted(self._nodes)]

    def write(self) -> None:
        self._version += 1
        key = self._random.choice("abcde")
        if key not in self._nodes:
            self._nodes[key] = node(key, self._version, uid=f"uid-{self._version}")
            self._send("ADDED", self._nodes[key])
        elif self._random.random() < 0.5:
            self._nodes[key] = node(key, self._version, uid=self._nodes[key]["metadata"]["uid"])
            self._send("MODIFIED", self._nodes[key])
        else:
            deleted = self._nodes.pop(key)
            self._send("DELETED", node(key, self._version, uid=deleted["metadata"]["uid"]))

    def _send(self, type_: str, obj: Object) -> None:
        line = event(type_, obj)
        self._history = [*self._history, (self._version, line)][-10:]
        for stream in self._streams:
            stream.feed(line)

    def respond(self, request: Request) -> Reply:
        query = dict(request.query)
        fault = self._random.random() if self.is_faulty else 1.0
        if fault < 0.1:
            return reset()
        if fault < 0.2:
            return failure(500)
        if "watch" not in query:
            return listing(*self.objects(), version=str(self._version))
        if "sendInitialEvents" not in query:
            return self._watch(int(query["resourceVersion"]), fault)
        return self._stream(fault) if self._streaming else unsupported()

    def _watch(self, since: int, fault: float) -> FedStream:
        if self._history and since < self._history[0][0] - 1:
            return FedStream(event("ERROR", status_object(410, "Expired")), None)
        return self._live([line for version, line in self._history if version > since], fault)

    def _stream(self, fault: float) -> FedStream:
        """Send the initial events, with or without the final bookmark."""
        lines = [event("ADDED", obj) for obj in self.objects()]
        whole = [*lines, initial_end(self._version)]
        return self._live(lines if fault < 0.3 else whole, fault)

    def _live(self, lines: list[bytes], fault: float) -> FedStream:
        stream = FedStream(*lines)
        if fault < 0.4:
            stream.feed(self._random.choice([None, reset(), b"garbage\n", b"half an ev"]))
        else:
            for other in self._streams:
                other.feed(None)
            self._streams = [stream]
        return stream
