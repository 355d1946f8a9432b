"""Paths that are served in front of an API server, with its authorization."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hack.apiserver.handlers import Handlers
from hack.control_plane.authorized_handlers import AuthorizedHandlers
from upgrade_manager.kube.transport import Request, Response, Stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

STATS = Request(method="GET", path="/api/v1/nodes/n/proxy/stats/summary")


class Server:
    """Answers reviews about a user, and every other request with its path."""

    def __init__(self, *, status: int, allowed: bool) -> None:
        self._status = status
        self._result = {"allowed": allowed, "userInfo": {"username": "jane"}}

    async def send(self, request: Request) -> Response:
        if "reviews" not in request.path:
            return Response(status=200, body=request.path.encode())
        return Response(status=self._status, body=json.dumps({"status": self._result}).encode())

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError(request)


async def respond(request: Request, values: Mapping[str, str]) -> Response:
    return Response(status=200, body=f"{request.method} {sorted(values.items())}".encode())


def transport(*, status: int = 201, allowed: bool = True) -> AuthorizedHandlers:
    handlers = Handlers()
    handlers.register("/api/v1/nodes/{name}/proxy/{path:rest}", respond)
    return AuthorizedHandlers(Server(status=status, allowed=allowed), handlers=handlers)


async def test_handled_paths_are_served_and_others_passed_on() -> None:
    body = b"GET [('name', 'n'), ('path', 'stats/summary')]"
    assert (await transport().send(STATS)).body == body
    assert (await transport().send(Request(method="GET", path="/readyz"))).body == b"/readyz"
    async with transport().open(STATS) as stream:
        assert [chunk async for chunk in stream.chunks()] == [body]


@pytest.mark.parametrize(
    ("status", "expected"), [pytest.param(201, 403, id="no rights"), pytest.param(401, 401, id="unknown token")]
)
async def test_api_server_refusal_is_returned(status: int, expected: int) -> None:
    assert (await transport(status=status, allowed=False).send(STATS)).status == expected
