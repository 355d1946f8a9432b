"""Handlers registered for paths outside the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.apiserver.handlers import Handlers
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

START = "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}/start"


async def answer(request: Request, values: Mapping[str, str]) -> Response:
    return Response(status=200, body=f"{request.method} {sorted(values.items())}".encode())


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        pytest.param("PUT", START.format(namespace="x", name="a%20b"), {"namespace": "x", "name": "a b"}, id="values"),
        pytest.param("GET", START.format(namespace="x", name="a"), None, id="another method"),
        pytest.param("PUT", START.format(namespace="x", name="a/b"), None, id="a segment too many"),
        pytest.param("PUT", START.format(namespace="x", name="a") + "/", None, id="a slash too many"),
        pytest.param("GET", "/files/a/b.txt", {"path": "a/b.txt"}, id="the rest"),
        pytest.param("GET", "/files/", {"path": ""}, id="no rest"),
    ],
)
def test_pattern_matches_paths(method: str, path: str, expected: dict[str, str] | None) -> None:
    handlers = Handlers()
    handlers.register(START, answer, method="PUT")
    handlers.register("/files/{path:rest}", answer)
    found = handlers.find(Request(method=method, path=path))
    assert (found[1] if found else None) == expected


def test_last_matching_pattern_wins() -> None:
    async def other(request: Request, values: Mapping[str, str]) -> Response:  # noqa: ARG001
        return Response(status=404)

    handlers = Handlers()
    handlers.register("/files/{path:rest}", answer)
    handlers.register("/files/special", other)
    for path, handler in (("/files/special", other), ("/files/usual", answer)):
        found = handlers.find(Request(method="GET", path=path))
        assert found is not None
        assert found[0] is handler
