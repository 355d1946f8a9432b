"""Response formats: full objects, metadata only, Tables."""

from __future__ import annotations

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.raw_client import RawClient

pytestmark = pytest.mark.servers


def form(name: str) -> str:
    return f"application/json;as={name};v=v1;g=meta.k8s.io"


TABLE, METADATA, METADATA_LIST = form("Table"), form("PartialObjectMetadata"), form("PartialObjectMetadataList")
META = "meta.k8s.io/v1"


def asking(api: BareApi, accept: str) -> RawClient:
    return RawClient(api.transport, headers={"accept": accept})


async def secret(api: BareApi) -> str:
    path = api.path("secrets")
    await api.admin.post(path, {"metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": ""}})
    return path


@pytest.mark.parametrize(
    ("accept", "one", "many"),
    [
        pytest.param("", "Secret", "SecretList", id="nothing"),
        pytest.param("*/*", "Secret", "SecretList", id="anything"),
        pytest.param("application/cbor,application/json", "Secret", "SecretList", id="CBOR, else JSON"),
        pytest.param(TABLE, "Table", "Table", id="a Table"),
        pytest.param(f"{TABLE},application/json", "Table", "Table", id="a Table, else JSON"),
    ],
)
async def test_first_supported_format_is_returned(api: BareApi, accept: str, one: str, many: str) -> None:
    path = await secret(api)
    for answer, kind in (
        (await asking(api, accept).get(f"{path}/a"), one),
        (await asking(api, accept).get(path), many),
    ):
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.body["kind"] == kind
        assert answer.body["apiVersion"] == (META if kind == "Table" else "v1")


@pytest.mark.parametrize(
    "accept", ["text/html", "application/*", "application/cbor", "garbage", form("Foo"), form("Table;v=v9")]
)
@pytest.mark.parametrize("name", ["", "a"])
async def test_unsupported_format_is_not_acceptable(api: BareApi, accept: str, name: str) -> None:
    path = await secret(api)
    answer = await asking(api, accept.replace(";v=v9;v=v1", ";v=v9")).get(f"{path}/{name}".rstrip("/"))
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (406, "NotAcceptable", 406)
    assert "application/json" in answer.body["message"]


async def test_metadata_of_a_list(api: BareApi) -> None:
    path = await secret(api)
    answer = await asking(api, METADATA_LIST).get(path, fieldSelector="metadata.name=a")
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("PartialObjectMetadataList", META)
    (item,) = answer.body["items"]
    assert set(item) - {"kind", "apiVersion"} == {"metadata"}
    assert item["metadata"]["labels"] == {"app": "x"}
    assert answer.version


@pytest.mark.parametrize(
    ("include", "kind"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("", "PartialObjectMetadata"), ("Object", "Secret")],
)
async def test_include_object_selects_the_row_object(api: BareApi, include: str, kind: str | None) -> None:
    path = await secret(api)
    table = (await asking(api, TABLE).get(path, fieldSelector="metadata.name=a", includeObject=include)).body
    assert (table["rows"][0]["object"] or {}).get("kind") == kind


async def test_table_watch_sends_column_definitions_once(api: BareApi) -> None:
    path = await secret(api)
    await api.admin.post(path, {"metadata": {"name": "b"}})
    await api.admin.get(path)
    async with asking(api, TABLE).watch(path, timeoutSeconds="1") as events:
        tables = [event["object"] for event in await events.rest()]
    assert [table["rows"][0]["cells"][0] for table in tables] == ["a", "b"]
    assert [len(table["columnDefinitions"] or []) for table in tables] == [4, 0]
