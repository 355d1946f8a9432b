"""Paths of other components in front of an API server that authorizes them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hack.apiserver.handlers import Handlers
from hack.apiserver.identity import User
from hack.control_plane.authorized_handlers import AuthorizedHandlers
from tests.support.server.apiserver import make_server
from upgrade_manager.kube.transport import Request, Response

CONFIGZ = "/api/v1/nodes/n/proxy/configz"


async def configz(_: Request, values: Mapping[str, str]) -> Response:
    return Response(status=200, headers={}, body=values["name"].encode())


@pytest.mark.parametrize(
    ("groups", "served"),
    [
        pytest.param(("system:masters",), True, id="permitted"),
        pytest.param(("system:authenticated",), False, id="refused"),
    ],
)
async def test_path_is_served_to_users_who_may_get_it(groups: tuple[str, ...], served: bool) -> None:  # noqa: FBT001
    server, handlers = make_server(), Handlers()
    server.authenticator.register("token", User(name="jane", groups=groups))
    handlers.register("/api/v1/nodes/{name}/proxy/configz", configz)
    request = Request(method="GET", path=CONFIGZ, headers={"authorization": "Bearer token"})
    response = await AuthorizedHandlers(server, handlers=handlers).send(request)
    assert (response.body == b"n") is served
    assert (response.status < 400) is served
    server.close()
