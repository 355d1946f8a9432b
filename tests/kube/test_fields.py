"""Fields of objects whose types no schema guarantees."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.kube import fields

OBJ: dict[str, Any] = {
    "text": "a",
    "number": 3,
    "flag": True,
    "list": [1],
    "map": {"a": "b", "c": 1},
    "null": None,
    "long": "word " * 100,
    "lines": " one\n two.\n",
}


@pytest.mark.parametrize("key", [*OBJ, "absent"])
def test_other_types_are_empty(key: str) -> None:
    text = key in {"text", "long", "lines"}
    assert fields.text(OBJ, key) == (OBJ[key] if text else "")
    assert fields.number(OBJ, key) == (3 if key == "number" else None)
    assert fields.is_true(OBJ, key) is (key == "flag")
    assert fields.items(OBJ, key) == ([1] if key == "list" else [])
    assert fields.mapping(OBJ, key) == (OBJ["map"] if key == "map" else {})
    assert fields.strings(OBJ, key) == ({"a": "b"} if key == "map" else {})
    assert fields.value(OBJ, key, "a") == ("b" if key == "map" else None)


def test_excerpt_is_one_short_line_without_a_full_stop() -> None:
    assert fields.excerpt(OBJ, "lines") == "one two"
    assert len(fields.excerpt(OBJ, "long")) == 301
    assert fields.excerpt(OBJ, "null") == ""


def test_excerpt_has_no_control_characters() -> None:
    assert fields.excerpt("a\x1b[31m\x00b\u202ec") == "a [31m b c"


@pytest.mark.parametrize(
    ("obj", "name", "qualified"),
    [
        ({"metadata": {"name": "a", "namespace": "b"}}, "a", "b/a"),
        ({"metadata": {"name": "a"}}, "a", "/a"),
        ({"metadata": None}, "", "/"),
        (None, "", "/"),
    ],
)
def test_names(obj: object, name: str, qualified: str) -> None:
    assert (fields.name(obj), fields.qualified_name(obj)) == (name, qualified)


def test_condition_is_found_by_its_type() -> None:
    ready = {"type": "Ready", "status": "True"}
    obj = {"status": {"conditions": [None, {"type": 1}, ready]}}
    assert fields.condition(obj, "Ready") == ready
    assert fields.condition(obj, "Degraded") == {}
    assert fields.condition({"status": {"conditions": None}}, "Ready") == {}
