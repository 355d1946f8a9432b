"""Validation rules in CEL: when they run, what they see, what they say."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.cel_rules import validate_rules
from hack.apiserver.schema.correlation import ABSENT, Old

STRING = {"type": "string"}
VERSION = {"rule": "has(self.version) || has(self.image)", "message": "say what to upgrade to"}
FIXED = {
    "rule": "has(self.version) == has(oldSelf.version) && (!has(self.version) || self.version == oldSelf.version)",
    "message": "version is fixed",
}


def spec(*rules: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "object", "properties": {"version": STRING, "image": STRING}, "x-kubernetes-validations": [*rules]}
    return {"type": "object", "properties": {"spec": part}}


def texts(value: Any, schema: dict[str, Any], before: Any = None) -> list[str]:
    old = ABSENT if before is None else Old(present=True, value=before)
    return [str(error) for error in validate_rules(value, schema, old=old)]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param({"version": "a"}, None, [], id="one of both at creation"),
        pytest.param({}, None, ["spec: Invalid value: say what to upgrade to"], id="none of both"),
        pytest.param({"version": "a"}, {"version": "a"}, [], id="unchanged"),
        pytest.param({"version": "b"}, {"version": "a"}, ["spec: Invalid value: version is fixed"], id="changed"),
        pytest.param(
            {"image": "i"}, {"version": "a", "image": "i"}, ["spec: Invalid value: version is fixed"], id="removed"
        ),
        pytest.param(
            {"version": "a", "image": "i"}, {"image": "i"}, ["spec: Invalid value: version is fixed"], id="added"
        ),
    ],
)
def test_rules_and_transition_rules(new: dict[str, Any], old: dict[str, Any] | None, expected: list[str]) -> None:
    before = None if old is None else {"spec": old}
    assert texts({"spec": new}, spec(VERSION, FIXED), before) == expected


def test_a_transition_rule_waits_for_an_old_value() -> None:
    assert texts({"spec": {"version": "b"}}, spec(FIXED), {"status": {}}) == []


def test_a_rule_is_not_held_against_what_an_update_leaves_as_it_was() -> None:
    assert texts({"spec": {}, "status": {"x": 1}}, spec(VERSION), {"spec": {}}) == []


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(None, [], id="nothing before"),
        pytest.param({"spec": {"version": "a"}}, ["spec: Invalid value: no way back"], id="something before"),
    ],
)
def test_with_optional_old_self_a_transition_rule_always_runs(old: Any, expected: list[str]) -> None:
    rule = {
        "rule": "!oldSelf.hasValue() || oldSelf.value().version <= self.version",
        "optionalOldSelf": True,
        "message": "no way back",
    }
    assert texts({"spec": {"version": "0"}}, spec(rule), old) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({"rule": "false"}, "spec: Invalid value: failed rule: false", id="the rule itself"),
        pytest.param({"rule": "false", "message": " no "}, "spec: Invalid value: no", id="its message, trimmed"),
        pytest.param(
            {"rule": "false", "message": "no", "messageExpression": "'not ' + self.version"},
            "spec: Invalid value: not a",
            id="its message expression",
        ),
        pytest.param(
            {"rule": "false", "message": "no", "messageExpression": "self.image"},
            "spec: Invalid value: no",
            id="a message expression that fails",
        ),
        pytest.param(
            {"rule": "false", "message": "no", "messageExpression": "'a\\nb'"},
            "spec: Invalid value: no",
            id="a message expression with two lines",
        ),
        pytest.param(
            {"rule": "false", "message": "no", "messageExpression": "1"},
            "spec: Invalid value: no",
            id="a message expression that gives no text",
        ),
        pytest.param(
            {"rule": "false", "message": "no", "reason": "FieldValueForbidden", "fieldPath": ".version"},
            "spec.version: Forbidden: no",
            id="a reason and a path",
        ),
        pytest.param(
            {"rule": "false", "message": "no", "reason": "FieldValueRequired", "fieldPath": ".version"},
            "spec.version: Required value: no",
            id="a required field",
        ),
        pytest.param(
            {"rule": "false", "message": "no", "reason": "FieldValueDuplicate"},
            "spec: Duplicate value",
            id="a duplicate says no more",
        ),
        pytest.param(
            {"rule": "self.image == 'x'", "message": "no"},
            'spec: Invalid value: "object": no such key: image evaluating rule: no',
            id="a rule that has no value",
        ),
    ],
)
def test_what_a_broken_rule_says(rule: dict[str, Any], expected: str) -> None:
    assert texts({"spec": {"version": "a"}}, spec(rule)) == [expected]


def test_an_empty_rule_is_no_rule() -> None:
    assert texts({"spec": {}}, spec({"rule": " "})) == []


def test_a_scalar_is_shown() -> None:
    schema = {"properties": {"n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]}}}
    assert texts({"n": 2}, schema) == ["n: Invalid value: 2: failed rule: self > 3"]


@pytest.mark.parametrize(
    ("part", "value", "rule"),
    [
        pytest.param({"properties": {"a-b": STRING}}, {"a-b": "x"}, "self.a__dash__b == 'x'", id="a dash"),
        pytest.param({"properties": {"a.b": STRING}}, {"a.b": "x"}, "self.a__dot__b == 'x'", id="a dot"),
        pytest.param({"properties": {"a/b": STRING}}, {"a/b": "x"}, "self.a__slash__b == 'x'", id="a slash"),
        pytest.param(
            {"properties": {"a__b": STRING}}, {"a__b": "x"}, "self.a__underscores__b == 'x'", id="underscores"
        ),
        pytest.param(
            {"properties": {"namespace": STRING}}, {"namespace": "x"}, "self.__namespace__ == 'x'", id="a keyword"
        ),
        pytest.param({"additionalProperties": STRING}, {"a-b": "x"}, "self['a-b'] == 'x'", id="keys of maps stay"),
        pytest.param(
            {"properties": {"n": {"type": "number"}}}, {"n": 1}, "self.n + 0.5 == 1.5", id="numbers are doubles"
        ),
        pytest.param(
            {"properties": {"t": {"type": "string", "format": "date-time"}}},
            {"t": "2025-11-21T09:00:00Z"},
            "self.t < timestamp('2026-01-01T00:00:00Z')",
            id="times are timestamps",
        ),
        pytest.param({"items": STRING}, ["a", "b"], "self.all(x, x.size() == 1) && 'a' in self", id="lists"),
        pytest.param({"items": STRING}, ["a", "b"], "self.join('-') == 'a-b'", id="functions of the library"),
        pytest.param({"items": STRING}, ["a", "b"], "self.isSorted()", id="functions of Kubernetes"),
    ],
)
def test_how_a_rule_sees_values(part: dict[str, Any], value: Any, rule: str) -> None:
    schema = {"properties": {"x": part | {"x-kubernetes-validations": [{"rule": rule}]}}}
    assert texts({"x": value}, schema) == []


def test_rules_run_in_lists_and_maps() -> None:
    item = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.n > 0"}],
    }
    schema = {"properties": {"l": {"items": item}, "m": {"additionalProperties": item}}}
    assert texts({"l": [{"n": 1}, {"n": 0}], "m": {"k": {"n": 0}}}, schema) == [
        "l[1]: Invalid value: failed rule: self.n > 0",
        "m[k]: Invalid value: failed rule: self.n > 0",
    ]


def test_a_transition_rule_finds_the_old_item_of_a_map_list_by_its_key() -> None:
    item = {"properties": {"name": STRING, "n": {}}, "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n"}]}
    schema = {"properties": {"l": {"items": item, "x-kubernetes-list-map-keys": ["name"]}}}
    before = {"l": [{"name": "a", "n": 1}, {"name": "b", "n": 5}]}
    after = {"l": [{"name": "c", "n": 0}, {"name": "b", "n": 4}, {"name": "a", "n": 2}]}
    assert texts(after, schema, before) == ["l[1]: Invalid value: failed rule: self.n >= oldSelf.n"]


def test_null_is_not_judged() -> None:
    assert texts({"spec": None}, spec({"rule": "false"})) == []
