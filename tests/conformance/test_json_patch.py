"""Patches that are lists of operations."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, conflict, invalid, json_patch, play, post, refused
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
    """On a ConfigMap."""
    return Row(
        title=title, given=ONE, when=json_patch(MAP, list(operations)), look=("data", "metadata.annotations"), then=then
    )


def _changed(title: str, *operations: object, then: object = None) -> Row:
    """On a Widget."""
    return Row(title=title, given=_WIDGET, when=json_patch(WIDGET, list(operations)), look=("spec",), then=then)


def _op(op: str, path: str, value: object = None, **more: object) -> dict[str, object]:
    return {"op": op, "path": path} | ({} if value is None else {"value": value}) | more


ROWS = [
    _patched(
        "add makes a member",
        _op("add", "/data/e", "f"),
        then=answered(200, **{"data": {"a": "b", "c": "d", "e": "f"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "add replaces a member",
        _op("add", "/data/a", "f"),
        then=answered(200, **{"data": {"a": "f", "c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "a slash in a key is written with a tilde",
        _op("replace", "/metadata/annotations/a.io~1b", "2"),
        then=answered(200, **{"data": {"a": "b", "c": "d"}, "metadata.annotations": {"a.io/b": "2"}}),
    ),
    _patched(
        "remove takes a member away",
        _op("remove", "/data/a"),
        then=answered(200, **{"data": {"c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "remove of what is not there is refused",
        _op("remove", "/data/x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "remove below what is not there is refused",
        _op("remove", "/binaryData/x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "replace of what is not there is refused",
        _op("replace", "/data/x", "y"),
        then=answered(200, **{"data": {"a": "b", "c": "d", "x": "y"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "add below what is not there is refused",
        _op("add", "/binaryData/x", "eA=="),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "move takes a member elsewhere",
        _op("move", "/data/z", **{"from": "/data/a"}),
        then=answered(200, **{"data": {"c": "d", "z": "b"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "copy doubles a member",
        _op("copy", "/data/z", **{"from": "/data/a"}),
        then=answered(200, **{"data": {"a": "b", "c": "d", "z": "b"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "copy from what is not there is refused",
        _op("copy", "/data/z", **{"from": "/data/x"}),
        then=answered(200, **{"data": {"a": "b", "c": "d", "z": ""}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "a test that holds lets the rest happen",
        _op("test", "/data/a", "b"),
        _op("remove", "/data/c"),
        then=answered(200, **{"data": {"a": "b"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "a test that fails refuses all",
        _op("remove", "/data/c"),
        _op("test", "/data/a", "x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "a test of what is not there fails",
        _op("test", "/data/x", "x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "a test for null holds where nothing is",
        {"op": "test", "path": "/data/x", "value": None},
        then=answered(200, **{"data": {"a": "b", "c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "a test for null fails where something is",
        {"op": "test", "path": "/data/a", "value": None},
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "the whole object can be tested member by member",
        _op("test", "/data", {"a": "b", "c": "d"}),
        then=answered(200, **{"data": {"a": "b", "c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "an operation that nobody knows is refused",
        _op("grow", "/data/a", "x"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "an operation without a path is refused",
        {"op": "remove"},
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _patched(
        "an add without a value is refused",
        {"op": "add", "path": "/data/x"},
        then=answered(200, **{"data": {"a": "b", "c": "d", "x": ""}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "a pointer without a slash is refused",
        _op("add", "data/x", "y"),
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d"},
                "metadata.annotations": {"a.io/b": "1"},
                "warnings": ['unknown field "x"'],
            },
        ),
    ),
    _patched(
        "no operations change nothing",
        then=answered(200, **{"data": {"a": "b", "c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "a member of the wrong type is refused",
        _op("add", "/data/x", 5),
        then=invalid(
            "",
            (
                "patch",
                "Invalid value: $object: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            ),
            name="",
        ),
    ),
    _patched(
        "the name cannot change",
        _op("replace", "/metadata/name", "two"),
        then=refused(400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)", None),
    ),
    _patched(
        "the namespace cannot change",
        _op("replace", "/metadata/namespace", "two"),
        then=refused(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            None,
        ),
    ),
    _patched(
        "the uid cannot change",
        _op("replace", "/metadata/uid", "two"),
        then=invalid("ConfigMap", ("metadata.uid", 'Invalid value: "two": field is immutable')),
    ),
    _patched(
        "the kind cannot change",
        _op("replace", "/kind", "Endpoints"),
        then=invalid(
            "",
            ("patch", "Invalid value: $object: converting (v1.Endpoints) to (core.ConfigMap): unknown conversion"),
            name="",
        ),
    ),
    _patched(
        "an old resourceVersion is a conflict",
        _op("replace", "/metadata/resourceVersion", "1"),
        then=conflict(
            "configmaps", "the object has been modified; please apply your changes to the latest version and try again"
        ),
    ),
    _patched(
        "the resourceVersion may be taken away",
        _op("remove", "/metadata/resourceVersion"),
        _op("remove", "/data/a"),
        then=answered(200, **{"data": {"c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _patched(
        "metadata may not be taken away",
        _op("remove", "/metadata"),
        then=refused(
            400,
            "BadRequest",
            "the name of the object (one based on URL) was undeterminable: name must be provided",
            None,
        ),
    ),
    _patched(
        "the creation time is kept",
        _op("remove", "/metadata/creationTimestamp"),
        _op("remove", "/data/a"),
        then=answered(200, **{"data": {"c": "d"}, "metadata.annotations": {"a.io/b": "1"}}),
    ),
    _changed(
        "a dash adds at the end of a list",
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
    _changed(
        "a number inserts into a list",
        _op("add", "/spec/names/0", "z"),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["z", "x", "y"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "a number replaces in a list",
        _op("replace", "/spec/names/1", "z"),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x", "z"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "a number removes from a list",
        _op("remove", "/spec/names/0"),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["y"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "a number beyond the end is refused",
        _op("remove", "/spec/names/5"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _changed(
        "an insert beyond the end is refused",
        _op("add", "/spec/names/5", "z"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _changed(
        "an insert at the end is taken",
        _op("add", "/spec/names/2", "z"),
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
    _changed(
        "a word is no place in a list",
        _op("add", "/spec/names/x", "z"),
        then=refused(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    ),
    _changed(
        "a negative number counts from the end",
        _op("remove", "/spec/names/-1"),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "a member may become null where it is nullable",
        {"op": "add", "path": "/spec/nothing", "value": None},
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x", "y"],
                "nested": {"level": 3},
                "nothing": None,
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "a member that may not be null goes",
        {"op": "add", "path": "/spec/word", "value": None},
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x", "y"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "an unknown field goes with a warning",
        _op("add", "/spec/strange", "x"),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": 1}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x", "y"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
            warnings=['unknown field "spec.strange"'],
        ),
    ),
    _changed(
        "a value that breaks the schema is refused",
        _op("add", "/spec/size", 99),
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.size", "Invalid value: 99: spec.size in body should be less than or equal to 10"),
        ),
    ),
    _changed(
        "a value of the wrong type is refused",
        _op("add", "/spec/size", "x"),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.size",
                'Invalid value: "string": spec.size in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            ),
        ),
    ),
    _changed(
        "deep members are reached",
        _op("replace", "/spec/free/deep/er", [1, {"a": None}]),
        then=answered(
            200,
            spec={
                "free": {"deep": {"er": [1, {"a": None}]}, "list": [1, 2, 3]},
                "mode": "slow",
                "names": ["x", "y"],
                "nested": {"level": 3},
                "options": {"n": 1},
            },
        ),
    ),
    _changed(
        "a label of the wrong type is refused",
        _op("add", "/metadata/labels", {"a": 1}),
        then=invalid(
            "",
            (
                "patch",
                "Invalid value: $object: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            name="",
        ),
    ),
    _changed(
        "metadata of a custom object may not be taken away",
        _op("remove", "/metadata"),
        then=refused(
            400,
            "BadRequest",
            "the name of the object (one based on URL) was undeterminable: name must be provided",
            None,
        ),
    ),
    _changed(
        "the name of a custom object cannot change",
        _op("replace", "/metadata/name", "two"),
        then=refused(400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)", None),
    ),
    _changed(
        "the kind of a custom object cannot change",
        _op("replace", "/kind", "Plain"),
        then=invalid("Plain.shapes.example.io", ("kind", 'Invalid value: "Plain": must be Widget')),
    ),
    _changed(
        "the uid of a custom object cannot change",
        _op("replace", "/metadata/uid", "two"),
        then=invalid("Widget.shapes.example.io", ("metadata.uid", 'Invalid value: "two": field is immutable')),
    ),
    _changed(
        "the apiVersion of a custom object cannot change",
        _op("replace", "/apiVersion", "a.io/v1"),
        then=invalid("Widget.a.io", ("apiVersion", 'Invalid value: "a.io/v1": must be shapes.example.io/v1')),
    ),
    Row(
        title="an object instead of a list is refused",
        given=ONE,
        when=json_patch(MAP, {"op": "remove", "path": "/data"}),
        then=refused(
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            None,
        ),
    ),
    Row(
        title="a text in the list is refused",
        given=ONE,
        when=json_patch(MAP, ["remove"]),
        then=refused(
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
            None,
        ),
    ),
    Row(
        title="a number is no patch",
        given=ONE,
        when=json_patch(MAP, 5),
        then=refused(
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal number into Go value of type []handlers.jsonPatchOp",
            None,
        ),
    ),
    Row(
        title="null is no patch",
        given=ONE,
        when=json_patch(MAP, b"null"),
        look=("data",),
        then=answered(200, data={"a": "b", "c": "d"}),
    ),
    Row(
        title="what is no JSON is refused",
        given=ONE,
        when=json_patch(MAP, b"[{]"),
        then=refused(
            400,
            "BadRequest",
            "error decoding patch: invalid character ']' looking for beginning of object key string",
            None,
        ),
    ),
    Row(
        title="an empty body is refused",
        given=ONE,
        when=json_patch(MAP, b""),
        then=refused(400, "BadRequest", "error decoding patch: unexpected end of JSON input", None),
    ),
    Row(
        title="more than 10000 operations are refused",
        given=ONE,
        when=json_patch(MAP, [_op("test", "/data/a", "b")] * 10001),
        then=refused(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
            None,
        ),
    ),
    Row(
        title="a patch that changes nothing keeps the resourceVersion",
        given=ONE,
        when=json_patch(MAP, [_op("replace", "/data/a", "b")]),
        look=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="a patch of a custom object with an object instead of a list is refused",
        given=_WIDGET,
        when=json_patch(WIDGET, {}),
        then=refused(
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            None,
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_json_patch(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
