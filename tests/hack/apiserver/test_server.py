"""The life of an object, request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import make_server
from tests.support.wire import Wire

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> ApiServer:
    return make_server()


@pytest.fixture
async def wire(server: ApiServer) -> Wire:
    return Wire(server)


async def test_an_object_is_created_read_changed_and_deleted(wire: Wire) -> None:
    created = await wire.post(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    assert created.status == 201
    assert created.body["kind"] == "ConfigMap"
    assert (await wire.get(f"{MAPS}/a")).body == created.body
    patched = await wire.patch(f"{MAPS}/a", {"data": {"y": "2", "x": None}})
    assert patched.body["data"] == {"y": "2"}
    assert int(patched.version) > int(created.version)
    assert (await wire.delete(f"{MAPS}/a")).body["status"] == "Success"
    assert (await wire.get(f"{MAPS}/a")).status == 404


async def test_a_watch_sees_what_happens(wire: Wire) -> None:
    await wire.post(MAPS, {"metadata": {"name": "a"}})
    async with wire.watch(MAPS) as events:
        assert await events.take(1) == [("ADDED", "a")]
        await wire.post(MAPS, {"metadata": {"name": "b"}})
        await wire.patch(f"{MAPS}/a", {"data": {"k": "v"}})
        await wire.delete(f"{MAPS}/b")
        assert await events.take(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
