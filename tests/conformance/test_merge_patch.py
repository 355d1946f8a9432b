"""Merge patches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, conflict, invalid, merge, play, post, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
WIDGET = f"{WIDGETS}/one"
ONE = (
    post(
        MAPS,
        {"metadata": {"name": "one", "labels": {"l": "m"}, "finalizers": ["a.io/b"]}, "data": {"a": "b", "c": "d"}},
    ),
)
_WIDGET = (post(WIDGETS, widget(names=["x", "y"], options={"n": 1}, free={"list": [1, 2, 3], "deep": {"er": 1}})),)


def _patched(title: str, patch: object, then: object) -> Row:
    """Patch a ConfigMap."""
    return Row(
        title=title,
        given=ONE,
        when=merge(MAP, patch),
        fields=("data", "metadata.labels", "metadata.finalizers"),
        then=then,
    )


def _changed(title: str, patch: object, then: object) -> Row:
    """Patch a Widget."""
    return Row(title=title, given=_WIDGET, when=merge(WIDGET, patch), fields=("spec", "metadata.generation"), then=then)


ROWS = [
    _patched(
        "members are merged",
        {"data": {"e": "f"}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d", "e": "f"},
                "metadata.labels": {"l": "m"},
                "metadata.finalizers": ["a.io/b"],
            },
        ),
    ),
    _patched(
        "null removes a member",
        {"data": {"a": None}},
        then=answered(200, **{"data": {"c": "d"}, "metadata.labels": {"l": "m"}, "metadata.finalizers": ["a.io/b"]}),
    ),
    _patched(
        "null removes a map",
        {"data": None},
        then=answered(200, **{"data": "absent", "metadata.labels": {"l": "m"}, "metadata.finalizers": ["a.io/b"]}),
    ),
    _patched(
        "list is replaced",
        {"metadata": {"finalizers": ["c.io/d"]}},
        then=answered(
            200, **{"data": {"a": "b", "c": "d"}, "metadata.labels": {"l": "m"}, "metadata.finalizers": ["c.io/d"]}
        ),
    ),
    _patched(
        "old resourceVersion is a conflict",
        {"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}},
        then=conflict(
            "configmaps", "the object has been modified; please apply your changes to the latest version and try again"
        ),
    ),
    _patched(
        "current resourceVersion is accepted",
        {"metadata": {"resourceVersion": "$0.metadata.resourceVersion"}, "data": {"x": "y"}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d", "x": "y"},
                "metadata.labels": {"l": "m"},
                "metadata.finalizers": ["a.io/b"],
            },
        ),
    ),
    _patched(
        "wrong uid is refused",
        {"metadata": {"uid": "other"}},
        then=invalid("ConfigMap", ("metadata.uid", 'Invalid value: "other": field is immutable')),
    ),
    _changed(
        "members of a custom object are merged",
        {"spec": {"options": {"m": 2}, "size": 5}},
        then=answered(
            200,
            **{
                "spec": {
                    "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                    "mode": "slow",
                    "names": ["x", "y"],
                    "nested": {"level": 3},
                    "options": {"m": 2, "n": 1},
                    "size": 5,
                },
                "metadata.generation": 2,
            },
        ),
    ),
    _changed(
        "nulls inside a new object are dropped",
        {"spec": {"free": {"new": {"a": None, "b": 1}}}},
        then=answered(
            200,
            **{
                "spec": {
                    "free": {"deep": {"er": 1}, "list": [1, 2, 3], "new": {"b": 1}},
                    "mode": "slow",
                    "names": ["x", "y"],
                    "nested": {"level": 3},
                    "options": {"n": 1},
                },
                "metadata.generation": 2,
            },
        ),
    ),
    _changed(
        "unknown field is dropped with a warning",
        {"spec": {"strange": 1}},
        then=answered(
            200,
            **{
                "spec": {
                    "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                    "mode": "slow",
                    "names": ["x", "y"],
                    "nested": {"level": 3},
                    "options": {"n": 1},
                },
                "metadata.generation": 1,
                "warnings": ['unknown field "spec.strange"'],
            },
        ),
    ),
    _changed(
        "default is restored when its field is removed",
        {"spec": {"mode": None}},
        then=answered(
            200,
            **{
                "spec": {
                    "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                    "mode": "slow",
                    "names": ["x", "y"],
                    "nested": {"level": 3},
                    "options": {"n": 1},
                },
                "metadata.generation": 1,
            },
        ),
    ),
    _changed(
        "value that violates the schema is refused",
        {"spec": {"size": 99, "colour": "blue"}},
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"'),
            ("spec.size", "Invalid value: 99: spec.size in body should be less than or equal to 10"),
        ),
    ),
    Row(
        title="no-op patch keeps the resourceVersion",
        given=ONE,
        when=merge(MAP, {"data": {"a": "b"}}),
        fields=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="missing object is not found",
        when=merge(MAP, {"data": {}}),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_merge_patch(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
