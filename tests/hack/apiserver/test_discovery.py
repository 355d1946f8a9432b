"""What a client learns about the kinds of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import DEFINITIONS, WIDGET, make_server
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


async def test_the_core_versions(wire: RawClient) -> None:
    body = (await wire.get("/api")).body
    assert (body["kind"], body["versions"]) == ("APIVersions", ["v1"])


async def test_the_groups(wire: RawClient) -> None:
    body = (await wire.get("/apis")).body
    assert body["kind"] == "APIGroupList"
    groups = {group["name"]: group for group in body["groups"]}
    version = {"groupVersion": "example.io/v1", "version": "v1"}
    assert groups["example.io"] == {"name": "example.io", "versions": [version], "preferredVersion": version}
    assert "" not in groups


async def test_one_group(wire: RawClient) -> None:
    body = (await wire.get("/apis/example.io")).body
    assert (body["kind"], body["apiVersion"], body["name"]) == ("APIGroup", "v1", "example.io")


async def test_the_kinds_of_a_version(wire: RawClient) -> None:
    body = (await wire.get("/apis/example.io/v1")).body
    assert (body["kind"], body["groupVersion"]) == ("APIResourceList", "example.io/v1")
    widgets, status, robots = body["resources"]
    assert widgets["storageVersionHash"]
    assert {key: value for key, value in widgets.items() if key != "storageVersionHash"} == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }
    assert status == {
        "name": "widgets/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Widget",
        "verbs": ["get", "patch", "update"],
    }
    assert (robots["name"], robots["namespaced"]) == ("robots", False)


async def test_the_kinds_of_the_core(wire: RawClient) -> None:
    body = (await wire.get("/api/v1")).body
    pods = next(resource for resource in body["resources"] if resource["name"] == "pods")
    assert (pods["shortNames"], pods["categories"]) == (["po"], ["all"])


async def test_a_review_can_only_be_created(wire: RawClient) -> None:
    body = (await wire.get("/apis/authorization.k8s.io/v1")).body
    assert {tuple(resource["verbs"]) for resource in body["resources"]} == {("create",)}


@pytest.mark.parametrize("path", ["/apis/nosuch.io", "/apis/nosuch.io/v1", "/apis/example.io/v9", "/api/v9"])
async def test_what_is_not_there(wire: RawClient, path: str) -> None:
    answer = await wire.get(path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


async def test_everything_at_once(server: ApiServer, wire: RawClient) -> None:
    del wire
    asking = RawClient(server, headers={"accept": AGGREGATED.format("v2") + ",application/json"})
    answer = await asking.get("/apis")
    assert answer.headers["content-type"] == AGGREGATED.format("v2")
    assert answer.body["apiVersion"] == "apidiscovery.k8s.io/v2"
    group = next(item for item in answer.body["items"] if item["metadata"]["name"] == "example.io")
    (found,) = group["versions"]
    assert (found["version"], found["freshness"]) == ("v1", "Current")
    kind = {"group": "example.io", "version": "v1", "kind": "Widget"}
    assert found["resources"][0] == {
        "resource": "widgets",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "widget",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"]}],
    }
    core = (await asking.get("/api")).body["items"]
    assert [item["metadata"] for item in core] == [{}]
    assert core[0]["versions"][0]["resources"][0]["shortNames"] == ["cm"]


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/json", id="plain JSON"),
        pytest.param("application/json," + AGGREGATED.format("v2"), id="plain JSON first"),
        pytest.param(AGGREGATED.format("v9") + ",application/json", id="an unknown version"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", id="protobuf, else JSON"),
        pytest.param("*/*", id="anything"),
    ],
)
async def test_a_client_that_does_not_ask_for_it_gets_the_plain_form(server: ApiServer, accept: str) -> None:
    assert (await RawClient(server, headers={"accept": accept}).get("/apis")).body["kind"] == "APIGroupList"


async def test_an_unchanged_document_is_not_sent_again(server: ApiServer) -> None:
    headers = {"accept": AGGREGATED.format("v2")}
    etag = (await RawClient(server, headers=headers).get("/apis")).headers["etag"]
    asking = RawClient(server, headers=headers | {"if-none-match": etag})
    assert (await asking.get("/apis")).status == 304
    await RawClient(server).post(DEFINITIONS, WIDGET)
    assert (await asking.get("/apis")).status == 200


async def test_the_version_of_the_server() -> None:
    body = (await RawClient(make_server()).get("/version")).body
    assert (body["major"], body["minor"], body["gitVersion"]) == ("1", "35", "v1.35.4")
