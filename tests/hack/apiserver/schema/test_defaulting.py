from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.defaulting import apply_defaults

REPLICAS = {"type": "integer", "default": 1}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param({"properties": {"r": REPLICAS}}, {}, {"r": 1}, id="an absent field"),
        pytest.param({"properties": {"r": REPLICAS}}, {"r": 0}, {"r": 0}, id="a given field stays"),
        pytest.param({"properties": {"r": REPLICAS}}, {"r": None}, {"r": 1}, id="null counts as absent"),
        pytest.param(
            {"properties": {"r": REPLICAS | {"nullable": True}}}, {"r": None}, {"r": None}, id="unless it is allowed"
        ),
        pytest.param({"properties": {"r": {"type": "integer"}}}, {"r": None}, {"r": None}, id="null without a default"),
        pytest.param(
            {"properties": {"s": {"properties": {"r": REPLICAS}}}}, {}, {}, id="not inside of what is not there"
        ),
        pytest.param(
            {"properties": {"s": {"default": {}, "properties": {"r": REPLICAS}}}},
            {},
            {"s": {"r": 1}},
            id="a default is completed by those inside of it",
        ),
        pytest.param(
            {"properties": {"l": {"items": {"properties": {"r": REPLICAS}}}}},
            {"l": [{}, {"r": 2}]},
            {"l": [{"r": 1}, {"r": 2}]},
            id="items of a list",
        ),
        pytest.param(
            {"additionalProperties": {"properties": {"r": REPLICAS}}}, {"k": {}}, {"k": {"r": 1}}, id="values of a map"
        ),
    ],
)
def test_defaults_fill_what_is_absent(schema: dict[str, Any], value: Any, expected: Any) -> None:
    assert apply_defaults(value, schema) == expected


def test_a_default_is_not_shared_between_objects() -> None:
    schema: dict[str, Any] = {"properties": {"s": {"default": {"a": []}}}}
    apply_defaults({}, schema)["s"]["a"].append(1)
    assert apply_defaults({}, schema) == {"s": {"a": []}}


def test_what_is_unchanged_is_shared_with_the_input() -> None:
    value = {"s": {"r": 1}, "l": [{}]}
    assert apply_defaults(value, {"properties": {"s": {"properties": {"r": REPLICAS}}, "l": {"items": {}}}}) is value
