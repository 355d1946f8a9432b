"""JSON patches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, conflict, json_patch, play, post, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
WIDGET = f"{WIDGETS}/one"
_MAP = {"metadata": {"name": "one", "annotations": {"a.io/b": "1"}}, "data": {"a": "b", "c": "d"}}
ONE = (post(MAPS, _MAP),)
_WIDGET = (post(WIDGETS, widget(names=["x", "y"], options={"n": 1}, free={"list": [1, 2, 3], "deep": {"er": 1}})),)


def _patched(title: str, *operations: object, then: object = None) -> Row:
    """Patch a ConfigMap."""
    return Row(
        title=title,
        given=ONE,
        when=json_patch(MAP, list(operations)),
        fields=("data", "metadata.annotations"),
        then=then,
    )


def _changed(title: str, *operations: object, then: object = None) -> Row:
    """Patch a Widget."""
    return Row(title=title, given=_WIDGET, when=json_patch(WIDGET, list(operations)), fields=("spec",), then=then)


def _op(op: str, path: str, value: object = None, **more: object) -> dict[str, object]:
    return {"op": op, "path": path} | ({} if value is None else {"value": value}) | more


ROWS = [
    _patched(
        "add creates a member",
        _op("add", "/data/e", "f"),
        then=answered(200, **{"data": {"a": "b", "c": "d", "e": "f"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "tilde escapes a slash in a key",
        _op("replace", "/metadata/annotations/a.io~1b", "2"),
        then=answered(200, **{"data": {"a": "b", "c": "d"}, "metadata.annotations": {"a.io/b": "2"}}),
    ),
    _patched(
        "remove deletes a member",
        _op("remove", "/data/a"),
        then=answered(200, **{"data": {"c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "remove of a missing member is refused",
        _op("remove", "/data/x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "passing test applies the other operations",
        _op("test", "/data/a", "b"),
        _op("remove", "/data/c"),
        then=answered(200, **{"data": {"a": "b"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "failing test refuses all operations",
        _op("remove", "/data/c"),
        _op("test", "/data/a", "x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "old resourceVersion is a conflict",
        _op("replace", "/metadata/resourceVersion", "1"),
        then=conflict(
            "configmaps", "the object has been modified; please apply your changes to the latest version and try again"
        ),
    ),
    _changed(
        "dash appends to a list",
        _op("add", "/spec/names/-", "z"),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x", "y", "z"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    Row(
        title="no-op patch keeps the resourceVersion",
        given=ONE,
        when=json_patch(MAP, [_op("replace", "/data/a", "b")]),
        fields=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_json_patch(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
