"""Request handling: paths, methods, formats, authentication."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import DEFINITIONS, ROBOT, WIDGET, WIDGETS, make_server, widget
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/api/v1/namespaces/default/nodes", 404, id="cluster-scoped kind in a namespace"),
        pytest.param("GET", "/api/v1/pods/a", 404, id="namespaced object without a namespace"),
        pytest.param("GET", f"{MAPS}/a/status", 404, id="kind without a status subresource"),
        pytest.param("GET", "/apis/example.io/v1/robots/a/status", 404, id="custom kind without a status subresource"),
        pytest.param("POST", "/api/v1/configmaps", 405, id="create without a namespace"),
        pytest.param("POST", f"{MAPS}/a", 405, id="create with a name in the path"),
        pytest.param("PUT", MAPS, 405, id="update without a name"),
        pytest.param("DELETE", "/api/v1/namespaces", 405, id="all namespaces at once"),
        pytest.param("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405, id="list of reviews"),
    ],
)
async def test_path_and_method_have_a_status(wire: RawClient, method: str, path: str, status: int) -> None:
    assert (await wire.call(method, path)).status == status


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"metadata": []}', b'{"metadata": "x"}'])
async def test_body_that_is_not_an_object_is_a_bad_request(server: ApiServer, body: bytes) -> None:
    answer = await server.send(Request(method="POST", path=MAPS, headers=JSON, body=body))
    assert answer.status == 400


async def test_registered_handler_serves_its_path(server: ApiServer, wire: RawClient) -> None:
    seen: list[Mapping[str, str]] = []

    async def kubelet(request: Request, values: Mapping[str, str]) -> Response:
        seen.append(values)
        return Response(status=200, body=request.path.encode())

    server.handlers.register("/api/v1/nodes/{name}/proxy/{path:rest}", kubelet)
    path = "/api/v1/nodes/node-0/proxy/stats/summary"
    assert (await wire.get(path)).body == path.encode()
    assert seen == [{"name": "node-0", "path": "stats/summary"}]
    assert (await wire.put(path, {})).status == 404, "only the registered method"


async def test_slow_handler_times_out(server: ApiServer) -> None:
    async def slow(request: Request, values: Mapping[str, str]) -> Response:  # noqa: ARG001
        await asyncio.sleep(60)
        return Response(status=200)

    server.handlers.register("/slow", slow)
    with pytest.raises(Transient):
        await server.send(Request(method="GET", path="/slow", timeout=5))


async def test_watch_sent_as_a_request_is_buffered(wire: RawClient) -> None:
    await wire.post(MAPS, {"metadata": {"name": "a"}})
    answer = await wire.get(MAPS, watch="1", timeoutSeconds="5")
    assert answer.body["type"] == "ADDED"


async def test_same_seed_gives_the_same_objects(wire: RawClient) -> None:
    other = RawClient(make_server())
    for body in (WIDGET, ROBOT):
        await other.post(DEFINITIONS, body)
    answers = []
    for each in (wire, other):
        await each.post(WIDGETS, widget("") | {"metadata": {"generateName": "w-"}})
        answers.append((await each.get(WIDGETS)).body)
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param({"dryRun": "Some"}, "dryRun", id="dryRun"),
        pytest.param({"fieldValidation": "Hard"}, "fieldValidation", id="fieldValidation"),
    ],
)
async def test_invalid_write_option_is_refused(wire: RawClient, query: dict[str, Any], message: str) -> None:
    refused = await wire.post(MAPS, {"metadata": {"name": "a"}}, **query)
    assert refused.status == 422
    assert message in refused.body["message"]
