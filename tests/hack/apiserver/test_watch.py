"""Watches: start, history, bookmarks, end, cleanup."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import WIDGETS, widget

if TYPE_CHECKING:
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
