"""Request handling: paths, methods, formats, authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"metadata": []}', b'{"metadata": "x"}'])
async def test_body_that_is_not_an_object_is_a_bad_request(server: ApiServer, body: bytes) -> None:
    answer = await server.send(Request(method="POST", path=MAPS, headers=JSON, body=body))
    assert answer.status == 400
