from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.structural import validate_structural

STRING = {"type": "string"}


def texts(**keywords: Any) -> list[str]:
    """Findings about a root with these keywords, without the root's path."""
    return [str(error).removeprefix("s.") for error in validate_structural({"type": "object"} | keywords, "s")]


def prop(**keywords: Any) -> list[str]:
    """Findings about a property with these keywords, without its path."""
    return [text.removeprefix("properties[x].") for text in texts(properties={"x": keywords})]


def rule(source: str, **more: Any) -> list[str]:
    """Findings about a rule on an object with one field `a`."""
    found = prop(type="object", properties={"a": STRING}, **{"x-kubernetes-validations": [{"rule": source, **more}]})
    return [text.removeprefix("x-kubernetes-validations[0].") for text in found]


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        pytest.param({"properties": {"spec": {"type": "object"}}}, [], id="a sound schema"),
        pytest.param({"type": ""}, ["type: Required value: must not be empty at the root"], id="no type at the root"),
        pytest.param(
            {"type": "array", "items": STRING},
            ['type: Invalid value: "array": must be object at the root'],
            id="a list at the root",
        ),
        pytest.param({"properties": {"metadata": {"type": "object"}}}, [], id="metadata without rules"),
        pytest.param(
            {"properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
            [
                (
                    "properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
                    "but metadata is implicitly specified"
                )
            ],
            id="metadata with rules",
        ),
    ],
)
def test_the_root(keywords: dict[str, Any], expected: list[str]) -> None:
    assert texts(**keywords) == expected


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        pytest.param({}, ["type: Required value: must not be empty for specified object fields"], id="no type"),
        pytest.param({"x-kubernetes-int-or-string": True}, [], id="int-or-string needs none"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, [], id="nor does what is preserved"),
        pytest.param(
            {"type": "text"},
            [
                (
                    'type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", '
                    '"object", "string"'
                )
            ],
            id="an unknown type",
        ),
        pytest.param({"type": "array"}, ["items: Required value: must be specified"], id="a list of nothing"),
        pytest.param(
            {"type": "array", "items": {}},
            ["items.type: Required value: must not be empty for specified array items"],
            id="a list of anything",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {}},
            ["additionalProperties.type: Required value: must not be empty for specified object fields"],
            id="a map of anything",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING},
            ["additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
            id="fields and a map",
        ),
        pytest.param({"type": "string", "$ref": "#/x"}, ["$ref: Forbidden: $ref is not supported"], id="a reference"),
        pytest.param(
            {"type": "array", "items": STRING, "uniqueItems": True},
            [
                (
                    "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes "
                    "quadratic"
                )
            ],
            id="unique items",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            ["x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
            id="preserving nothing",
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-list-type": "set"},
            ['type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'],
            id="a list type without a list",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"},
            ['x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
            id="an unknown list type",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
            ["x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"],
            id="a map without keys",
        ),
        pytest.param(
            {"type": "array", "items": STRING, "x-kubernetes-list-map-keys": ["a"]},
            ['x-kubernetes-list-type: Invalid value: "": must be map if x-kubernetes-list-map-keys is non-empty'],
            id="keys without a map",
        ),
        pytest.param(
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": STRING}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b"],
            },
            [
                (
                    "items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, "
                    "so it must have a default or be a required property"
                ),
                'x-kubernetes-list-map-keys: Invalid value: ["a","b"]: entries must all be names of item properties',
            ],
            id="keys that may be absent",
        ),
        pytest.param(
            {"type": "string", "anyOf": [{"type": "object"}, {"description": "x"}]},
            [
                "anyOf[0].type: Forbidden: must be empty to be structural",
                "anyOf[1].description: Forbidden: must be empty to be structural",
            ],
            id="types inside of anyOf",
        ),
        pytest.param({"type": "object", "not": {"required": ["a"]}}, [], id="required inside of not"),
    ],
)
def test_a_property(keywords: dict[str, Any], expected: list[str]) -> None:
    assert prop(**keywords) == expected


def test_a_pattern_must_be_one() -> None:
    (found,) = prop(type="string", pattern="(")
    assert found.startswith('pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: ')


@pytest.mark.parametrize(
    ("source", "more", "expected"),
    [
        pytest.param("has(self.a) && self.a.startsWith('x')", {}, [], id="a sound rule"),
        pytest.param("'self.nosuch' != self.a", {}, [], id="what stands in quotes is no field"),
        pytest.param(" ", {}, ["rule: Required value: rule is not specified"], id="no rule"),
        pytest.param(
            "true", {"message": " "}, ['message: Invalid value: " ": must be non-empty if specified'], id="no message"
        ),
        pytest.param(
            "true",
            {"message": "a\nb"},
            ['message: Invalid value: "a\\nb": must not contain line breaks'],
            id="two lines",
        ),
        pytest.param(
            "true\n&& true",
            {},
            ["message: Required value: message must be specified if rule contains line breaks"],
            id="a rule of two lines",
        ),
        pytest.param(
            "true",
            {"reason": "Because"},
            [
                (
                    'reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", '
                    '"FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
                )
            ],
            id="an unknown reason",
        ),
        pytest.param(
            "true",
            {"optionalOldSelf": True},
            ["optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"],
            id="an optional oldSelf that is not used",
        ),
        pytest.param(
            "has(self.b)",
            {},
            [
                (
                    'rule: Invalid value: {"Rule":"has(self.b)","Message":"","MessageExpression":"","Reason":null,'
                    '"FieldPath":"","OptionalOldSelf":null}: compilation failed: '
                    "ERROR: <input>:1:9: undefined field 'b'\n | has(self.b)\n | ........^"
                )
            ],
            id="a field that is not there",
        ),
    ],
)
def test_a_rule(source: str, more: dict[str, Any], expected: list[str]) -> None:
    assert rule(source, **more) == expected


def test_a_rule_that_is_no_cel() -> None:
    (found,) = rule("has(self.")
    assert found.startswith('rule: Invalid value: {"Rule":"has(self.",')
