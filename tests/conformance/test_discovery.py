"""Discovery, OpenAPI, version and health endpoints."""

from __future__ import annotations

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.kinds import define, drop, until
from tests.support.server.raw_client import RawClient

pytestmark = pytest.mark.servers

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ACCEPT = f"{V2},application/json"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
READ_WRITE = ["get", "patch", "update"]


async def test_custom_kind_is_in_aggregated_discovery(api: BareApi) -> None:
    group = f"{api.word}.example.io"
    await define(api, subresources={"status": {}})
    wire = RawClient(api.transport, headers={"accept": ACCEPT})
    answer = await until(
        api, "/apis", lambda answer: any(one["metadata"]["name"] == group for one in answer.body["items"]), wire=wire
    )
    assert answer.headers["content-type"] == V2
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    (found,) = [one for one in answer.body["items"] if one["metadata"]["name"] == group]
    kind = {"group": group, "version": "v1", "kind": "Widget"}
    (version,) = found["versions"]
    (resource,) = version["resources"]
    assert (version["version"], version["freshness"], sorted(resource.pop("verbs"))) == ("v1", "Current", VERBS)
    assert resource == {
        "resource": "widgets",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "widget",
        "shortNames": ["wd"],
        "categories": ["things"],
        "subresources": [{"subresource": "status", "responseKind": kind, "verbs": READ_WRITE}],
    }
    await drop(api)


async def test_custom_kind_is_in_the_list_of_its_version(api: BareApi) -> None:
    group = f"{api.word}.example.io"
    await define(api)
    answer = await until(api, f"/apis/{group}/v1", lambda answer: answer.status == 200)
    assert (answer.body["kind"], answer.body["groupVersion"]) == ("APIResourceList", f"{group}/v1")
    (listed,) = answer.body["resources"]
    found = {key: listed[key] for key in ("name", "singularName", "namespaced", "kind")}
    assert found == {"name": "widgets", "singularName": "widget", "namespaced": True, "kind": "Widget"}
    assert sorted(listed["verbs"]) == VERBS
    await drop(api)


@pytest.mark.parametrize("where", ["/apis/nosuch.io", "/apis/nosuch.io/v1", "/nosuch", "/apis/nosuch.io/v1/foos"])
async def test_unknown_path_is_not_found(api: BareApi, where: str) -> None:
    answer = await api.admin.get(where)
    assert (answer.status, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert answer.body == b"404 page not found\n"


async def test_version_is_served(api: BareApi) -> None:
    version = (await api.admin.get("/version")).body
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "35", "v1.35.4")


async def test_openapi_document_of_a_custom_group(api: BareApi) -> None:
    group = f"{api.word}.example.io"
    spec = {"type": "object", "description": "What is wanted.", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "description": "A widget.", "properties": {"spec": spec}}
    await define(api, schema=schema, subresources={"status": {}})
    index = await until(api, "/openapi/v3", lambda answer: f"apis/{group}/v1" in answer.body["paths"])
    path, _, query = index.body["paths"][f"apis/{group}/v1"]["serverRelativeURL"].partition("?hash=")
    assert path == f"/openapi/v3/apis/{group}/v1"
    document = await api.admin.get(path, hash=query)
    assert document.status == 200
    name = ".".join([*reversed(group.split(".")), "v1", "Widget"])
    found = document.body["components"]["schemas"][name]
    assert (found["type"], found["description"], found["properties"]["spec"]) == ("object", "A widget.", spec)
    assert found["x-kubernetes-group-version-kind"] == [{"group": group, "version": "v1", "kind": "Widget"}]
    one = f"/apis/{group}/v1/namespaces/{{namespace}}/widgets/{{name}}"
    assert {one, f"{one}/status"} <= set(document.body["paths"])
    parameters = {parameter["name"] for parameter in document.body["paths"][one]["patch"]["parameters"]}
    assert {"dryRun", "fieldValidation"} <= parameters
    stale = await api.admin.get(path, hash="STALE")
    assert stale.status in {200, 301}
    await drop(api)
