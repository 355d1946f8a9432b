"""Label and field selectors, and refused ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.kinds import define, drop, widget

pytestmark = pytest.mark.servers

_POD = {"serviceAccountName": "runner", "containers": [{"name": "c", "image": "i"}]}
_INVOLVED = {"kind": "Pod", "name": "p", "namespace": "$ns", "uid": "u", "apiVersion": "v1", "fieldPath": "spec.x"}
#: The objects by plural; Pods need the ServiceAccount.
OBJECTS: dict[str, list[dict[str, Any]]] = {
    "serviceaccounts": [{"metadata": {"name": "runner"}}],
    "secrets": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "type": "example.io/x"}],
    "events": [{"metadata": {"name": "e"}, "involvedObject": _INVOLVED, "reason": "R", "type": "Normal"}],
    "pods": [
        {"metadata": {"name": "a"}, "spec": _POD | {"nodeName": "n"}},
        {"metadata": {"name": "b"}, "spec": _POD | {"restartPolicy": "Never"}},
    ],
    "nodes": [{"metadata": {"name": "$ns"}, "spec": {"unschedulable": True}}],
}


@pytest.mark.parametrize(
    ("plural", "selector", "chosen"),
    [
        ("secrets", "metadata.name=a", "a"),
        ("secrets", "metadata.name!=a", "b"),
        ("events", "involvedObject.namespace=$ns,involvedObject.kind=Pod", "e"),
        ("events", "involvedObject.namespace=$ns,involvedObject.name=p", "e"),
        ("events", "involvedObject.namespace=$ns,reason=R,type=Normal", "e"),
        ("pods", "spec.nodeName=n", "a"),
        ("pods", "status.phase=Pending", "a b"),
        # A drain's.
        ("pods", "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName=n", "a"),
        ("nodes", "metadata.name=$ns,spec.unschedulable=true", "$ns"),
    ],
)
async def test_field_selector_selects(api: BareApi, plural: str, selector: str, chosen: str) -> None:
    for kind in ("serviceaccounts", plural):
        path = "/api/v1/nodes" if kind == "nodes" else api.path(kind)
        objects = json.loads(json.dumps(OBJECTS[kind]).replace("$ns", api.namespace))
        for one in objects:
            answer = await api.admin.post(path, one)
            assert answer.status == 201, answer.body
    answer = await api.admin.get(path, fieldSelector=selector.replace("$ns", api.namespace))
    assert (answer.status, answer.names) == (200, chosen.replace("$ns", api.namespace).split())
    for one in objects:
        await api.admin.delete(f"{path}/{one['metadata']['name']}", {"gracePeriodSeconds": 0})


def unsupported(field: str) -> str:
    return f"field label not supported: {field}"


@pytest.mark.parametrize(
    ("path", "selector", "text"),
    [
        pytest.param("/api/v1/pods", "spec.hostname=x", unsupported("spec.hostname"), id="Pods"),
        pytest.param("/api/v1/nodes", "status.phase=x", unsupported("status.phase"), id="Nodes"),
    ],
)
async def test_unsupported_field_is_refused(api: BareApi, path: str, selector: str, text: str) -> None:
    answer = await api.admin.get(path, fieldSelector=selector)
    assert (answer.status, answer.body["reason"], answer.body["message"]) == (400, "BadRequest", text)


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [pytest.param("spec.colour=red", "a", id="equal"), pytest.param("spec.colour!=red", "b c", id="unequal")],
)
async def test_selectable_field_of_a_definition_selects(api: BareApi, selector: str, chosen: str) -> None:
    properties = {"colour": {"type": "string"}, "size": {"type": "integer"}, "big": {"type": "boolean"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    fields = [{"jsonPath": f".spec.{name}"} for name in properties]
    path = await define(api, schema=schema, selectableFields=fields)
    for name, spec in (
        ("a", {"size": 1, "colour": "red", "big": True}),
        ("b", {"size": 2, "colour": "blue"}),
        ("c", {}),
    ):
        assert (await api.admin.post(path, widget(api, name, spec=spec))).status == 201
    assert (await api.admin.get(path, fieldSelector=selector)).names == chosen.split()
    refused = await api.admin.get(path, fieldSelector="spec.other=1")
    assert (refused.status, refused.body["message"]) == (400, unsupported("spec.other"))
    await drop(api)


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        pytest.param("app=x", "a", id="equal"),
        pytest.param("app!=x", "b c", id="unequal includes unlabelled"),
        pytest.param("app notin (x)", "b c", id="notin includes unlabelled"),
        pytest.param("!app", "c", id="does not exist"),
    ],
)
async def test_label_selector_selects(api: BareApi, selector: str, chosen: str) -> None:
    path = api.path("secrets")
    for name, labels in (("a", {"app": "x", "n": "3"}), ("b", {"app": "y", "n": "5"}), ("c", {})):
        await api.admin.post(path, {"metadata": {"name": name, "labels": labels}})
    answer = await api.admin.get(path, labelSelector=selector)
    assert (answer.status, answer.names) == (200, chosen.split())


@pytest.mark.parametrize("selector", ["app=x=y", "(x)", ",", "!", "app in x", "app x", "app=-x", "-a=b"])
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_malformed_selector_is_a_bad_request(api: BareApi, verb: str, selector: str) -> None:
    answer = await api.admin.call(verb, api.path("secrets"), labelSelector=selector)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
