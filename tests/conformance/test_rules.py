"""CEL validation rules of a custom kind."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, invalid, merge, play, post
from tests.support.shapes import RULED, ruled

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

RULE = f"{RULED}/one"


def _new(title: str, then: object, **spec: object) -> Row:
    return Row(title=title, when=post(RULED, ruled(**spec)), fields=("spec",), then=then)


def _changed(title: str, before: dict[str, object], patch: dict[str, object], then: object) -> Row:
    return Row(
        title=title,
        given=(post(RULED, ruled(**before)),),
        when=merge(RULE, {"spec": patch}),
        fields=("spec",),
        then=then,
    )


ROWS = [
    _new("satisfied rule", then=answered(201, spec={"high": 2, "low": 1}), low=1, high=2),
    _new(
        "rule of the spec",
        then=invalid("Rule.shapes.example.io", ("spec", "Invalid value: low must not exceed high")),
        low=3,
        high=2,
    ),
    _new(
        "rule without a message",
        then=invalid("Rule.shapes.example.io", ("spec.plain", "Invalid value: \"bad\": failed rule: self != 'bad'")),
        plain="bad",
    ),
    _new(
        "rule with reason Forbidden",
        then=invalid("Rule.shapes.example.io", ("spec.forbidden", "Forbidden: not this")),
        forbidden="bad",
    ),
    _new(
        "rule with a fieldPath",
        then=invalid("Rule.shapes.example.io", ("spec.needed.value", "Required value: full needs a value")),
        needed={"kind": "full"},
    ),
    _new(
        "rule of a list item",
        then=invalid("Rule.shapes.example.io", ("spec.items[1]", "Invalid value: some, please")),
        items=[{"name": "a", "amount": 1}, {"name": "b", "amount": 0}],
    ),
    _new(
        "several violated rules",
        then=invalid(
            "Rule.shapes.example.io",
            ("spec", "Invalid value: low must not exceed high"),
            ("spec.forbidden", "Forbidden: not this"),
            ("spec.plain", "Invalid value: \"bad\": failed rule: self != 'bad'"),
        ),
        low=3,
        high=2,
        plain="bad",
        forbidden="bad",
    ),
    _new(
        "type error skips the rules",
        then=invalid(
            "Rule.shapes.example.io",
            (
                "<nil>",
                "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ),
            (
                "spec.low",
                'Invalid value: "string": spec.low in body must be of type integer: "string"',
                "FieldValueTypeInvalid",
            ),
        ),
        low="x",
        plain="bad",
    ),
    _new(
        "overlong value skips the rules of its object",
        then=invalid(
            "Rule.shapes.example.io",
            (
                "<nil>",
                "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ),
            ("spec.plain", "Too long: may not be more than 20 bytes"),
        ),
        plain="bad" * 10,
        forbidden="bad",
    ),
    _new("transition rule is skipped on create", then=answered(201, spec={"fixed": "a"}), fixed="a"),
    _changed(
        "immutable value",
        {"fixed": "a"},
        {"fixed": "b"},
        then=invalid("Rule.shapes.example.io", ("spec.fixed", 'Invalid value: "b": fixed is fixed')),
    ),
    _changed(
        "immutable value can stay",
        {"fixed": "a"},
        {"low": 1},
        then=answered(200, spec={"fixed": "a", "low": 1}),
    ),
    _changed(
        "value that cannot be removed",
        {"low": 1},
        {"low": None},
        then=invalid("Rule.shapes.example.io", ("spec", "Invalid value: low stays once it is set")),
    ),
    _changed(
        "patch that violates a rule",
        {"low": 1},
        {"low": 5, "high": 4},
        then=invalid("Rule.shapes.example.io", ("spec", "Invalid value: low must not exceed high")),
    ),
    Row(
        title="rules of the spec are skipped for the status",
        given=(post(RULED, ruled(fixed="a")),),
        when=merge(f"{RULE}/status", {"status": {"phase": "x"}}),
        fields=("status",),
        then=answered(200, status={"phase": "x"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_cel_rule(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
