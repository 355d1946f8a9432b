"""Collections that are deleted."""
# what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import CUSTOM, HELD, MAPS, WIDGET
from tests.support.conformance_rows import Row, answered, delete, get, play, post
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
    Row(
        title="a collection is deleted by labels",
        given=(
            post(MAPS, {"metadata": {"name": "one", "labels": {"a": "b"}}}),
            post(MAPS, {"metadata": {"name": "two"}}),
        ),
        when=delete(MAPS, labelSelector="a=b"),
        look=("kind", "apiVersion", "items.0.metadata.name", "items.1", "status"),
        then=answered(
            200,
            **{
                "kind": "ConfigMapList",
                "apiVersion": "v1",
                "items.0.metadata.name": "one",
                "items.1": "absent",
                "status": "absent",
            },
        ),
    ),
    Row(
        title="a collection that is deleted by labels keeps the rest",
        given=(
            post(MAPS, {"metadata": {"name": "one", "labels": {"a": "b"}}}),
            post(MAPS, {"metadata": {"name": "two"}}),
            delete(MAPS, labelSelector="a=b"),
        ),
        when=get(f"{MAPS}/two"),
        look=("metadata.name",),
        then=answered(200, **{"metadata.name": "two"}),
    ),
    Row(
        title="a custom collection is deleted",
        given=(post(WIDGETS, widget("a")), post(WIDGETS, widget("b"))),
        when=delete(WIDGETS),
        look=("kind", "apiVersion", "items.0.metadata.name", "items.1.metadata.name", "items.2"),
        then=answered(
            200,
            **{
                "kind": "WidgetList",
                "apiVersion": "shapes.example.io/v1",
                "items.0.metadata.name": "a",
                "items.1.metadata.name": "b",
                "items.2": "absent",
            },
        ),
    ),
    Row(
        title="a deleted collection keeps what finalizers hold",
        given=HELD,
        when=delete(MAPS, labelSelector="!x", fieldSelector="metadata.name=one"),
        look=("items.0.metadata.finalizers", "items.0.metadata.deletionTimestamp"),
        then=answered(
            200, **{"items.0.metadata.finalizers": ["a.io/b"], "items.0.metadata.deletionTimestamp": "absent"}
        ),
    ),
    Row(
        title="a dry run of a collection deletes nothing",
        given=(*CUSTOM, delete(WIDGETS, dryRun="All")),
        when=get(WIDGET),
        look=("metadata.deletionTimestamp",),
        then=answered(200, **{"metadata.deletionTimestamp": "absent"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_deleted_collection(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
