from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.pruning import prune

STRING = {"type": "string"}
KEEP = "x-kubernetes-preserve-unknown-fields"


@pytest.mark.parametrize(
    ("schema", "value", "kept", "unknown"),
    [
        pytest.param({"properties": {"a": STRING}}, {"a": "1", "b": 2}, {"a": "1"}, ["b"], id="an unknown field"),
        pytest.param(
            {"properties": {"s": {"properties": {"a": STRING}}}},
            {"s": {"a": "1", "b": 2}},
            {"s": {"a": "1"}},
            ["s.b"],
            id="an unknown field further down",
        ),
        pytest.param(
            {"properties": {"l": {"items": {"properties": {"a": STRING}}}}},
            {"l": [{"a": "1"}, {"c": 1}]},
            {"l": [{"a": "1"}, {}]},
            ["l[1].c"],
            id="an unknown field in a list",
        ),
        pytest.param(
            {"properties": {"m": {"additionalProperties": {"properties": {"a": STRING}}}}},
            {"m": {"k": {"a": "1", "b": 1}}},
            {"m": {"k": {"a": "1"}}},
            ["m.k.b"],
            id="an unknown field in a map",
        ),
        pytest.param({KEEP: True}, {"b": {"c": 1}}, {"b": {"c": 1}}, [], id="everything is preserved"),
        pytest.param(
            {KEEP: True, "properties": {"s": {"properties": {"a": STRING}}}},
            {"s": {"b": 1}, "t": 1},
            {"s": {}, "t": 1},
            ["s.b"],
            id="what is named is pruned by its own schema",
        ),
        pytest.param({"additionalProperties": True}, {"b": 1}, {"b": 1}, [], id="additional properties of any kind"),
        pytest.param(
            {}, {"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}}, None, [], id="the root keeps its metadata"
        ),
        pytest.param(
            {"properties": {"e": {"x-kubernetes-embedded-resource": True, "properties": {"spec": {}}}}},
            {"e": {"kind": "K", "metadata": {}, "status": 1}},
            {"e": {"kind": "K", "metadata": {}}},
            ["e.status"],
            id="an embedded resource keeps its metadata",
        ),
        pytest.param(
            {"properties": {"e": {"properties": {}}}},
            {"e": {"kind": "K"}},
            {"e": {}},
            ["e.kind"],
            id="another object does not",
        ),
    ],
)
def test_unknown_fields_are_dropped_and_named(
    schema: dict[str, Any], value: Any, kept: Any, unknown: list[str]
) -> None:
    assert prune(value, schema) == (value if kept is None else kept, unknown)


def test_what_is_unchanged_is_shared_with_the_input() -> None:
    value = {"s": {"a": "1"}, "l": [{"a": "1"}]}
    schema: dict[str, Any] = {
        "properties": {"s": {"properties": {"a": STRING}}, "l": {"items": {"properties": {"a": STRING}}}}
    }
    assert prune(value, schema)[0] is value


def test_the_input_is_never_changed() -> None:
    value = {"s": {"b": 1}}
    prune(value, {"properties": {"s": {"properties": {}}}})
    assert value == {"s": {"b": 1}}


def test_what_is_shared_with_the_state_before_is_not_looked_at_again() -> None:
    shared = {"b": 1}
    schema: dict[str, Any] = {"properties": {"s": {"properties": {}}, "t": {"properties": {}}}}
    pruned, unknown = prune({"s": shared, "t": {"b": [1]}}, schema, old={"s": shared, "t": {"b": [1]}})
    assert (pruned, unknown) == ({"s": shared, "t": {}}, ["t.b"])
