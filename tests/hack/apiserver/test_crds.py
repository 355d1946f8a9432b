"""Custom kinds are served while their definitions exist."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import DEFINITIONS, WIDGET, WIDGETS, definition, widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.server.raw_client import RawClient

GADGETS = "/apis/example.io/v1/namespaces/default/gadgets"
GADGET = definition("gadgets", "Gadget", namespaced=True, status=False)


async def test_definition_is_established_and_its_kind_served(wire: RawClient) -> None:
    assert (await wire.get(GADGETS)).status == 404
    async with wire.watch(DEFINITIONS, fieldSelector="metadata.name=gadgets.example.io") as events:
        await wire.post(DEFINITIONS, GADGET)
        assert await events.take(2) == [("ADDED", "gadgets.example.io"), ("MODIFIED", "gadgets.example.io")]
    served = (await wire.get(f"{DEFINITIONS}/gadgets.example.io")).body
    conditions = {condition["type"]: condition["status"] for condition in served["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert served["status"]["storedVersions"] == ["v1"]
    assert served["status"]["acceptedNames"] == served["spec"]["names"]
    assert served["spec"]["names"]["singular"] == "gadget"
    assert served["spec"]["names"]["listKind"] == "GadgetList"
    assert (await wire.get(GADGETS)).names == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"metadata": {"name": "x"}}, id="no spec"),
        pytest.param(definition("gadgets", "Gadget", namespaced=True, status=True) | {"spec": {}}, id="empty spec"),
        pytest.param(GADGET | {"metadata": {"name": "other.example.io"}}, id="name that is not plural.group"),
    ],
)
async def test_invalid_definition_is_refused(wire: RawClient, body: dict[str, Any]) -> None:
    refused = await wire.post(DEFINITIONS, body)
    assert refused.status == 422, refused.body


async def test_definition_change_changes_the_kind(wire: RawClient) -> None:
    definition_path = f"{DEFINITIONS}/widgets.example.io"
    changed = copy.deepcopy(WIDGET["spec"]["versions"][0])
    changed.pop("subresources")
    patched = await wire.patch(definition_path, {"spec": {"versions": [changed]}})
    assert patched.status == 200, patched.body
    created = await wire.post(WIDGETS, widget("a") | {"status": {"phase": "kept"}})
    assert created.body["status"] == {"phase": "kept"}


@pytest.mark.usefixtures("controllers")
async def test_objects_are_deleted_before_their_definition(wire: RawClient) -> None:
    await wire.post(WIDGETS, widget("fast"))
    slow = widget("slow")
    slow["metadata"]["finalizers"] = ["x/one"]
    await wire.post(WIDGETS, slow)
    path = f"{DEFINITIONS}/widgets.example.io"
    async with wire.watch(WIDGETS) as events:
        await wire.delete(path)
        await asyncio.sleep(1)
        assert (await wire.get(WIDGETS)).names == ["slow"]
        assert (await wire.get(path)).status == 200
        late = await wire.post(WIDGETS, widget("late"))
        assert (late.status, late.body["reason"]) == (405, "MethodNotAllowed")
        await wire.patch(f"{WIDGETS}/slow", {"metadata": {"finalizers": None}})
        await asyncio.sleep(1)
        assert (await wire.get(path)).status == 404
        assert (await wire.get(WIDGETS)).status == 404
        await events.rest()
    await wire.post(DEFINITIONS, WIDGET)
    assert (await wire.get(WIDGETS)).names == []


@pytest.mark.usefixtures("controllers")
async def test_definition_with_another_finalizer_stays(server: ApiServer, wire: RawClient) -> None:
    path = f"{DEFINITIONS}/widgets.example.io"
    await wire.patch(path, {"metadata": {"finalizers": ["x.io/one"]}})
    await wire.delete(path)
    await asyncio.sleep(1)
    held = await wire.get(path)
    assert held.body["metadata"]["finalizers"] == ["x.io/one"]
    before = server.storage.revision
    await asyncio.sleep(60)
    assert server.storage.revision == before
    await wire.patch(path, {"metadata": {"finalizers": None}})
    assert (await wire.get(path)).status == 404
