"""Which CustomResourceDefinitions are taken, and what becomes of them."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import Row, answered, get, invalid, merge, play, post, put
from tests.support.shapes import GROUP, definition

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "gadgets.$word.example.io"
_OPEN = {"type": "object"}


def _definition(schema: object = None, **spec: object) -> dict[str, object]:
    whole = definition("gadgets", "Gadget", schema if isinstance(schema, dict) else _OPEN, group="$word.example.io")
    return whole | {"spec": whole["spec"] | spec}


def _schema(title: str, then: object, **properties: object) -> Row:
    return Row(
        title=title,
        when=post(
            DEFINITIONS,
            _definition({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
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


def _version(**more: object) -> dict[str, object]:
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _OPEN}} | more


ROWS = [
    Row(
        title="a definition is completed",
        when=post(DEFINITIONS, _definition()),
        look=("spec.names", "spec.conversion", "spec.scope", "spec.preserveUnknownFields", "metadata.generation"),
        then=answered(
            201,
            **{
                "spec.names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "spec.conversion": {"strategy": "None"},
                "spec.scope": "Namespaced",
                "spec.preserveUnknownFields": "absent",
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="a definition of another name than its kind is refused",
        when=post(DEFINITIONS, _definition() | {"metadata": {"name": "other.$word.example.io"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("metadata.name", 'Invalid value: "other.$ns.example.io": must be spec.names.plural+"."+spec.group'),
            name="other.$ns.example.io",
        ),
    ),
    Row(
        title="a definition without a scope is refused",
        when=post(DEFINITIONS, _definition(scope="")),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.scope", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition of an unknown scope is refused",
        when=post(DEFINITIONS, _definition(scope="Galaxy")),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.scope", 'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition without versions is refused",
        when=post(DEFINITIONS, _definition(versions=[])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.versions", "Invalid value: []: must have exactly one version marked as storage version"),
            ("status.storedVersions", "Invalid value: null: must have at least one stored version"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition without a stored version is refused",
        when=post(DEFINITIONS, _definition(versions=[_version(storage=False)])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.versions", "Invalid value: $value: must have exactly one version marked as storage version"),
            ("status.storedVersions", "Invalid value: null: must have at least one stored version"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition with two stored versions is refused",
        when=post(DEFINITIONS, _definition(versions=[_version(), _version(name="v2")])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.versions", "Invalid value: $value: must have exactly one version marked as storage version"),
            ("status.storedVersions", 'Invalid value: ["v1"]: must have the storage version v2'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition with a version twice is refused",
        when=post(DEFINITIONS, _definition(versions=[_version(), _version(storage=False)])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.versions", "Invalid value: $value: must contain unique version names"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition with a bad version name is refused",
        when=post(DEFINITIONS, _definition(versions=[_version(name="V 1")])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.version",
                "Invalid value: \"V 1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                "spec.versions[0].name",
                "Invalid value: \"V 1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition without a schema is refused",
        when=post(DEFINITIONS, _definition(versions=[{"name": "v1", "served": True, "storage": True}])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.versions[0].schema.openAPIV3Schema", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition without names is refused",
        when=post(DEFINITIONS, _definition(names={})),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("metadata.name", 'Invalid value: "gadgets.$ns.example.io": must be spec.names.plural+"."+spec.group'),
            ("spec.names.kind", "Required value"),
            ("spec.names.listKind", "Required value"),
            ("spec.names.plural", "Required value"),
            ("spec.names.singular", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition with a bad kind is refused",
        when=post(DEFINITIONS, _definition(names={"plural": "gadgets", "kind": "Gad get"})),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.names.kind",
                "Invalid value: \"Gad get\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                "spec.names.listKind",
                "Invalid value: \"Gad getList\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                "spec.names.singular",
                "Invalid value: \"gad get\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition whose kind is its list's is refused",
        when=post(DEFINITIONS, _definition(names={"plural": "gadgets", "kind": "Gadget", "listKind": "Gadget"})),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.names.listKind", 'Invalid value: "Gadget": kind and listKind may not be the same'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition of a core group is refused",
        when=post(DEFINITIONS, _definition(group="") | {"metadata": {"name": "gadgets."}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "metadata.name",
                "Invalid value: \"gadgets.\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            ("spec.group", "Required value"),
            name="gadgets.",
        ),
    ),
    Row(
        title="a definition of a group without a dot is refused",
        when=post(DEFINITIONS, _definition(group="word") | {"metadata": {"name": "gadgets.word"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.group", 'Invalid value: "word": should be a domain with at least one dot'),
            name="gadgets.word",
        ),
    ),
    Row(
        title="a definition in the protected groups needs an approval",
        when=post(DEFINITIONS, _definition(group="$word.k8s.io") | {"metadata": {"name": "gadgets.$word.k8s.io"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "metadata.annotations[api-approved.kubernetes.io]",
                'Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
            ),
            name="gadgets.$ns.k8s.io",
        ),
    ),
    Row(
        title="a column without a path is refused",
        when=post(
            DEFINITIONS,
            _definition(
                versions=[_version(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": ""}])]
            ),
        ),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.additionalPrinterColumns[0].JSONPath", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a column of an unknown type is refused",
        when=post(
            DEFINITIONS,
            _definition(
                versions=[_version(additionalPrinterColumns=[{"name": "a", "type": "text", "jsonPath": ".spec"}])]
            ),
        ),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.additionalPrinterColumns[0].type",
                'Invalid value: "text": must be one of boolean,date,integer,number,string',
            ),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a column with a bad path is refused",
        when=post(
            DEFINITIONS,
            _definition(
                versions=[_version(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": "spec["}])]
            ),
        ),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.additionalPrinterColumns[0].JSONPath",
                'Invalid value: "spec[": must be a simple json path starting with .',
            ),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a scale without its paths is refused",
        when=post(DEFINITIONS, _definition(versions=[_version(subresources={"scale": {}})])),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.subresources.scale.specReplicasPath", "Required value"),
            ("spec.subresources.scale.statusReplicasPath", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a schema without a type is refused",
        when=post(DEFINITIONS, _definition({"properties": {}})),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.validation.openAPIV3Schema.type", "Required value: must not be empty at the root"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a schema that is no object is refused",
        when=post(DEFINITIONS, _definition({"type": "string"})),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.validation.openAPIV3Schema.type", 'Invalid value: "string": must be object at the root'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a schema that describes metadata is refused",
        when=post(
            DEFINITIONS,
            _definition(
                {
                    "type": "object",
                    "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
                }
            ),
        ),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[metadata]",
                "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ),
            name="gadgets.$ns.example.io",
        ),
    ),
    _schema(
        "a field without a type",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].type",
                "Required value: must not be empty for specified object fields",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={},
    ),
    _schema(
        "a field of an unknown type",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].type",
                'Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "text"},
    ),
    _schema(
        "a list without items",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items",
                "Required value: must be specified",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "array"},
    ),
    _schema(
        "a list with items without a type",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.type",
                "Required value: must not be empty for specified array items",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "array", "items": {}},
    ),
    _schema(
        "properties and additionalProperties together",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].additionalProperties",
                "Forbidden: additionalProperties and properties are mutual exclusive",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}},
    ),
    _schema(
        "a pattern that is none",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].pattern",
                'Invalid value: "(a": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(a`',
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "string", "pattern": "(a"},
    ),
    _schema(
        "a type inside anyOf",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].anyOf[0].type",
                "Forbidden: must be empty to be structural",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "string", "anyOf": [{"type": "string"}]},
    ),
    _schema(
        "a default that breaks the schema",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
                "Too long: may not be more than 2 bytes",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "string", "maxLength": 2, "default": "long"},
    ),
    _schema(
        "a default of the wrong type",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
                'Invalid value: "string":  in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "integer", "default": "long"},
    ),
    _schema(
        "a default with unknown fields",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
                'Invalid value: {"c":"d"}: must not have unknown fields',
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": "d"}},
    ),
    _schema(
        "a set of objects",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-map-type",
                "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
    ),
    _schema(
        "a map without keys",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys",
                "Required value: must not be empty if x-kubernetes-list-type is map",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
    ),
    _schema(
        "a map whose key is no property",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-map-keys",
                'Invalid value: ["x"]: entries must all be names of item properties',
            ),
            name="gadgets.$ns.example.io",
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
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.properties[x].default",
                "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ),
            name="gadgets.$ns.example.io",
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
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-list-type",
                'Unsupported value: "bag": supported values: "atomic", "set", "map"',
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}},
    ),
    _schema(
        "unique items",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].uniqueItems",
                "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ),
            name="gadgets.$ns.example.io",
        ),
        a={"type": "array", "uniqueItems": True, "items": {"type": "string"}},
    ),
    _schema(
        "a reference",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.validation.openAPIV3Schema.properties[spec].properties[a].$ref", "Forbidden: $ref is not supported"),
            name="gadgets.$ns.example.io",
        ),
        a={"$ref": "#/x", "type": "string"},
    ),
    _schema(
        "fields that are not kept on purpose",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].x-kubernetes-preserve-unknown-fields",
                "Invalid value: false: must be true or undefined",
            ),
            name="gadgets.$ns.example.io",
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
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Invalid value: $value: compilation failed: ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.b ==\n | .........^",
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "self.b =="},
    ),
    _rule(
        "a rule about a field that does not exist",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Invalid value: $value: compilation failed: ERROR: <input>:1:5: undefined field 'c'\n | self.c == 'x'\n | ....^",
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "self.c == 'x'"},
    ),
    _rule(
        "a rule with an unknown function",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Invalid value: $value: compilation failed: ERROR: <input>:1:7: undeclared reference to 'shrink' (in container '')\n | shrink(self.b)\n | ......^",
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "shrink(self.b)"},
    ),
    _rule(
        "an empty rule",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].rule",
                "Required value: rule is not specified",
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": " "},
    ),
    _rule(
        "a message with line breaks",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].message",
                'Invalid value: "a\\nb": must not contain line breaks',
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "true", "message": "a\nb"},
    ),
    _rule(
        "an empty message",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].message",
                'Invalid value: " ": must be non-empty if specified',
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "true", "message": " "},
    ),
    _rule(
        "a message that does not parse",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].messageExpression",
                "Invalid value: $value: messageExpression compilation failed: ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 'a' +\n | .....^",
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "true", "messageExpression": "'a' +"},
    ),
    _rule(
        "an unknown reason",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].reason",
                'Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "true", "reason": "Because"},
    ),
    _rule(
        "a path that leads nowhere",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].fieldPath",
                'Invalid value: ".c": must be a valid path',
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "true", "fieldPath": ".c"},
    ),
    _rule(
        "an old state that is optional and not used",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[x].x-kubernetes-validations[0].optionalOldSelf",
                "Invalid value: true: may not be set if oldSelf is not used in rule",
            ),
            name="gadgets.$ns.example.io",
        ),
        rule={"rule": "true", "optionalOldSelf": True},
    ),
    _schema(
        "a rule about the old state in a list without keys",
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "spec.validation.openAPIV3Schema.properties[spec].properties[a].items.x-kubernetes-validations[0].rule",
                'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[spec].properties[a]',
            ),
            name="gadgets.$ns.example.io",
        ),
        a={
            "type": "array",
            "maxItems": 3,
            "items": {"type": "string", "maxLength": 3, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        },
    ),
    Row(
        title="the scope does not change",
        when=merge(f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"scope": "Cluster"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.scope", 'Invalid value: "Cluster": field is immutable'),
            name="widgets.shapes.example.io",
        ),
    ),
    Row(
        title="the group does not change",
        given=(post(DEFINITIONS, _definition()),),
        when=merge(f"{DEFINITIONS}/{NAME}", {"spec": {"group": "other.io"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.group", 'Invalid value: "other.io": field is immutable'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="the kind of a definition that is established does not change",
        given=(post(DEFINITIONS, _definition()), get(f"{DEFINITIONS}/{NAME}")),
        when=merge(f"{DEFINITIONS}/{NAME}", {"spec": {"names": {"plural": "widgets"}}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.names.plural", 'Invalid value: "widgets": field is immutable'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="an update without a resourceVersion is refused",
        given=(post(DEFINITIONS, _definition()),),
        when=put(f"{DEFINITIONS}/{NAME}", _definition()),
        then=invalid(
            "customresourcedefinitions.apiextensions.k8s.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a schema may change",
        given=(post(DEFINITIONS, _definition()),),
        when=merge(
            f"{DEFINITIONS}/{NAME}",
            {
                "spec": {
                    "versions": [
                        _version(
                            schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
                        )
                    ]
                }
            },
        ),
        look=("spec.versions.0.schema", "metadata.generation"),
        then=answered(
            200,
            **{
                "spec.versions.0.schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}
                },
                "metadata.generation": 2,
            },
        ),
    ),
    Row(
        title="a stored version may not go",
        given=(post(DEFINITIONS, _definition()), get(f"{DEFINITIONS}/{NAME}")),
        when=merge(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": [_version(name="v2")]}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "status.storedVersions[0]",
                'Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions',
            ),
            name="gadgets.$ns.example.io",
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_definition(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
