"""What this server does not offer it refuses, and never answers wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.definitions import WIDGETS, widget
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    from tests.support.wire import Wire

MAP = "/api/v1/namespaces/default/configmaps/a"


@pytest.mark.parametrize("path", [MAP, f"{WIDGETS}/a"])
async def test_server_side_apply_is_refused(wire: Wire, path: str) -> None:
    answer = await wire.patch(path, {"metadata": {"name": "a"}}, kind="apply", fieldManager="me")
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_cbor_is_refused(wire: Wire) -> None:
    headers = {"content-type": "application/cbor"}
    request = Request(method="POST", path=WIDGETS, headers=headers, body=b"\xd9\xd9\xf7\xa0")
    assert (await wire.transport.send(request)).status == 415


@pytest.mark.parametrize("value", [{}, {"metadata": {"name": "a"}}, 5, None])
async def test_a_json_patch_of_the_whole_object_is_refused(wire: Wire, value: Any) -> None:
    await wire.post(WIDGETS, widget("a"))
    answer = await wire.patch(f"{WIDGETS}/a", [{"op": "replace", "path": "", "value": value}], kind="json")
    assert answer.status == 400
    assert "name must be provided" in answer.body["message"]


async def test_managed_fields_are_not_kept(wire: Wire) -> None:
    managed = [{"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}]
    answer = await wire.post(MAP.rpartition("/")[0], {"metadata": {"name": "a", "managedFields": managed}})
    assert answer.status == 201
    assert "managedFields" not in answer.body["metadata"]
