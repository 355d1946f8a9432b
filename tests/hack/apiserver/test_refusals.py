"""Features that the embedded server refuses and the real one has."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.server.apiserver import DEFINITIONS, WIDGET
from tests.support.server.raw_client import RawClient

MAP = "/api/v1/namespaces/default/configmaps/one"


def widget_with(schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    definition = copy.deepcopy(WIDGET)
    one = definition["spec"]["versions"][0]
    one |= version
    if schema is not None:
        one["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}
    return definition


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        pytest.param(widget_with({"type": "string", "not": {}}), "not", id="schema keyword"),
        pytest.param(
            widget_with({"type": "string", "x-kubernetes-validations": [{"rule": "true", "messageExpression": "''"}]}),
            "messageExpression",
            id="keyword of a CEL rule",
        ),
        pytest.param(widget_with(subresources={"scale": {}}), "scale", id="subresource"),
    ],
)
async def test_definition_feature_is_refused(wire: RawClient, definition: dict[str, Any], field: str) -> None:
    answer = await wire.post(DEFINITIONS, definition)
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"].endswith(field)


@pytest.mark.parametrize(
    ("method", "path", "media_type"),
    [
        pytest.param("PATCH", MAP, "application/apply-patch+yaml", id="server-side apply"),
        pytest.param("PUT", MAP, "application/cbor", id="CBOR"),
        pytest.param("PUT", MAP, "text/plain", id="text"),
        pytest.param("PUT", MAP, "", id="no type"),
    ],
)
async def test_body_format_is_refused(wire: RawClient, method: str, path: str, media_type: str) -> None:
    await wire.post(MAP.removesuffix("/one"), {"metadata": {"name": "one"}})
    other = RawClient(wire.transport, headers={"content-type": media_type})
    answer = await other.call(method, path, {"metadata": {"name": "one"}})
    assert answer.status == 415


@pytest.mark.parametrize(
    "path",
    [
        "/apis/apps/v1/namespaces/default/replicasets",
        "/apis/apps/v1/namespaces/default/deployments/x/scale",
        "/apis/events.k8s.io/v1/events",
    ],
)
async def test_kind_is_not_found(wire: RawClient, path: str) -> None:
    assert (await wire.get(path)).status == 404


async def test_impersonated_uid_is_refused(wire: RawClient) -> None:
    other = RawClient(wire.transport, headers={"impersonate-user": "bob", "impersonate-uid": "1"})
    assert (await other.get("/api")).status == 400
