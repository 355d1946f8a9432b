"""Lists: order, old versions, pages and tokens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.server.apiserver import WIDGETS, widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.server.raw_client import RawClient

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
    item = (await wire.get(MAPS, fieldSelector="metadata.name=a")).body["items"][0]
    assert "kind" not in item
    assert "apiVersion" not in item
    assert item["metadata"]["name"] == "a"


@pytest.mark.parametrize("how", ["time", "compaction"])
async def test_old_token_is_expired(server: ApiServer, wire: RawClient, how: str) -> None:
    await _fill(wire, "abc")
    first = await wire.get(WIDGETS, limit="1")
    if how == "time":
        await asyncio.sleep(301)
    else:
        server.compact()
    expired = await wire.get(WIDGETS, limit="1", **{"continue": first.body["metadata"]["continue"]})
    assert (expired.status, expired.body["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        pytest.param({"resourceVersionMatch": "Exact", "resourceVersion": "5"}, 422, "not offered", id="exact version"),
        pytest.param({"limit": "1", "resourceVersion": "5"}, 422, "not offered", id="page of an old version"),
        pytest.param({"sendInitialEvents": "true"}, 422, "forbidden for list", id="streaming list"),
        pytest.param(
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "5", "watch": "1"},
            422,
            "not offered",
            id="match in a watch",
        ),
        pytest.param({"limit": "x"}, 400, "invalid", id="limit not a number"),
        pytest.param({"continue": "!"}, 400, "invalid continue token", id="invalid token"),
    ],
)
async def test_invalid_list_option_is_refused(wire: RawClient, query: dict[str, str], status: int, text: str) -> None:
    refused = await wire.get(WIDGETS, **query)
    assert refused.status == status
    assert text in refused.body["message"]
