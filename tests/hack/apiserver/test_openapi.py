"""OpenAPI documents for kubectl explain and server-side validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import DEFINITIONS, definition
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.crd import crd_manifest

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

PLANS = "apis/management.harvesterhci.io/v1beta1"


async def test_hash_changes_with_the_document(wire: RawClient) -> None:
    def url(paths: dict[str, Any]) -> str:
        return str(paths["apis/example.io/v1"]["serverRelativeURL"])

    before = url((await wire.get("/openapi/v3")).body["paths"])
    assert url((await wire.get("/openapi/v3")).body["paths"]) == before
    await wire.post(DEFINITIONS, definition("gadgets", "Gadget"))
    assert url((await wire.get("/openapi/v3")).body["paths"]) != before


async def test_built_in_kind_has_the_fields_of_its_type(wire: RawClient) -> None:
    schemas = (await wire.get("/openapi/v3/apis/batch/v1")).body["components"]["schemas"]
    job = schemas["io.k8s.api.batch.v1.Job"]["properties"]
    assert job.keys() == {"apiVersion", "kind", "metadata", "spec", "status"}
    spec = schemas["io.k8s.api.v1.JobSpec"]["properties"]
    assert (spec["backoffLimit"]["type"], spec["suspend"]["type"]) == ("integer", "boolean")


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        # A schema also has a property named $ref.
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for item in node.values() for found in references(item)]
    return [found for item in node for found in references(item)] if isinstance(node, list) else []


@pytest.mark.parametrize("path", [PLANS, "api/v1", "apis/apiextensions.k8s.io/v1"])
async def test_every_reference_is_resolved(wire: RawClient, path: str) -> None:
    await wire.post(DEFINITIONS, crd_manifest())
    document = (await wire.get(f"/openapi/v3/{path}")).body
    found = set(references(document))
    assert found
    for reference in found:
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


async def test_stored_definition_is_unchanged(wire: RawClient) -> None:
    await wire.post(DEFINITIONS, crd_manifest())
    assert (await wire.get(f"/openapi/v3/{PLANS}")).status == 200
    stored = (await wire.get(f"{DEFINITIONS}/upgradeplans.management.harvesterhci.io")).body
    schema = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema == crd_manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("path", ["/openapi/v3/apis/nosuch.io/v1", "/openapi/v4", "/openapi/v3/api"])
async def test_unknown_document_is_not_found(wire: RawClient, path: str) -> None:
    assert (await wire.get(path)).status == 404


async def test_v2_document_is_empty_in_both_formats(server: ApiServer) -> None:
    plain = await RawClient(server, headers={"accept": "application/json"}).get("/openapi/v2")
    assert (plain.body["swagger"], plain.body["paths"]) == ("2.0", {})
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    packed = await RawClient(server, headers={"accept": accept}).get("/openapi/v2")
    assert packed.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert packed.body == b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.35.4"
