"""Which schemas and rules a CustomResourceDefinition may have."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, play, post
from tests.support.gadgets import DEFINITIONS, gadget, unfit

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


def _schema(title: str, then: object, **properties: object) -> Row:
    return Row(
        title=title,
        when=post(
            DEFINITIONS,
            gadget({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
        ),
        look=("spec.versions.0.schema.openAPIV3Schema.properties.spec",),
        then=then,
    )


def _rule(title: str, then: object, rule: dict[str, object], **more: object) -> Row:
    return _schema(
        title,
        then,
        a={"type": "string", "maxLength": 10},
        n={"type": "integer"},
        x={"type": "object", "properties": {"b": {"type": "string"}}, "x-kubernetes-validations": [rule]} | more,
    )


ROWS = [
    Row(
        title="a schema without a type is refused",
        when=post(DEFINITIONS, gadget({"properties": {}})),
        then=unfit(
            ("spec.validation.openAPIV3Schema.type", "Required value: must not be empty at the root"),
        ),
    ),
    Row(
        title="a schema that is no object is refused",
        when=post(DEFINITIONS, gadget({"type": "string"})),
        then=unfit(
            ("spec.validation.openAPIV3Schema.type", 'Invalid value: "string": must be object at the root'),
        ),
    ),
    Row(
        title="a schema that describes metadata is refused",
        when=post(
            DEFINITIONS,
            gadget(
                {
                    "type": "object",
                    "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
                }
            ),
        ),
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[metadata]",
                "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ),
        ),
    ),
    _schema(
        "a field without a type",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].type",
                "Required value: must not be empty for specified object fields",
            ),
        ),
        a={},
    ),
    _schema(
        "a field of an unknown type",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].type",
                'Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
            ),
        ),
        a={"type": "text"},
    ),
    _schema(
        "a list without items",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items",
                "Required value: must be specified",
            ),
        ),
        a={"type": "array"},
    ),
    _schema(
        "a list with items without a type",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.type",
                "Required value: must not be empty for specified array items",
            ),
        ),
        a={"type": "array", "items": {}},
    ),
    _schema(
        "properties and additionalProperties together",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].additionalProperties",
                "Forbidden: additionalProperties and properties are mutual exclusive",
            ),
        ),
        a={"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}},
    ),
    _schema(
        "a pattern that is none",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].pattern",
                'Invalid value: "(a": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(a`',
            ),
        ),
        a={"type": "string", "pattern": "(a"},
    ),
    _schema(
        "a type inside anyOf",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].anyOf[0].type",
                "Forbidden: must be empty to be structural",
            ),
        ),
        a={"type": "string", "anyOf": [{"type": "string"}]},
    ),
    _schema(
        "a default that breaks the schema",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
                "Too long: may not be more than 2 bytes",
            ),
        ),
        a={"type": "string", "maxLength": 2, "default": "long"},
    ),
    _schema(
        "a default of the wrong type",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
                'Invalid value: "string":  in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            ),
        ),
        a={"type": "integer", "default": "long"},
    ),
    _schema(
        "a default with unknown fields",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
                'Invalid value: {"c":"d"}: must not have unknown fields',
            ),
        ),
        a={"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": "d"}},
    ),
    _schema(
        "a set of objects",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-map-type",
                "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ),
        ),
        a={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
    ),
    _schema(
        "a map without keys",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys",
                "Required value: must not be empty if x-kubernetes-list-type is map",
            ),
        ),
        a={"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
    ),
    _schema(
        "a map whose key is no property",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys",
                'Invalid value: ["x"]: entries must all be names of item properties',
            ),
        ),
        a={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["x"],
            "items": {"type": "object"},
        },
    ),
    _schema(
        "a map whose key may be absent",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.properties[x].default",
                "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ),
        ),
        a={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["x"],
            "items": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
    ),
    _schema(
        "an unknown list type",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-type",
                'Unsupported value: "bag": supported values: "atomic", "set", "map"',
            ),
        ),
        a={"type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}},
    ),
    _schema(
        "unique items",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].uniqueItems",
                "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ),
        ),
        a={"type": "array", "uniqueItems": True, "items": {"type": "string"}},
    ),
    _schema(
        "a reference",
        then=unfit(
            ("spec.validation.openAPIV3Schema.properties[spec].properties[a].$ref", "Forbidden: $ref is not supported"),
        ),
        a={"$ref": "#/x", "type": "string"},
    ),
    _schema(
        "fields that are not kept on purpose",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-preserve-unknown-fields",
                "Invalid value: false: must be true or undefined",
            ),
        ),
        a={"type": "object", "x-kubernetes-preserve-unknown-fields": False},
    ),
    _schema(
        "required fields that are not described",
        then=answered(
            201,
            **{
                "spec.versions.0.schema.openAPIV3Schema.properties.spec": {
                    "type": "object",
                    "properties": {"a": {"type": "object", "required": ["b"]}},
                }
            },
        ),
        a={"type": "object", "required": ["b"]},
    ),
    _rule(
        "a rule that does not parse",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Invalid value: $value: compilation failed: ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.b ==\n | .........^",
            ),
        ),
        rule={"rule": "self.b =="},
    ),
    _rule(
        "a rule about a field that does not exist",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Invalid value: $value: compilation failed: ERROR: <input>:1:5: undefined field 'c'\n | self.c == 'x'\n | ....^",
            ),
        ),
        rule={"rule": "self.c == 'x'"},
    ),
    _rule(
        "a rule with an unknown function",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Invalid value: $value: compilation failed: ERROR: <input>:1:7: undeclared reference to 'shrink' (in container '')\n | shrink(self.b)\n | ......^",
            ),
        ),
        rule={"rule": "shrink(self.b)"},
    ),
    _rule(
        "an empty rule",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Required value: rule is not specified",
            ),
        ),
        rule={"rule": " "},
    ),
    _rule(
        "a message with line breaks",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].message",
                'Invalid value: "a\\nb": must not contain line breaks',
            ),
        ),
        rule={"rule": "true", "message": "a\nb"},
    ),
    _rule(
        "an empty message",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].message",
                'Invalid value: " ": must be non-empty if specified',
            ),
        ),
        rule={"rule": "true", "message": " "},
    ),
    _rule(
        "a message that does not parse",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].messageExpression",
                "Invalid value: $value: messageExpression compilation failed: ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 'a' +\n | .....^",
            ),
        ),
        rule={"rule": "true", "messageExpression": "'a' +"},
    ),
    _rule(
        "an unknown reason",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].reason",
                'Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
            ),
        ),
        rule={"rule": "true", "reason": "Because"},
    ),
    _rule(
        "a path that leads nowhere",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].fieldPath",
                'Invalid value: ".c": must be a valid path',
            ),
        ),
        rule={"rule": "true", "fieldPath": ".c"},
    ),
    _rule(
        "an old state that is optional and not used",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].optionalOldSelf",
                "Invalid value: true: may not be set if oldSelf is not used in rule",
            ),
        ),
        rule={"rule": "true", "optionalOldSelf": True},
    ),
    _schema(
        "a rule about the old state in a list without keys",
        then=unfit(
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule",
                'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[a]',
            ),
        ),
        a={
            "type": "array",
            "maxItems": 3,
            "items": {"type": "string", "maxLength": 3, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        },
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_definitions_schema(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
