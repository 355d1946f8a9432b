"""Paths that somebody else answers before an API server, which is asked who may have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.apiserver.handlers import Handlers
from hack.cluster.impersonation import ActingAs
from hack.control_plane.reviewed import Reviewed
from tests.support.apiserver import make_server
from tests.support.rights import grant
from tests.support.wire import Wire
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.server import ApiServer

STATS = "/api/v1/nodes/n/proxy/stats/summary"


async def answer(request: Request, values: Mapping[str, str]) -> Response:
    return Response(status=200, body=f"{request.method} {sorted(values.items())}".encode())


@pytest.fixture
async def server() -> ApiServer:
    return make_server()


@pytest.fixture
async def reviewed(server: ApiServer) -> Reviewed:
    handlers = Handlers()
    handlers.register("/api/v1/nodes/{name}/proxy/{path:rest}", answer)
    return Reviewed(server, handlers=handlers)


async def test_they_stand_before_any_server(reviewed: Reviewed) -> None:
    wire = Wire(reviewed)
    said = b"GET [('name', 'n'), ('path', 'stats/summary')]"
    assert (await wire.get(STATS)).body == said
    assert (await wire.get("/readyz")).body == b"ok"
    async with wire.transport.open(Request(method="GET", path=STATS)) as stream:
        assert [chunk async for chunk in stream.chunks()] == [said]
    async with wire.watch("/api/v1/namespaces") as events:
        assert await events.take(1) == [("ADDED", "default")]


async def test_whom_the_server_would_refuse_they_refuse_in_its_words(reviewed: Reviewed, server: ApiServer) -> None:
    jane = Wire(ActingAs(reviewed, user="jane"))
    assert (await jane.get(STATS)).body == (await Wire(ActingAs(server, user="jane")).get(STATS)).body
    rule = {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}
    await grant(Wire(server), "jane", rule)
    assert (await jane.get(STATS)).status == 200


async def test_whom_the_server_does_not_know_they_do_not_answer_either(reviewed: Reviewed) -> None:
    assert (await Wire(reviewed, headers={"authorization": "Bearer nosuch"}).get(STATS)).status == 401
