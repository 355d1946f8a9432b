"""Lists: order, old versions, pages and tokens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import WIDGETS, widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.raw_client import RawClient

MAPS = "/api/v1/namespaces/default/configmaps"


async def _fill(wire: RawClient, names: str = "cab") -> None:
    for name in names:
        assert (await wire.post(WIDGETS, widget(name))).status == 201


async def test_list_is_sorted_by_name(server: ApiServer, wire: RawClient) -> None:
    await _fill(wire)
    answer = await wire.get(WIDGETS)
    assert answer.names == ["a", "b", "c"]
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("WidgetList", "example.io/v1")
    assert answer.body["metadata"] == {"resourceVersion": str(server.storage.revision)}


async def test_only_items_of_custom_kinds_have_a_kind(wire: RawClient) -> None:
    await _fill(wire, "a")
    await wire.post(MAPS, {"metadata": {"name": "a"}})
    assert (await wire.get(WIDGETS)).body["items"][0]["kind"] == "Widget"
    assert (await wire.get(f"{MAPS}?", fieldSelector="metadata.name=a")).status == 404, "a path is a path"
    item = (await wire.get(MAPS, fieldSelector="metadata.name=a")).body["items"][0]
    assert "kind" not in item
    assert "apiVersion" not in item
    assert item["metadata"]["name"] == "a"


async def test_pages_show_one_version(wire: RawClient) -> None:
    await _fill(wire, "abcde")
    first = await wire.get(WIDGETS, limit="2")
    assert (first.names, first.body["metadata"]["remainingItemCount"]) == (["a", "b"], 3)
    await wire.delete(f"{WIDGETS}/c")
    await wire.post(WIDGETS, widget("bb"))
    second = await wire.get(WIDGETS, limit="2", **{"continue": first.body["metadata"]["continue"]})
    third = await wire.get(WIDGETS, limit="2", **{"continue": second.body["metadata"]["continue"]})
    assert (second.names, third.names) == (["c", "d"], ["e"])
    assert first.version == second.version == third.version
    assert "continue" not in third.body["metadata"]


@pytest.mark.parametrize("how", ["time", "compaction"])
async def test_expired_token_offers_the_current_rest(server: ApiServer, wire: RawClient, how: str) -> None:
    await _fill(wire, "abc")
    first = await wire.get(WIDGETS, limit="1")
    await wire.delete(f"{WIDGETS}/b")
    if how == "time":
        await asyncio.sleep(301)
    else:
        server.compact()
    expired = await wire.get(WIDGETS, limit="1", **{"continue": first.body["metadata"]["continue"]})
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    rest = await wire.get(WIDGETS, **{"continue": expired.body["metadata"]["continue"]})
    assert rest.names == ["c"]


async def test_exact_version_lists_the_old_state(server: ApiServer, wire: RawClient) -> None:
    await _fill(wire, "ab")
    then = await wire.get(WIDGETS)
    await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})
    await wire.delete(f"{WIDGETS}/b")
    await _fill(wire, "c")
    past = await wire.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="Exact")
    assert past.body == then.body
    newer = await wire.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="NotOlderThan")
    assert newer.names == ["a", "c"]
    limited = await wire.get(WIDGETS, resourceVersion=then.version, limit="1")
    assert limited.names == ["a"]
    assert limited.version == then.version, "a limit makes an old version exact"
    server.compact()
    expired = await wire.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="Exact")
    assert (expired.status, expired.body["reason"]) == (410, "Expired")


async def test_future_version_is_awaited_then_too_large(server: ApiServer, wire: RawClient) -> None:
    ahead = server.storage.revision + 1
    waiting = asyncio.create_task(wire.get(WIDGETS, resourceVersion=str(ahead)))
    await asyncio.sleep(1)
    await _fill(wire, "a")
    assert (await waiting).names == ["a"]
    begin = asyncio.get_running_loop().time()
    refused = await wire.get(WIDGETS, resourceVersion=str(ahead + 10))
    assert asyncio.get_running_loop().time() - begin == pytest.approx(3)
    assert (refused.status, refused.body["reason"]) == (504, "Timeout")
    assert refused.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert refused.headers["retry-after"] == "1"
    assert "Too large resource version" in refused.body["message"]


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        pytest.param({"resourceVersionMatch": "Exact"}, 422, "unless resourceVersion is provided", id="no version"),
        pytest.param(
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            422,
            'for resourceVersion "0"',
            id="exact version 0",
        ),
        pytest.param(
            {"resourceVersionMatch": "Newest", "resourceVersion": "5"}, 422, "Unsupported value", id="unknown match"
        ),
        pytest.param(
            {"resourceVersionMatch": "Exact", "resourceVersion": "5", "continue": "x"},
            422,
            "when continue is provided",
            id="match and token",
        ),
        pytest.param({"sendInitialEvents": "true"}, 422, "forbidden for list", id="streaming list"),
        pytest.param(
            {"sendInitialEvents": "true", "watch": "1", "resourceVersionMatch": "NotOlderThan"},
            422,
            "WatchList feature gate",
            id="streaming list over a watch",
        ),
        pytest.param(
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "5", "watch": "1"},
            422,
            "forbidden for watch",
            id="match in a watch",
        ),
        pytest.param({"resourceVersion": "x"}, 400, "invalid", id="version not a number"),
        pytest.param({"limit": "x"}, 400, "invalid", id="limit not a number"),
        pytest.param({"continue": "!"}, 400, "continue key is not valid", id="invalid token"),
        pytest.param({"fieldSelector": "spec.x=1"}, 400, "not supported", id="unsupported field"),
        pytest.param({"labelSelector": "a b"}, 400, "unable to parse", id="invalid selector"),
    ],
)
async def test_invalid_list_option_is_refused(wire: RawClient, query: dict[str, str], status: int, text: str) -> None:
    refused = await wire.get(WIDGETS, **query)
    assert refused.status == status
    assert text in refused.body["message"]
