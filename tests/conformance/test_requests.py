"""Requests that are refused before the object is read."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import ApiCall, Row, answered, play, post, put, refused
from tests.support.shapes import PLAINS, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

# aiohttp warns about large bodies.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore:Sending a large body")]

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
ONE = {"metadata": {"name": "one"}}
GIVEN = (post(MAPS, ONE),)


def _raw(method: str, path: str, body: bytes | None, media_type: str = "application/json") -> ApiCall:
    return ApiCall(method=method, path=path, body=body, media_type=media_type)


ROWS = [
    Row(
        title="unknown patch media type is refused",
        given=(post(WIDGETS, widget()),),
        when=_raw("PATCH", f"{WIDGETS}/one", b"{}", "application/json"),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            None,
        ),
    ),
    Row(
        title="unknown group is not found",
        when=post("/apis/none.io/v1/things", {}),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="unknown version is not found",
        when=post("/apis/apps/v7/namespaces/$ns/deployments", {}),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="unknown kind is not found",
        when=post("/api/v1/namespaces/$ns/things", {}),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="unknown subresource is not found",
        given=GIVEN,
        when=put(f"{MAP}/things", {}),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="object larger than etcd's limit is refused",
        when=post(PLAINS, plain(spec={}, status={"phase": "b" * 2000000})),
        then=refused(500, "", "etcdserver: request is too large", None),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_request(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
