"""Schema validation, pruning, defaulting and CEL rules of a custom kind."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.conformance_objects import BLUE, TYPE, WIDGET_KIND
from tests.support.server.conformance_rows import Row, invalid, merge, play, post
from tests.support.server.shapes import RULED, WIDGETS, ruled, widget

pytestmark = pytest.mark.servers

RULE = f"{RULED}/one"
MISSING = ("spec.strict.must", "Required value")
SKIPPED = (
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
)
ORDER = ("spec", "Invalid value: low must not exceed high")
FORBIDDEN = ("spec.forbidden", "Forbidden: not this")
PLAIN = ("spec.plain", "Invalid value: \"bad\": failed rule: self != 'bad'")


def _widget(*causes: tuple[str, ...]) -> dict[str, Any]:
    return invalid(WIDGET_KIND, *causes)


def _rule(*causes: tuple[str, ...]) -> dict[str, Any]:
    return invalid("Rule.shapes.example.io", *causes)


def _changed(before: dict[str, object], patch: dict[str, object], then: dict[str, Any]) -> Row:
    return Row(given=(post(RULED, ruled(**before)),), when=merge(RULE, {"spec": patch}), then=then)


#: Given spec -> the stored spec besides its defaults.
STORED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults are set": ({}, {}),
    "defaults in list items": (
        {"parts": [{"name": "a"}, {"name": "b", "weight": 4}]},
        {"parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 4}]},
    ),
    "null is replaced by a default": ({"mode": None, "nested": None}, {}),
    "preserved unknown fields stay": ({"free": {"a": {"b": [1, None, {"c": "d"}]}}},) * 2,
}
#: Given spec -> causes of its refusal.
REFUSED: dict[str, tuple[dict[str, Any], list[tuple[str, ...]]]] = {
    "number below the minimum": (
        {"size": 0},
        [("spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1")],
    ),
    "value outside the enum": ({"colour": "blue"}, [BLUE]),
    "string instead of an integer": (
        {"size": "5"},
        [("spec.size", 'Invalid value: "string": spec.size in body must be of type integer: "string"', TYPE)],
    ),
    "string that does not match the pattern": (
        {"code": "A1"},
        [("spec.code", "Invalid value: \"A1\": spec.code in body should match '^[a-z]+$'")],
    ),
    "string that is too long": ({"code": "abcdef"}, [("spec.code", "Too long: may not be more than 5 bytes")]),
    "list that is too long": ({"names": [*"abcd"]}, [("spec.names", "Too many: 4: must have at most 3 items")]),
    "duplicate item of a set": ({"unique": [*"abaa"]}, [("spec.unique[2]", 'Duplicate value: "a"')]),
    "duplicate key of a map": (
        {"parts": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        [("spec.parts[2]", 'Duplicate value: {"name":"a"}')],
    ),
    "invalid time": (
        {"when": "yesterday"},
        [("spec.when", 'Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"', TYPE)],
    ),
    "several violations": (
        {"size": 0, "colour": "blue", "strict": {}, "names": [1]},
        [
            BLUE,
            (
                "spec.names[0]",
                'Invalid value: "integer": spec.names[0] in body must be of type string: "integer"',
                TYPE,
            ),
            ("spec.size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
            MISSING,
        ],
    ),
}
#: Given spec -> causes of its refusal by CEL rules.
RULES: dict[str, tuple[dict[str, Any], list[tuple[str, ...]]]] = {
    "rule of the spec": ({"low": 3, "high": 2}, [ORDER]),
    "rule without a message": ({"plain": "bad"}, [PLAIN]),
    "rule with reason Forbidden": ({"forbidden": "bad"}, [FORBIDDEN]),
    "rule with a fieldPath": (
        {"needed": {"kind": "full"}},
        [("spec.needed.value", "Required value: full needs a value")],
    ),
    "several violated rules": (
        {"low": 3, "high": 2, "plain": "bad", "forbidden": "bad"},
        [ORDER, FORBIDDEN, PLAIN],
    ),
    "type error skips the rules": (
        {"low": "x", "plain": "bad"},
        [
            SKIPPED,
            ("spec.low", 'Invalid value: "string": spec.low in body must be of type integer: "string"', TYPE),
        ],
    ),
}
ROWS = {
    title: Row(
        when=post(WIDGETS, widget(**spec)),
        then={"code": 201, "spec": {"mode": "slow", "nested": {"level": 3}} | stored},
    )
    for title, (spec, stored) in STORED.items()
}
ROWS |= {
    title: Row(when=post(WIDGETS, widget(**spec)), then=_widget(*causes)) for title, (spec, causes) in REFUSED.items()
}
ROWS |= {title: Row(when=post(RULED, ruled(**spec)), then=_rule(*causes)) for title, (spec, causes) in RULES.items()}
ROWS |= {
    "unknown fields are pruned": Row(
        when=post(WIDGETS, widget(strange=1, nested={"strange": 1}, parts=[{"name": "a", "strange": 1}])),
        then={
            "code": 201,
            "spec": {"mode": "slow", "nested": {"level": 3}, "parts": [{"name": "a", "weight": 1}]},
            "warnings": [f'unknown field "spec.{field}strange"' for field in ("nested.", "parts[0].", "")],
        },
    ),
    "immutable value": _changed(
        {"fixed": "a"}, {"fixed": "b"}, _rule(("spec.fixed", 'Invalid value: "b": fixed is fixed'))
    ),
    "value that cannot be removed": _changed(
        {"low": 1}, {"low": None}, _rule(("spec", "Invalid value: low stays once it is set"))
    ),
    "patch that violates a rule": _changed({"low": 1}, {"low": 5, "high": 4}, _rule(ORDER)),
    "rules of the spec are skipped for the status": Row(
        given=(post(RULED, ruled(fixed="a")),),
        when=merge(f"{RULE}/status", {"status": {"phase": "x"}}),
        then={"code": 200, "status": {"phase": "x"}},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_schema(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
