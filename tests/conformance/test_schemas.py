"""What the schema of a custom kind refuses, prunes and fills in."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, merge, play, post, put
from tests.support.shapes import VERSION, WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

WIDGET = f"{WIDGETS}/one"


def _spec(title: str, then: object, **spec: object) -> Row:
    return Row(title=title, when=post(WIDGETS, widget(**spec)), look=("spec",), then=then)


ROWS = [
    _spec("defaults are filled in", then=answered(201, spec={"mode": "slow", "nested": {"level": 3}})),
    _spec(
        "defaults are filled into lists",
        then=answered(
            201,
            spec={
                "mode": "slow",
                "nested": {"level": 3},
                "parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 4}],
            },
        ),
        parts=[{"name": "a"}, {"name": "b", "weight": 4}],
    ),
    _spec(
        "defaults are not filled into what is there",
        then=answered(201, spec={"mode": "fast", "nested": {"level": 9}}),
        mode="fast",
        nested={"level": 9},
    ),
    _spec(
        "a null gives way to a default",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}}),
        mode=None,
        nested=None,
    ),
    _spec(
        "a null without a default is dropped",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}}),
        word=None,
        size=None,
    ),
    _spec(
        "a null that is allowed stays",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "nothing": None}),
        nothing=None,
    ),
    _spec(
        "a null in a list is refused",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.names[1]",
                'Invalid value: "null": spec.names[1] in body must be of type string: "null"',
                "FieldValueTypeInvalid",
            ),
        ),
        names=["a", None],
    ),
    _spec(
        "a null among options is refused",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.options", "Invalid value: 0: spec.options in body should have at least 1 properties"),
        ),
        options={"a": None},
    ),
    _spec(
        "unknown fields in free space stay",
        then=answered(201, spec={"free": {"a": {"b": [1, None, {"c": "d"}]}}, "mode": "slow", "nested": {"level": 3}}),
        free={"a": {"b": [1, None, {"c": "d"}]}},
    ),
    _spec(
        "unknown fields elsewhere go",
        then=answered(
            201,
            spec={"mode": "slow", "nested": {"level": 3}, "parts": [{"name": "a", "weight": 1}]},
            warnings=[
                'unknown field "spec.nested.strange"',
                'unknown field "spec.parts[0].strange"',
                'unknown field "spec.strange"',
            ],
        ),
        strange=1,
        nested={"strange": 1},
        parts=[{"name": "a", "strange": 1}],
    ),
    _spec(
        "an embedded object stays whole",
        then=answered(
            201,
            spec={
                "embedded": {
                    "apiVersion": "v1",
                    "data": {"a": "b"},
                    "kind": "ConfigMap",
                    "metadata": {"labels": {"a": "b"}, "name": "x"},
                },
                "mode": "slow",
                "nested": {"level": 3},
            },
        ),
        embedded={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "labels": {"a": "b"}},
            "data": {"a": "b"},
        },
    ),
    _spec(
        "an embedded object needs its kind",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.embedded.apiVersion", "Required value"),
            ("spec.embedded.kind", "Required value"),
        ),
        embedded={"metadata": {"name": "x"}},
    ),
    _spec(
        "an embedded object needs a good name",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.embedded.metadata.labels",
                "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ),
        embedded={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "X y", "labels": {"a b": "c"}}},
    ),
    _spec(
        "unknown metadata of an embedded object goes",
        then=answered(
            201,
            spec={
                "embedded": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
                "mode": "slow",
                "nested": {"level": 3},
            },
            warnings=['unknown field "spec.embedded.metadata.strange"'],
        ),
        embedded={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "strange": 1}},
    ),
    _spec(
        "a number that is too small",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ),
        size=0,
    ),
    _spec(
        "a number that is too large",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.size", "Invalid value: 11: spec.size in body should be less than or equal to 10"),
        ),
        size=11,
    ),
    _spec(
        "a number that is not above its bound",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.share", "Invalid value: 0: factor MultipleOf declared for spec.share must be positive: 0"),
            ("spec.share", "Invalid value: 0: spec.share in body should be greater than 0"),
        ),
        share=0,
    ),
    _spec(
        "a number that is no multiple",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.share", "Invalid value: 0.7: spec.share in body should be a multiple of 0.5"),
        ),
        share=0.7,
    ),
    _spec(
        "a whole number where fractions are allowed",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.share", "Invalid value: 0: factor MultipleOf declared for spec.share must be positive: 0"),
        ),
        share=2,
    ),
    _spec(
        "a fraction where whole numbers are wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.size",
                'Invalid value: "number": spec.size in body must be of type integer: "number"',
                "FieldValueTypeInvalid",
            ),
        ),
        size=1.5,
    ),
    _spec(
        "a fraction of nothing is whole",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "size": 2}),
        size=2.0,
    ),
    _spec(
        "a number beyond 32 bits",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "small": 3000000000}),
        small=3000000000,
    ),
    _spec(
        "a text that is none of the choices",
        then=invalid(
            "Widget.shapes.example.io", ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"')
        ),
        colour="blue",
    ),
    _spec(
        "a number where a text is wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.word",
                'Invalid value: "integer": spec.word in body must be of type string: "integer"',
                "FieldValueTypeInvalid",
            ),
        ),
        word=5,
    ),
    _spec(
        "a text where a number is wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.size",
                'Invalid value: "string": spec.size in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            ),
        ),
        size="5",
    ),
    _spec(
        "a boolean where a text is wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.word",
                'Invalid value: "boolean": spec.word in body must be of type string: "boolean"',
                "FieldValueTypeInvalid",
            ),
        ),
        word=True,
    ),
    _spec(
        "a list where an object is wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.nested",
                'Invalid value: "array": spec.nested in body must be of type object: "array"',
                "FieldValueTypeInvalid",
            ),
        ),
        nested=[],
    ),
    _spec(
        "an object where a list is wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.names",
                'Invalid value: "object": spec.names in body must be of type array: "object"',
                "FieldValueTypeInvalid",
            ),
        ),
        names={},
    ),
    _spec(
        "an object where a boolean is wanted",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.flag",
                'Invalid value: "object": spec.flag in body must be of type boolean: "object"',
                "FieldValueTypeInvalid",
            ),
        ),
        flag={},
    ),
    _spec(
        "a text that does not match",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.code", "Invalid value: \"A1\": spec.code in body should match '^[a-z]+$'"),
        ),
        code="A1",
    ),
    _spec(
        "a text that is too long",
        then=invalid("Widget.shapes.example.io", ("spec.code", "Too long: may not be more than 5 bytes")),
        code="abcdef",
    ),
    _spec(
        "a text that is too short",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.word", 'Invalid value: "a": spec.word in body should be at least 2 chars long'),
        ),
        word="a",
    ),
    _spec(
        "letters count as one however many bytes they have",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.word", 'Invalid value: "é": spec.word in body should be at least 2 chars long'),
        ),
        word="é",
    ),
    _spec(
        "a list that is too long",
        then=invalid("Widget.shapes.example.io", ("spec.names", "Too many: 4: must have at most 3 items")),
        names=["a", "b", "c", "d"],
    ),
    _spec(
        "a list that is too short",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.names", "Invalid value: 0: spec.names in body should have at least 1 items"),
        ),
        names=[],
    ),
    _spec(
        "a set with an item twice",
        then=invalid("Widget.shapes.example.io", ("spec.unique[2]", 'Duplicate value: "a"')),
        unique=["a", "b", "a", "a"],
    ),
    _spec(
        "a map with a key twice",
        then=invalid("Widget.shapes.example.io", ("spec.parts[2]", 'Duplicate value: {"name":"a"}')),
        parts=[{"name": "a"}, {"name": "b"}, {"name": "a"}],
    ),
    _spec(
        "an item without its key",
        then=invalid("Widget.shapes.example.io", ("spec.parts[0].name", "Required value")),
        parts=[{"weight": 1}],
    ),
    _spec(
        "an item of the wrong type",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.parts[0]",
                'Invalid value: "integer": spec.parts[0] in body must be of type object: "integer"',
                "FieldValueTypeInvalid",
            ),
            ("spec.parts[0]", "Invalid value: 5: must be an object for an array of list-type map"),
        ),
        parts=[5],
    ),
    _spec(
        "an option of the wrong type",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.options.a",
                'Invalid value: "string": spec.options.a in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            ),
        ),
        options={"a": "b"},
    ),
    _spec(
        "too many options",
        then=invalid("Widget.shapes.example.io", ("spec.options", "Too many: 3: must have at most 2 items")),
        options={"a": 1, "b": 2, "c": 3},
    ),
    _spec(
        "too few options",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.options", "Invalid value: 0: spec.options in body should have at least 1 properties"),
        ),
        options={},
    ),
    _spec(
        "a port may be a number", then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "port": 80}), port=80
    ),
    _spec(
        "a port may be a text",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "port": "http"}),
        port="http",
    ),
    _spec(
        "a port may be nothing else",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.port",
                'Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
                "FieldValueTypeInvalid",
            ),
        ),
        port=True,
    ),
    _spec(
        "a field that must be there",
        then=invalid("Widget.shapes.example.io", ("spec.strict.must", "Required value")),
        strict={"other": "x"},
    ),
    _spec(
        "a time",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "when": "$time"}),
        when="2026-01-02T03:04:05Z",
    ),
    _spec(
        "a time that is none",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.when",
                'Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"',
                "FieldValueTypeInvalid",
            ),
        ),
        when="yesterday",
    ),
    _spec(
        "a time without a zone",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.when",
                'Invalid value: "2026-01-02T03:04:05": spec.when in body must be of type date-time: "2026-01-02T03:04:05"',
                "FieldValueTypeInvalid",
            ),
        ),
        when="2026-01-02T03:04:05",
    ),
    _spec(
        "a day that is none",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.day",
                'Invalid value: "2026-13-02": spec.day in body must be of type date: "2026-13-02"',
                "FieldValueTypeInvalid",
            ),
        ),
        day="2026-13-02",
    ),
    _spec(
        "an address that is none",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec.address",
                'Invalid value: "300.1.1.1": spec.address in body must be of type ipv4: "300.1.1.1"',
                "FieldValueTypeInvalid",
            ),
        ),
        address="300.1.1.1",
    ),
    _spec(
        "base64 that is none",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.blob", 'Invalid value: "%%": spec.blob in body must be of type byte: "%%"', "FieldValueTypeInvalid"),
        ),
        blob="%%",
    ),
    _spec(
        "one of two, and none is there",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "<nil>",
                'Invalid value: "": "spec.either" must validate one and only one schema (oneOf). Found none valid',
            ),
            ("spec.either.a", "Required value"),
        ),
        either={},
    ),
    _spec(
        "one of two, and both are there",
        then=invalid(
            "Widget.shapes.example.io",
            (
                "<nil>",
                'Invalid value: "": "spec.either" must validate one and only one schema (oneOf). Found 2 valid alternatives',
            ),
        ),
        either={"a": "x", "b": "y"},
    ),
    _spec(
        "one of two, and one is there",
        then=answered(201, spec={"either": {"a": "x"}, "mode": "slow", "nested": {"level": 3}}),
        either={"a": "x"},
    ),
    _spec(
        "any of two, and none is there",
        then=invalid(
            "Widget.shapes.example.io",
            ("<nil>", 'Invalid value: "": "spec.any" must validate at least one schema (anyOf)'),
            ("spec.any.a", "Required value"),
        ),
        any={},
    ),
    _spec(
        "all of two, and one fails",
        then=invalid(
            "Widget.shapes.example.io",
            ("<nil>", 'Invalid value: "": "spec.both" must validate all the schemas (allOf)'),
            ("spec.both", "Too long: may not be more than 4 bytes"),
        ),
        both="abcde",
    ),
    _spec(
        "what must not be",
        then=invalid(
            "Widget.shapes.example.io", ("<nil>", 'Invalid value: "": "spec.never" must not validate the schema (not)')
        ),
        never="bad",
    ),
    _spec(
        "several faults at once",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"'),
            (
                "spec.names[0]",
                'Invalid value: "integer": spec.names[0] in body must be of type string: "integer"',
                "FieldValueTypeInvalid",
            ),
            ("spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
            ("spec.strict.must", "Required value"),
        ),
        size=0,
        colour="blue",
        strict={},
        names=[1],
    ),
    Row(
        title="a spec of the wrong type",
        when=post(WIDGETS, widget() | {"spec": 5}),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "spec",
                'Invalid value: "integer": spec in body must be of type object: "integer"',
                "FieldValueTypeInvalid",
            ),
        ),
    ),
    Row(
        title="a spec of null",
        when=post(WIDGETS, widget() | {"spec": None}),
        look=("spec",),
        then=answered(201, spec="absent"),
    ),
    Row(
        title="no spec at all",
        when=post(WIDGETS, {"apiVersion": VERSION, "kind": "Widget", "metadata": {"name": "one"}}),
        look=("spec",),
        then=answered(201, spec="absent"),
    ),
    Row(
        title="a required field that a patch takes away",
        given=(post(WIDGETS, widget(strict={"must": "x"})),),
        when=merge(WIDGET, {"spec": {"strict": {"must": None}}}),
        then=invalid("Widget.shapes.example.io", ("spec.strict.must", "Required value")),
    ),
    Row(
        title="defaults come back after an update",
        given=(post(WIDGETS, widget(mode="fast")),),
        when=put(WIDGET, widget() | {"metadata": {"name": "one", "resourceVersion": "$0.metadata.resourceVersion"}}),
        look=("spec",),
        then=answered(200, spec={"mode": "slow", "nested": {"level": 3}}),
    ),
    Row(
        title="a fault at another field than the patched one",
        given=(post(WIDGETS, widget(size=1)),),
        when=merge(WIDGET, {"spec": {"size": 5, "colour": "blue"}}),
        then=invalid(
            "Widget.shapes.example.io", ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"')
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_schema(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
