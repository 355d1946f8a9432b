from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kube_server import FedStream, ScriptedTransport, bookmark, event, listing, node
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.kinds import NODES
from upgrade_manager.kube.objects import name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.store import Change


@asynccontextmanager
async def running(transport: ScriptedTransport, **options: Any) -> AsyncIterator[Informer]:
    random = Random(1)
    client = Client(transport, user_agent="test", random=random)
    informer = Informer(client, NODES, random=random, **options)
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert transport.open_streams == 0


async def test_the_store_follows_the_list_and_the_watch() -> None:
    transport = ScriptedTransport()
    stream = FedStream()
    transport.lists.append(listing(node("a", 1), node("b", 2), version="5"))
    transport.watches.append(stream)
    told: list[Change] = []
    async with running(transport, handlers=[told.append]) as informer:
        await informer.synced()
        assert [name(obj) for obj in informer.store.list()] == ["a", "b"]
        stream.feed(event("ADDED", node("c", 6)), event("MODIFIED", node("a", 7)), event("DELETED", node("b", 8)))
        stream.feed(bookmark(20))
        assert await informer.observed("20")
        assert [name(obj) for obj in informer.store.list()] == ["a", "c"]
    assert [(change.kind.value, name(change.obj), change.initial) for change in told] == [
        ("added", "a", True),
        ("added", "b", True),
        ("added", "c", False),
        ("updated", "a", False),
        ("deleted", "b", False),
    ]
    first, second = transport.asked
    assert first == {"resourceVersion": "0", "limit": "500"}
    assert (second["watch"], second["allowWatchBookmarks"], second["resourceVersion"]) == ("1", "true", "5")


async def test_a_watch_that_ends_is_reopened_where_it_ended() -> None:
    transport = ScriptedTransport()
    transport.lists.append(listing(version="5"))
    transport.watches.append(FedStream(event("ADDED", node("a", 9)), None))
    async with running(transport) as informer:
        assert await informer.observed("9")
        await asyncio.sleep(0.1)
    assert [query["resourceVersion"] for query in transport.asked] == ["0", "5", "9"]
