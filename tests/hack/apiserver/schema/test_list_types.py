from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.list_types import validate_lists

SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
MAP = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {}}
PORTS = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(SET, ["a", "b"], [], id="a set"),
        pytest.param(SET, ["a", "b", "a", "a"], ['x[2]: Duplicate value: "a"'], id="each repeated item is named once"),
        pytest.param(SET, [1, True], [], id="1 and true differ"),
        pytest.param(SET, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ['x[1]: Duplicate value: {"b":2,"a":1}'], id="objects"),
        pytest.param(MAP, [{"type": "a"}, {"type": "b"}], [], id="a map"),
        pytest.param(
            MAP,
            [{"type": "a", "v": 1}, {"type": "a", "v": 2}],
            ['x[1]: Duplicate value: {"type":"a"}'],
            id="one key twice",
        ),
        pytest.param(MAP, [{}, {}], ["x[1]: Duplicate value: {}"], id="no key twice"),
        pytest.param(
            PORTS,
            [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}],
            ['x[2]: Duplicate value: {"port":1,"protocol":"TCP"}'],
            id="several keys",
        ),
        pytest.param(
            MAP, ["a"], ['x[0]: Invalid value: "a": must be an object for an array of list-type map'], id="no object"
        ),
        pytest.param({"type": "array"}, ["a", "a"], [], id="an atomic list may repeat itself"),
    ],
)
def test_entries_of_sets_and_maps_are_unique(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert [str(error) for error in validate_lists({"x": value}, {"properties": {"x": schema}})] == expected


def test_lists_inside_of_lists_and_maps_are_judged_too() -> None:
    schema = {"additionalProperties": {"items": {"properties": {"s": SET}}}}
    found = [str(error) for error in validate_lists({"k": [{"s": ["a", "a"]}]}, schema, field="m")]
    assert found == ['m[k][0].s[1]: Duplicate value: "a"']
