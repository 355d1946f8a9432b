"""What the CEL rules of a custom kind refuse."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import (
    Row,
    answered,
    merge,
    play,
    post,
    refused,
)
from tests.support.shapes import RULED, ruled

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

RULE = f"{RULED}/one"


def _new(title: str, then: object, **spec: object) -> Row:
    return Row(title=title, when=post(RULED, ruled(**spec)), look=("spec",), then=then)


def _changed(title: str, before: dict[str, object], patch: dict[str, object], then: object) -> Row:
    return Row(
        title=title, given=(post(RULED, ruled(**before)),), when=merge(RULE, {"spec": patch}), look=("spec",), then=then
    )


ROWS = [
    _new("a rule that holds", then=answered(201, spec={"high": 2, "low": 1}), low=1, high=2),
    _new(
        "a rule of the whole spec",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec: Invalid value: low must not exceed high',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: low must not exceed high",
                        "field": "spec",
                    }
                ],
            },
        ),
        low=3,
        high=2,
    ),
    _new(
        "a message that is computed",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.named: Invalid value: "bc": want a, not bc',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "bc": want a, not bc',
                        "field": "spec.named",
                    }
                ],
            },
        ),
        named="bc",
    ),
    _new(
        "a rule without a message",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.plain: Invalid value: "bad": failed rule: self != \'bad\'',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: \"bad\": failed rule: self != 'bad'",
                        "field": "spec.plain",
                    }
                ],
            },
        ),
        plain="bad",
    ),
    _new(
        "a rule that forbids",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.forbidden: Forbidden: not this',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {"reason": "FieldValueForbidden", "message": "Forbidden: not this", "field": "spec.forbidden"}
                ],
            },
        ),
        forbidden="bad",
    ),
    _new(
        "a rule about a field below",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.needed.value: Required value: full needs a value',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueRequired",
                        "message": "Required value: full needs a value",
                        "field": "spec.needed.value",
                    }
                ],
            },
        ),
        needed={"kind": "full"},
    ),
    _new(
        "a rule about what is there twice",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.twice: Duplicate value: "bad"',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {"reason": "FieldValueDuplicate", "message": 'Duplicate value: "bad"', "field": "spec.twice"}
                ],
            },
        ),
        twice="bad",
    ),
    _new(
        "a rule in a list",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.items[1]: Invalid value: some, please',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {"reason": "FieldValueInvalid", "message": "Invalid value: some, please", "field": "spec.items[1]"}
                ],
            },
        ),
        items=[{"name": "a", "amount": 1}, {"name": "b", "amount": 0}],
    ),
    _new(
        "several rules at once",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: [spec: Invalid value: low must not exceed high, spec.forbidden: Forbidden: not this, spec.plain: Invalid value: "bad": failed rule: self != \'bad\']',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: low must not exceed high",
                        "field": "spec",
                    },
                    {"reason": "FieldValueForbidden", "message": "Forbidden: not this", "field": "spec.forbidden"},
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: \"bad\": failed rule: self != 'bad'",
                        "field": "spec.plain",
                    },
                ],
            },
        ),
        low=3,
        high=2,
        plain="bad",
        forbidden="bad",
    ),
    _new(
        "a rule that cannot be evaluated",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.broken: Invalid value: "object": division by zero evaluating rule: unused',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "object": division by zero evaluating rule: unused',
                        "field": "spec.broken",
                    }
                ],
            },
        ),
        broken={"a": 1, "b": 0},
    ),
    _new(
        "a rule that lacks its field",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.broken: Invalid value: "object": no such key: b evaluating rule: unused',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "object": no such key: b evaluating rule: unused',
                        "field": "spec.broken",
                    }
                ],
            },
        ),
        broken={"a": 1},
    ),
    _new(
        "rules are not run after a fault of type",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: [<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation, spec.low: Invalid value: "string": spec.low in body must be of type integer: "string"]',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
                        "field": "<nil>",
                    },
                    {
                        "reason": "FieldValueTypeInvalid",
                        "message": 'Invalid value: "string": spec.low in body must be of type integer: "string"',
                        "field": "spec.low",
                    },
                ],
            },
        ),
        low="x",
        plain="bad",
    ),
    _new(
        "rules are run after a fault of another kind",
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: [<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation, spec.plain: Too long: may not be more than 20 bytes]',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
                        "field": "<nil>",
                    },
                    {
                        "reason": "FieldValueTooLong",
                        "message": "Too long: may not be more than 20 bytes",
                        "field": "spec.plain",
                    },
                ],
            },
        ),
        plain="bad" * 10,
        forbidden="bad",
    ),
    _new("a rule about the old state is not run for a new object", then=answered(201, spec={"fixed": "a"}), fixed="a"),
    _new("a rule with an optional old state is run for a new object", then=answered(201, spec={"once": "a"}), once="a"),
    _changed(
        "a value that is fixed",
        {"fixed": "a"},
        {"fixed": "b"},
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.fixed: Invalid value: "b": fixed is fixed',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "b": fixed is fixed',
                        "field": "spec.fixed",
                    }
                ],
            },
        ),
    ),
    _changed(
        "a value that is fixed may be left alone",
        {"fixed": "a"},
        {"low": 1},
        then=answered(200, spec={"fixed": "a", "low": 1}),
    ),
    _changed("a value that is fixed may come", {}, {"fixed": "b"}, then=answered(200, spec={"fixed": "b"})),
    _changed("a value that is fixed may go", {"fixed": "a"}, {"fixed": None}, then=answered(200, spec={})),
    _changed(
        "a value that must stay",
        {"low": 1},
        {"low": None},
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec: Invalid value: low stays once it is set',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: low stays once it is set",
                        "field": "spec",
                    }
                ],
            },
        ),
    ),
    _changed(
        "a value that is set once",
        {"once": "a"},
        {"once": "b"},
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.once: Invalid value: "b": once and for all',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "b": once and for all',
                        "field": "spec.once",
                    }
                ],
            },
        ),
    ),
    _changed(
        "a value that breaks a rule by a patch",
        {"low": 1},
        {"low": 5, "high": 4},
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec: Invalid value: low must not exceed high',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: low must not exceed high",
                        "field": "spec",
                    }
                ],
            },
        ),
    ),
    _changed(
        "an item of a list that breaks a rule by a patch",
        {"items": [{"name": "a", "amount": 1}]},
        {"items": [{"name": "a", "amount": 0}]},
        then=refused(
            422,
            "Invalid",
            'Rule.shapes.example.io "one" is invalid: spec.items[0]: Invalid value: some, please',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "Rule",
                "causes": [
                    {"reason": "FieldValueInvalid", "message": "Invalid value: some, please", "field": "spec.items[0]"}
                ],
            },
        ),
    ),
    Row(
        title="rules of the spec are not run for the status",
        given=(post(RULED, ruled(fixed="a")),),
        when=merge(f"{RULE}/status", {"status": {"phase": "x"}}),
        look=("status",),
        then=answered(200, status={"phase": "x"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_rule(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
