"""Watches: start, selectors, bookmarks, end."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.kinds import define, drop, is_not_found, until, widget
from tests.support.server.raw_client import JsonResponse

pytestmark = pytest.mark.servers


async def watched(api: BareApi, path: str, **query: str) -> list[tuple[str, str]]:
    """Return type and name of the events of a watch that lasts a second."""
    async with api.admin.watch(path, **({"timeoutSeconds": "1"} | query)) as events:
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in await events.rest()]


async def history(api: BareApi) -> tuple[str, str]:
    """Create a history; return the path and the version at which only a and b existed, labelled x."""
    path = api.path("secrets")
    for name in "ab":
        await api.admin.post(path, {"metadata": {"name": name, "labels": {"app": "x"}}})
    version = (await api.admin.get(path)).version
    await api.admin.post(path, {"metadata": {"name": "c", "labels": {"app": "y"}}})
    await api.admin.patch(f"{path}/a", {"metadata": {"labels": {"app": "y"}}})
    await api.admin.patch(f"{path}/c", {"metadata": {"labels": {"app": "x"}}})
    await api.admin.patch(f"{path}/b", {"data": {"k": ""}})
    await api.admin.delete(f"{path}/b")
    return path, version


@pytest.mark.parametrize("begin", [{}, {"resourceVersion": "0"}])
async def test_watch_without_a_version_starts_with_all_objects(api: BareApi, begin: dict[str, str]) -> None:
    path, _ = await history(api)
    await api.admin.get(path)  # brings the cache up to date
    assert await watched(api, path, **begin) == [("ADDED", "a"), ("ADDED", "c")]


@pytest.mark.parametrize(
    ("selection", "events"),
    [
        pytest.param({}, "ADDED c, MODIFIED a, MODIFIED c, MODIFIED b, DELETED b", id="all"),
        pytest.param({"labelSelector": "app=x"}, "DELETED a, ADDED c, MODIFIED b, DELETED b", id="a label"),
        pytest.param({"labelSelector": "app=y"}, "ADDED c, ADDED a, DELETED c", id="label that a gets"),
        pytest.param({"labelSelector": "app!=x"}, "ADDED c, ADDED a, DELETED c", id="another value"),
        pytest.param({"fieldSelector": "metadata.name=c"}, "ADDED c, MODIFIED c", id="one name"),
        pytest.param({"fieldSelector": "metadata.name=c", "labelSelector": "app=x"}, "ADDED c", id="both"),
    ],
)
async def test_watch_from_a_version_shows_later_events(api: BareApi, selection: dict[str, str], events: str) -> None:
    path, version = await history(api)
    expected = [tuple(event.split()) for event in events.split(", ")]
    assert await watched(api, path, resourceVersion=version, **selection) == expected


async def test_object_leaving_the_selection_has_its_last_state(api: BareApi) -> None:
    path, version = await history(api)
    now = (await api.admin.get(f"{path}/a")).version
    async with api.admin.watch(path, resourceVersion=version, labelSelector="app=x") as events:
        left = (await events.next())["object"]
    assert left["metadata"]["labels"] == {"app": "x"}
    assert left["metadata"]["resourceVersion"] == now


async def test_watch_from_a_compacted_version_gets_one_error(api: BareApi) -> None:
    before = (await api.admin.get(api.path("secrets"))).version
    path = await define(api)
    api.storage.compact()
    request = api.admin.request("GET", path, watch="true", resourceVersion=before)
    async with api.transport.open(request) as stream:
        assert stream.status == 200
    async with api.admin.watch(path, resourceVersion=before) as opened:
        (event,) = await opened.rest()
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {before} (")
    await drop(api)


async def test_bookmark_has_only_a_version(api: BareApi) -> None:
    path, _ = await history(api)
    async with api.admin.watch(path, resourceVersion="0", allowWatchBookmarks="true", timeoutSeconds="4") as events:
        found = [event["object"] for event in await events.rest() if event["type"] == "BOOKMARK"]
    assert found
    for bookmark in found:
        assert (bookmark["kind"], bookmark["apiVersion"]) == ("Secret", "v1")
        # A server that streams lists marks the end of the first one.
        assert set(bookmark["metadata"]) - {"annotations"} == {"resourceVersion"}


async def test_watch_ends_when_its_kind_is_deleted(api: BareApi) -> None:
    path = await define(api)
    created = await api.admin.post(path, widget(api, "a"))
    async with api.admin.watch(path, resourceVersion=created.version, timeoutSeconds="30") as events:
        await drop(api)
        async with asyncio.timeout(20):
            seen = await events.rest()
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [("DELETED", "a")]
    missing: JsonResponse = await until(api, path, is_not_found)
    assert (missing.body, missing.headers["content-type"]) == (b"404 page not found\n", "text/plain; charset=utf-8")
