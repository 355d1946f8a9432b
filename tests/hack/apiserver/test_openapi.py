"""OpenAPI documents for kubectl explain and server-side validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.openapi import schema_name
from hack.apiserver.resources import ResourceTable
from tests.support.apiserver import DEFINITIONS, WIDGET
from tests.support.raw_client import RawClient
from upgrade_manager.api.crd import crd_manifest

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

PLANS = "apis/management.harvesterhci.io/v1beta1"
SCHEMA = "io.harvesterhci.management.v1beta1.UpgradePlan"


@pytest.fixture
async def document(wire: RawClient) -> dict[str, Any]:
    await wire.post(DEFINITIONS, crd_manifest())
    body: dict[str, Any] = (await wire.get(f"/openapi/v3/{PLANS}")).body
    return body


async def test_index_links_every_group_version(wire: RawClient) -> None:
    paths = (await wire.get("/openapi/v3")).body["paths"]
    assert {"api/v1", "apis/batch/v1", "apis/example.io/v1"} <= paths.keys()
    url = paths["apis/example.io/v1"]["serverRelativeURL"]
    path, _, query = url.partition("?")
    assert path == "/openapi/v3/apis/example.io/v1"
    assert query.startswith("hash=")
    assert (await wire.get(path)).status == 200


async def test_hash_changes_with_the_document(wire: RawClient) -> None:
    def url(paths: dict[str, Any]) -> str:
        return str(paths["apis/example.io/v1"]["serverRelativeURL"])

    before = url((await wire.get("/openapi/v3")).body["paths"])
    assert url((await wire.get("/openapi/v3")).body["paths"]) == before
    await wire.delete(f"{DEFINITIONS}/{WIDGET['metadata']['name']}")
    await wire.patch(f"{DEFINITIONS}/robots.example.io", {"spec": {"names": {"shortNames": ["r"]}}})
    names = {"plural": "gadgets", "kind": "Gadget"}
    await wire.post(
        DEFINITIONS, WIDGET | {"metadata": {"name": "gadgets.example.io"}, "spec": WIDGET["spec"] | {"names": names}}
    )
    assert url((await wire.get("/openapi/v3")).body["paths"]) != before


async def test_unchanged_document_is_not_sent_again(server: ApiServer, wire: RawClient) -> None:
    etag = (await wire.get("/openapi/v3/api/v1")).headers["etag"]
    again = await RawClient(server, headers={"if-none-match": etag}).get("/openapi/v3/api/v1")
    assert (again.status, again.body) == (304, b"")


async def test_custom_kind_has_its_schema_and_metadata(document: dict[str, Any]) -> None:
    schema = document["components"]["schemas"][SCHEMA]
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "management.harvesterhci.io", "version": "v1beta1", "kind": "UpgradePlan"}
    ]
    assert schema["properties"]["spec"]["properties"]["version"]["description"]
    assert schema["properties"]["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]


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


@pytest.mark.parametrize(("path", "method"), [("", "post"), ("/{name}", "put"), ("/{name}", "patch")])
async def test_writes_offer_dry_run_and_field_validation(document: dict[str, Any], path: str, method: str) -> None:
    operation = document["paths"][f"/{PLANS}/upgradeplans{path}"][method]
    assert [parameter["name"] for parameter in operation["parameters"]] == ["dryRun", "fieldValidation"]
    assert operation["x-kubernetes-group-version-kind"]["kind"] == "UpgradePlan"


async def test_strategic_merge_patch_is_not_offered(document: dict[str, Any]) -> None:
    content = document["paths"][f"/{PLANS}/upgradeplans/{{name}}"]["patch"]["requestBody"]["content"]
    assert set(content) == {"application/json-patch+json", "application/merge-patch+json"}


async def test_status_has_a_path(document: dict[str, Any]) -> None:
    assert set(document["paths"][f"/{PLANS}/upgradeplans/{{name}}/status"]) == {"get", "put", "patch"}


async def test_stored_definition_is_unchanged(document: dict[str, Any], wire: RawClient) -> None:
    del document
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


@pytest.mark.parametrize(
    ("group", "plural", "name"),
    [
        ("", "pods", "api.core.v1.Pod"),
        ("batch", "jobs", "api.batch.v1.Job"),
        ("coordination.k8s.io", "leases", "io.k8s.coordination.v1.Lease"),
    ],
)
def test_schema_has_a_name(group: str, plural: str, name: str) -> None:
    row = ResourceTable.builtin().find(group, "v1", plural)
    assert row is not None
    assert schema_name(row) == f"io.k8s.{name}".replace("io.k8s.io.k8s", "io.k8s")
