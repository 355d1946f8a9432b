"""Discovery documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import DEFINITIONS, WIDGET
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


async def test_core_versions_are_listed(wire: RawClient) -> None:
    body = (await wire.get("/api")).body
    assert (body["kind"], body["versions"]) == ("APIVersions", ["v1"])


async def test_reviews_can_only_be_created(wire: RawClient) -> None:
    body = (await wire.get("/apis/authorization.k8s.io/v1")).body
    assert {tuple(resource["verbs"]) for resource in body["resources"]} == {("create",)}


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/json", id="JSON"),
        pytest.param("application/json," + AGGREGATED.format("v2"), id="JSON first"),
        pytest.param(AGGREGATED.format("v9") + ",application/json", id="unknown version"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", id="protobuf, else JSON"),
        pytest.param("*/*", id="anything"),
    ],
)
async def test_plain_discovery_is_the_default(server: ApiServer, accept: str) -> None:
    assert (await RawClient(server, headers={"accept": accept}).get("/apis")).body["kind"] == "APIGroupList"


async def test_unchanged_document_is_not_sent_again(server: ApiServer) -> None:
    headers = {"accept": AGGREGATED.format("v2")}
    etag = (await RawClient(server, headers=headers).get("/apis")).headers["etag"]
    asking = RawClient(server, headers=headers | {"if-none-match": etag})
    assert (await asking.get("/apis")).status == 304
    await RawClient(server).post(DEFINITIONS, WIDGET)
    assert (await asking.get("/apis")).status == 200
