"""Schema validation, pruning and defaulting of a custom kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, invalid, merge, play, post, put
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

WIDGET = f"{WIDGETS}/one"


def _spec(title: str, then: object, **spec: object) -> Row:
    return Row(title=title, when=post(WIDGETS, widget(**spec)), fields=("spec",), then=then)


ROWS = [
    _spec("defaults are set", then=answered(201, spec={"mode": "slow", "nested": {"level": 3}})),
    _spec(
        "defaults in list items",
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
        "defaults keep existing values",
        then=answered(201, spec={"mode": "fast", "nested": {"level": 9}}),
        mode="fast",
        nested={"level": 9},
    ),
    _spec(
        "null is replaced by a default",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}}),
        mode=None,
        nested=None,
    ),
    _spec(
        "null without a default is dropped",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}}),
        word=None,
        size=None,
    ),
    _spec(
        "preserved unknown fields stay",
        then=answered(201, spec={"free": {"a": {"b": [1, None, {"c": "d"}]}}, "mode": "slow", "nested": {"level": 3}}),
        free={"a": {"b": [1, None, {"c": "d"}]}},
    ),
    _spec(
        "unknown fields are pruned",
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
        "number below the minimum",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ),
        size=0,
    ),
    _spec(
        "number above the maximum",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.size", "Invalid value: 11: spec.size in body should be less than or equal to 10"),
        ),
        size=11,
    ),
    _spec(
        "value outside the enum",
        then=invalid(
            "Widget.shapes.example.io", ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"')
        ),
        colour="blue",
    ),
    _spec(
        "string instead of an integer",
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
        "string that does not match the pattern",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.code", "Invalid value: \"A1\": spec.code in body should match '^[a-z]+$'"),
        ),
        code="A1",
    ),
    _spec(
        "string that is too long",
        then=invalid("Widget.shapes.example.io", ("spec.code", "Too long: may not be more than 5 bytes")),
        code="abcdef",
    ),
    _spec(
        "string that is too short",
        then=invalid(
            "Widget.shapes.example.io",
            ("spec.word", 'Invalid value: "a": spec.word in body should be at least 2 chars long'),
        ),
        word="a",
    ),
    _spec(
        "list that is too long",
        then=invalid("Widget.shapes.example.io", ("spec.names", "Too many: 4: must have at most 3 items")),
        names=["a", "b", "c", "d"],
    ),
    _spec(
        "duplicate item of a set",
        then=invalid("Widget.shapes.example.io", ("spec.unique[2]", 'Duplicate value: "a"')),
        unique=["a", "b", "a", "a"],
    ),
    _spec(
        "duplicate key of a map",
        then=invalid("Widget.shapes.example.io", ("spec.parts[2]", 'Duplicate value: {"name":"a"}')),
        parts=[{"name": "a"}, {"name": "b"}, {"name": "a"}],
    ),
    _spec(
        "map item without its key",
        then=invalid("Widget.shapes.example.io", ("spec.parts[0].name", "Required value")),
        parts=[{"weight": 1}],
    ),
    _spec(
        "missing required field",
        then=invalid("Widget.shapes.example.io", ("spec.strict.must", "Required value")),
        strict={"other": "x"},
    ),
    _spec(
        "valid time",
        then=answered(201, spec={"mode": "slow", "nested": {"level": 3}, "when": "$time"}),
        when="2026-01-02T03:04:05Z",
    ),
    _spec(
        "invalid time",
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
        "several violations",
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
        title="patch that removes a required field",
        given=(post(WIDGETS, widget(strict={"must": "x"})),),
        when=merge(WIDGET, {"spec": {"strict": {"must": None}}}),
        then=invalid("Widget.shapes.example.io", ("spec.strict.must", "Required value")),
    ),
    Row(
        title="update restores defaults",
        given=(post(WIDGETS, widget(mode="fast")),),
        when=put(WIDGET, widget() | {"metadata": {"name": "one", "resourceVersion": "$0.metadata.resourceVersion"}}),
        fields=("spec",),
        then=answered(200, spec={"mode": "slow", "nested": {"level": 3}}),
    ),
    Row(
        title="violation in one of two patched fields",
        given=(post(WIDGETS, widget(size=1)),),
        when=merge(WIDGET, {"spec": {"size": 5, "colour": "blue"}}),
        then=invalid(
            "Widget.shapes.example.io", ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"')
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_schema(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
