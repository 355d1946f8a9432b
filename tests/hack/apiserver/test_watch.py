"""Watches: start, history, bookmarks, end, cleanup."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import WIDGETS, widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.server.raw_client import RawClient

MAPS = "/api/v1/namespaces/default/configmaps"


async def _fill(wire: RawClient, names: str) -> str:
    version = ""
    for name in names:
        version = (await wire.post(MAPS, {"metadata": {"name": name}})).version
    return version


async def test_history_keeps_recent_and_last_hundred_events(wire: RawClient) -> None:
    first = await _fill(wire, "a")
    for number in range(150):
        await wire.patch(f"{MAPS}/a", {"data": {"n": str(number)}})
    async with wire.watch(MAPS, resourceVersion=first) as events:
        assert (await events.next())["type"] == "MODIFIED"
    await asyncio.sleep(80)
    recent = (await wire.get(MAPS)).version
    for number in range(80):
        await wire.patch(f"{MAPS}/a", {"data": {"m": str(number)}})
    async with wire.watch(MAPS, resourceVersion=first) as events:
        assert (await events.next())["type"] == "ERROR"
    async with wire.watch(MAPS, resourceVersion=recent) as events:
        assert (await events.next())["type"] == "MODIFIED"


async def test_slow_reader_gets_an_error_event(server: ApiServer, wire: RawClient) -> None:
    version = await _fill(wire, "a")
    async with wire.watch(MAPS, resourceVersion=version) as events:
        await _fill(wire, "b")
        server.compact()
        (event,) = await events.rest()
    assert event["object"]["code"] == 410


async def test_bookmarks_are_sent_each_minute_and_at_the_end(server: ApiServer, wire: RawClient) -> None:
    version = await _fill(wire, "a")
    loop = asyncio.get_running_loop()
    begin, seen = loop.time(), []
    query = {"resourceVersion": version, "timeoutSeconds": "150", "allowWatchBookmarks": "true"}
    async with wire.watch(MAPS, **query) as events:
        while True:
            try:
                event = await events.next()
            except StopAsyncIteration:
                break
            seen.append((event["type"], round(loop.time() - begin), event["object"]))
    assert [(kind, when) for kind, when, _ in seen] == [("BOOKMARK", 60), ("BOOKMARK", 120), ("BOOKMARK", 148)]
    assert round(loop.time() - begin) == 150
    mark = seen[0][2]
    assert (mark["kind"], mark["apiVersion"]) == ("ConfigMap", "v1")
    assert mark["metadata"]["resourceVersion"] == str(server.storage.revision)


async def test_watch_without_timeout_ends_within_an_hour(wire: RawClient) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    async with wire.watch(MAPS, allowWatchBookmarks="true") as events:
        await events.rest()
    assert 1800 <= loop.time() - begin < 3600


async def test_watch_is_limited_to_its_namespace(wire: RawClient) -> None:
    async with wire.watch(MAPS) as events:
        await wire.post(MAPS.replace("default", "kube-system"), {"metadata": {"name": "x"}})
        await _fill(wire, "a")
        assert await events.take(1) == [("ADDED", "a")]


async def test_closed_watch_leaves_no_tasks(server: ApiServer, wire: RawClient) -> None:
    tasks = len(asyncio.all_tasks())
    async with wire.watch(MAPS) as events:
        reading = asyncio.create_task(events.next())
        await asyncio.sleep(1)
        assert server.storage.collection("configmaps").wakers
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert not server.storage.collection("configmaps").wakers
    assert len(asyncio.all_tasks()) == tasks


async def test_closing_the_server_ends_the_watch(server: ApiServer, wire: RawClient) -> None:
    async with wire.watch(MAPS) as events:
        asyncio.get_running_loop().call_later(5, server.close)
        assert await events.rest() == []


async def _random_writes(wire: RawClient, random: Random, steps: int) -> None:
    for step in range(steps):
        name = f"w-{random.randrange(12)}"
        action = random.choice(("create", "patch", "label", "delete"))
        if action == "create":
            await wire.post(WIDGETS, widget(name))
        elif action == "patch":
            await wire.patch(f"{WIDGETS}/{name}", {"spec": {"step": step}})
        elif action == "label":
            await wire.patch(f"{WIDGETS}/{name}", {"metadata": {"labels": {"on": random.choice(("yes", "no"))}}})
        else:
            await wire.delete(f"{WIDGETS}/{name}")
        if random.random() < 0.3:
            await asyncio.sleep(random.random())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("selector", ["", "on=yes"], ids=["all", "selected"])
async def test_interrupted_watches_match_a_final_list(wire: RawClient, seed: int, selector: str) -> None:
    """List, then watch with random interruptions; the cache ends equal to a list."""
    random = Random(seed)
    cached: dict[str, Any] = {}
    listed = await wire.get(WIDGETS, labelSelector=selector)
    version = listed.version
    writing = asyncio.create_task(_random_writes(wire, random, 150))
    while not writing.done() or version != (await wire.get(WIDGETS)).version:
        query = {"resourceVersion": version, "timeoutSeconds": str(random.randrange(1, 4)), "labelSelector": selector}
        async with wire.watch(WIDGETS, allowWatchBookmarks="true", **query) as events:
            for event in await events.rest():
                metadata = event["object"]["metadata"]
                assert int(metadata["resourceVersion"]) >= int(version)
                version = metadata["resourceVersion"]
                if event["type"] == "DELETED":
                    del cached[metadata["name"]]
                elif event["type"] != "BOOKMARK":
                    assert (event["type"] == "MODIFIED") == (metadata["name"] in cached)
                    cached[metadata["name"]] = event["object"]
    final = await wire.get(WIDGETS, labelSelector=selector)
    assert sorted(cached) == final.names
    assert [cached[name] for name in final.names] == final.body["items"]
