"""Label and field selectors, and refused ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import define, drop, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

EVENT: dict[str, Any] = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p", "uid": "u", "apiVersion": "v1", "fieldPath": "spec.x"},
    "reason": "R",
    "type": "Normal",
    "source": {"component": "c"},
}


async def create(api: BareApi, plural: str, *objects: dict[str, Any], group: str = "") -> str:
    path = api.path(plural, group=group)
    for one in objects:
        answer = await api.admin.post(path, one)
        assert answer.status == 201, answer.body
    return path


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        pytest.param("metadata.name=a", "a", id="a name"),
        pytest.param("metadata.name!=a", "b", id="other names"),
        pytest.param("metadata.name=a,metadata.name=b", "", id="two names"),
    ],
)
async def test_metadata_field_selects(api: BareApi, selector: str, chosen: str) -> None:
    two = {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "type": "example.io/x"}
    answer = await api.admin.get(await create(api, "secrets", *two), fieldSelector=selector)
    assert (answer.status, answer.names) == (200, chosen.split())


@pytest.mark.parametrize(
    ("selector", "is_chosen"),
    [
        pytest.param("involvedObject.kind=Pod", True, id="kind"),
        pytest.param("involvedObject.name=p", True, id="name"),
        pytest.param("involvedObject.name=q", False, id="another name"),
        pytest.param("reason=R,type=Normal", True, id="reason and type"),
    ],
)
async def test_event_field_selects(api: BareApi, selector: str, is_chosen: bool) -> None:  # noqa: FBT001
    event = EVENT | {"involvedObject": EVENT["involvedObject"] | {"namespace": api.namespace}}
    path = await create(api, "events", event)
    answer = await api.admin.get(path, fieldSelector=f"involvedObject.namespace={api.namespace},{selector}")
    assert answer.names == ["e"] * is_chosen


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        pytest.param("spec.nodeName=n", "a", id="a node"),
        pytest.param("spec.nodeName=", "b", id="no node"),
        pytest.param("status.phase=Pending", "a b", id="a phase"),
        pytest.param("status.phase!=Succeeded,status.phase!=Failed,spec.nodeName=n", "a", id="selector of a drain"),
    ],
)
async def test_pod_field_selects(api: BareApi, selector: str, chosen: str) -> None:
    await create(api, "serviceaccounts", {"metadata": {"name": "runner"}})
    spec = {"serviceAccountName": "runner", "containers": [{"name": "c", "image": "i"}]}
    path = await create(
        api,
        "pods",
        {"metadata": {"name": "a"}, "spec": spec | {"nodeName": "n"}},
        {"metadata": {"name": "b"}, "spec": spec | {"restartPolicy": "Never"}},
    )
    assert (await api.admin.get(path, fieldSelector=selector)).names == chosen.split()
    for name in "ab":
        await api.admin.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("selector", "is_chosen"),
    [
        pytest.param("spec.unschedulable=true", True, id="cordoned"),
        pytest.param("spec.unschedulable=false", False, id="not cordoned"),
    ],
)
async def test_node_field_selects(api: BareApi, selector: str, is_chosen: bool) -> None:  # noqa: FBT001
    await api.admin.post("/api/v1/nodes", {"metadata": {"name": api.word}, "spec": {"unschedulable": True}})
    answer = await api.admin.get("/api/v1/nodes", fieldSelector=f"metadata.name={api.word},{selector}")
    assert answer.names == [api.word] * is_chosen
    await api.admin.delete(f"/api/v1/nodes/{api.word}")


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
        pytest.param("app in (x, z)", "a", id="in"),
        pytest.param("app notin (x)", "b c", id="notin includes unlabelled"),
        pytest.param("app", "a b", id="exists"),
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
