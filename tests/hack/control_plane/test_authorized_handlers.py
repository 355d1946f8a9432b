"""Paths that are served in front of an API server, with its authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.apiserver.handlers import Handlers
from hack.cluster.impersonation import ActingAs
from hack.control_plane.authorized_handlers import AuthorizedHandlers
from tests.support.accounts import grant
from tests.support.apiserver import make_server
from tests.support.raw_client import RawClient
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.server import ApiServer

STATS = "/api/v1/nodes/n/proxy/stats/summary"


async def respond(request: Request, values: Mapping[str, str]) -> Response:
    return Response(status=200, body=f"{request.method} {sorted(values.items())}".encode())


@pytest.fixture
async def server() -> ApiServer:
    return make_server()


@pytest.fixture
async def transport(server: ApiServer) -> AuthorizedHandlers:
    handlers = Handlers()
    handlers.register("/api/v1/nodes/{name}/proxy/{path:rest}", respond)
    return AuthorizedHandlers(server, handlers=handlers)


async def test_handled_paths_are_served_and_others_passed_on(transport: AuthorizedHandlers) -> None:
    wire = RawClient(transport)
    body = b"GET [('name', 'n'), ('path', 'stats/summary')]"
    assert (await wire.get(STATS)).body == body
    assert (await wire.get("/readyz")).body == b"ok"
    async with wire.transport.open(Request(method="GET", path=STATS)) as stream:
        assert [chunk async for chunk in stream.chunks()] == [body]
    async with wire.watch("/api/v1/namespaces") as events:
        assert await events.take(1) == [("ADDED", "default")]


async def test_a_refusal_is_the_api_servers_own(transport: AuthorizedHandlers, server: ApiServer) -> None:
    jane = RawClient(ActingAs(transport, user="jane"))
    assert (await jane.get(STATS)).body == (await RawClient(ActingAs(server, user="jane")).get(STATS)).body
    rule = {"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}
    await grant(RawClient(server), "jane", rule)
    assert (await jane.get(STATS)).status == 200


async def test_an_unknown_token_is_unauthorized(transport: AuthorizedHandlers) -> None:
    assert (await RawClient(transport, headers={"authorization": "Bearer nosuch"}).get(STATS)).status == 401
