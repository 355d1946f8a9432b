"""Values against schemas, with kube-apiserver's own words for what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.correlation import Old
from hack.apiserver.schema.validation import validate

STRING = {"type": "string"}


def spec(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def texts(value: Any, schema: dict[str, Any], old: Old | None = None) -> list[str]:
    found = validate(value, schema) if old is None else validate(value, schema, old=old)
    return [str(error) for error in found]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param({"type": "string", "minLength": 1}, "a", [], id="a fitting string"),
        pytest.param(
            {"type": "string", "minLength": 1},
            "",
            ['spec.x: Invalid value: "": spec.x in body should be at least 1 chars long'],
            id="a string that is too short",
        ),
        pytest.param(
            {"type": "string", "maxLength": 2},
            "abc",
            ["spec.x: Too long: may not be more than 2 bytes"],
            id="a string that is too long",
        ),
        pytest.param(
            {"type": "string", "maxLength": 1},
            "ab",
            ["spec.x: Too long: may not be more than 1 byte"],
            id="a limit of one byte",
        ),
        pytest.param(
            {"type": "string", "pattern": "^a+$"},
            "b",
            ["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
            id="a string that does not match",
        ),
        pytest.param(
            {"type": "string", "pattern": "^a+$"},
            "a\n",
            ["spec.x: Invalid value: \"a\\n\": spec.x in body should match '^a+$'"],
            id="a line feed at the end does not match",
        ),
        pytest.param({"type": "string", "pattern": "b"}, "abc", [], id="a pattern is searched for, not anchored"),
        pytest.param(
            {"type": "string", "enum": ["a", "b"]},
            "c",
            ['spec.x: Unsupported value: "c": supported values: "a", "b"'],
            id="a string outside of the enumeration",
        ),
        pytest.param(
            {"type": "integer", "enum": [1, 2]},
            3,
            ['spec.x: Unsupported value: 3: supported values: "1", "2"'],
            id="a number outside of the enumeration",
        ),
        pytest.param(
            {"enum": [1]}, True, ['spec.x: Unsupported value: true: supported values: "1"'], id="true is not 1"
        ),
        pytest.param(
            {"type": "boolean"},
            "true",
            ['spec.x: Invalid value: "string": spec.x in body must be of type boolean: "string"'],
            id="a string for a boolean",
        ),
        pytest.param(
            {"type": "string"},
            True,
            ['spec.x: Invalid value: "boolean": spec.x in body must be of type string: "boolean"'],
            id="a boolean for a string",
        ),
        pytest.param(
            {"type": "string"},
            None,
            ['spec.x: Invalid value: "null": spec.x in body must be of type string: "null"'],
            id="null for a string",
        ),
        pytest.param({"type": "string", "nullable": True}, None, [], id="null where it is allowed"),
        pytest.param({"type": "string", "nullable": True, "enum": ["a"]}, None, [], id="null beside an enumeration"),
        pytest.param({"type": "integer"}, 3.0, [], id="a whole float for an integer"),
        pytest.param({"type": "number"}, 3, [], id="an integer for a number"),
        pytest.param(
            {"type": "integer"},
            3.5,
            ['spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"'],
            id="a fraction for an integer",
        ),
        pytest.param({"x-kubernetes-int-or-string": True}, "25%", [], id="a string for int-or-string"),
        pytest.param({"x-kubernetes-int-or-string": True}, 25, [], id="a number for int-or-string"),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            [],
            ['spec.x: Invalid value: "array": spec.x in body must be of type integer,string: "array"'],
            id="a list for int-or-string",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1},
            0,
            ["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
            id="below the minimum",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            1,
            ["spec.x: Invalid value: 1: spec.x in body should be greater than 1"],
            id="at the exclusive minimum",
        ),
        pytest.param(
            {"type": "number", "maximum": 1.5},
            2.0,
            ["spec.x: Invalid value: 2: spec.x in body should be less than or equal to 1.5"],
            id="above the maximum",
        ),
        pytest.param(
            {"type": "number", "maximum": 2, "exclusiveMaximum": True},
            2,
            ["spec.x: Invalid value: 2: spec.x in body should be less than 2"],
            id="at the exclusive maximum",
        ),
        pytest.param(
            {"type": "integer", "multipleOf": 5},
            7,
            ["spec.x: Invalid value: 7: spec.x in body should be a multiple of 5"],
            id="no multiple",
        ),
        pytest.param({"type": "integer", "format": "int32"}, 2**31, [], id="formats of numbers are no rules"),
        pytest.param(
            {"type": "string", "minLength": 1, "pattern": "a"},
            "",
            ['spec.x: Invalid value: "": spec.x in body should be at least 1 chars long'],
            id="a string is told its first fault",
        ),
        pytest.param({"type": "string", "format": "date-time"}, "2025-11-21T09:00:00Z", [], id="a time"),
        pytest.param(
            {"type": "string", "format": "date-time"},
            "yesterday",
            ['spec.x: Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"'],
            id="no time",
        ),
        pytest.param({"type": "string", "format": "nobody-knows"}, "x", [], id="an unknown format is no rule"),
        pytest.param(
            {"type": "array", "items": STRING, "minItems": 1},
            [],
            ["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
            id="too few items",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "maxItems": 1},
            ["a", "b"],
            ["spec.x: Too many: 2: must have at most 1 item"],
            id="too many items",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string", "minLength": 1}},
            ["a", ""],
            ['spec.x[1]: Invalid value: "": spec.x[1] in body should be at least 1 chars long'],
            id="an item at its index",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"a": 1, "b": "c"},
            ['spec.x.b: Invalid value: "string": spec.x.b in body must be of type integer: "string"'],
            id="a map's entry at its key",
        ),
        pytest.param(
            {"type": "object", "maxProperties": 1},
            {"a": 1, "b": 2},
            ["spec.x: Too many: 2: must have at most 1 item"],
            id="too many entries",
        ),
        pytest.param(
            {"type": "object", "minProperties": 1},
            {},
            ["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
            id="too few entries",
        ),
        pytest.param(
            {"type": "object", "required": ["a"]}, {}, ["spec.x.a: Required value"], id="a field that must be there"
        ),
        pytest.param(
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            [
                '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
                "spec.x.a: Required value",
            ],
            id="none of anyOf",
        ),
        pytest.param({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}, [], id="one of anyOf"),
        pytest.param(
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": 1, "b": 1},
            [
                (
                    '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). '
                    "Found 2 valid alternatives"
                )
            ],
            id="two of oneOf",
        ),
        pytest.param(
            {"oneOf": [{"required": ["a"]}]},
            {},
            [
                '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid',
                "spec.x.a: Required value",
            ],
            id="none of oneOf",
        ),
        pytest.param(
            {"allOf": [{"required": ["a"]}]},
            {},
            [
                "spec.x.a: Required value",
                '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)',
            ],
            id="not all of allOf",
        ),
        pytest.param(
            {"not": {"required": ["a"]}},
            {"a": 1},
            ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)'],
            id="what must not be",
        ),
    ],
)
def test_a_value_is_judged_by_its_schema(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert texts({"spec": {"x": value}}, spec(x=schema)) == expected


def test_a_missing_field_of_the_object_itself_has_a_plain_path() -> None:
    assert texts({}, {"type": "object", "required": ["spec"]}) == ["spec: Required value"]


def test_all_findings_are_reported() -> None:
    schema = spec(a={"type": "string", "minLength": 1}, b={"type": "boolean"})
    assert len(texts({"spec": {"a": "", "b": 1}}, schema)) == 2


def test_an_update_is_not_held_to_what_it_leaves_as_it_was() -> None:
    schema = spec(a={"type": "string", "minLength": 1}, b=STRING)
    stored = Old(present=True, value={"spec": {"a": "", "b": "x"}})
    assert texts({"spec": {"a": "", "b": "y"}}, schema, stored) == []


def test_an_update_is_held_to_what_it_changes() -> None:
    schema = spec(a={"type": "string", "minLength": 3})
    stored = Old(present=True, value={"spec": {"a": ""}})
    assert len(texts({"spec": {"a": "x"}}, schema, stored)) == 1


def test_an_item_of_a_map_list_is_compared_with_the_one_of_its_key() -> None:
    item = {"type": "object", "properties": {"name": STRING, "value": {"type": "string", "minLength": 1}}}
    schema = spec(x={"type": "array", "items": item, "x-kubernetes-list-map-keys": ["name"]})
    stored = Old(present=True, value={"spec": {"x": [{"name": "a", "value": ""}]}})
    changed = {"spec": {"x": [{"name": "b", "value": "1"}, {"name": "a", "value": ""}]}}
    assert texts(changed, schema, stored) == []
