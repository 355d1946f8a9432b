from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.kube import objects

JOB: objects.Object = {
    "kind": "Job",
    "metadata": {
        "name": "j",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "finalizers": ["f"],
        "deletionTimestamp": "2025-11-21T09:00:00Z",
        "ownerReferences": [{"uid": "o1"}, {"uid": "o2", "controller": True}],
    },
    "spec": {"s": 1},
    "status": {"conditions": [{"type": "Failed", "status": "False"}, {"type": "Complete", "status": "True"}]},
}


def test_accessors_read_present_fields() -> None:
    assert (objects.name(JOB), objects.namespace(JOB), objects.key(JOB)) == ("j", "ns", ("ns", "j"))
    assert (objects.uid(JOB), objects.resource_version(JOB)) == ("u", "7")
    assert (objects.labels(JOB), objects.annotations_of(JOB)) == ({"a": "b"}, {"c": "d"})
    assert objects.finalizers(JOB) == ["f"]
    assert objects.is_deleting(JOB)
    assert objects.spec(JOB) == {"s": 1}
    assert objects.condition(JOB, "Complete") == {"type": "Complete", "status": "True"}
    assert objects.is_condition_true(JOB, "Complete")
    assert not objects.is_condition_true(JOB, "Failed")
    assert objects.owner_uid(JOB) == "o2"


EMPTY: dict[str, objects.Object] = {
    "empty": {},
    "null parts": {"metadata": None, "spec": None, "status": None},
    "null fields": {
        "metadata": dict.fromkeys(("name", "namespace", "uid", "labels", "annotations", "ownerReferences")),
        "status": {"conditions": None},
    },
    "wrong metadata": {"metadata": "x"},
}


@pytest.mark.parametrize("obj", EMPTY.values(), ids=EMPTY.keys())
def test_accessors_accept_missing_and_null_parts(obj: dict[str, Any]) -> None:
    assert objects.key(obj) == ("", "")
    assert (objects.name(obj), objects.namespace(obj), objects.uid(obj), objects.resource_version(obj)) == ("",) * 4
    assert (objects.labels(obj), objects.annotations_of(obj), objects.finalizers(obj)) == ({}, {}, [])
    assert not objects.is_deleting(obj)
    assert objects.spec(obj) == {}
    assert objects.condition(obj, "Ready") == {}
    assert not objects.is_condition_true(obj, "Ready")
    assert objects.owner_uid(obj) == ""


FIELDS: dict[str, Any] = {
    "text": "a",
    "number": 3,
    "flag": True,
    "list": [1],
    "map": {"a": "b", "c": 1},
    "null": None,
    "long": "word " * 100,
    "lines": " one\n two.\n",
}


@pytest.mark.parametrize("key", [*FIELDS, "absent"])
def test_other_types_are_empty(key: str) -> None:
    text = key in {"text", "long", "lines"}
    assert objects.text(FIELDS, key) == (FIELDS[key] if text else "")
    assert objects.number(FIELDS, key) == (3 if key == "number" else None)
    assert objects.is_true(FIELDS, key) is (key == "flag")
    assert objects.items(FIELDS, key) == ([1] if key == "list" else [])
    assert objects.mapping(FIELDS, key) == (FIELDS["map"] if key == "map" else {})
    assert objects.strings(FIELDS, key) == ({"a": "b"} if key == "map" else {})
    assert objects.value(FIELDS, key, "a") == ("b" if key == "map" else None)


def test_excerpt_is_one_short_line_without_a_full_stop() -> None:
    assert objects.excerpt(FIELDS, "lines") == "one two"
    assert len(objects.excerpt(FIELDS, "long")) == 301
    assert objects.excerpt(FIELDS, "null") == ""


def test_excerpt_has_no_control_characters() -> None:
    assert objects.excerpt("a\x1b[31m\x00b\u202ec") == "a [31m b c"


@pytest.mark.parametrize(
    ("obj", "name", "qualified"),
    [
        ({"metadata": {"name": "a", "namespace": "b"}}, "a", "b/a"),
        ({"metadata": {"name": "a"}}, "a", "/a"),
        ({"metadata": None}, "", "/"),
        (None, "", "/"),
    ],
)
def test_qualified_names(obj: object, name: str, qualified: str) -> None:
    assert (objects.name(obj), objects.qualified_name(obj)) == (name, qualified)


def test_condition_is_found_by_its_type() -> None:
    ready = {"type": "Ready", "status": "True"}
    obj = {"status": {"conditions": [None, {"type": 1}, ready]}}
    assert objects.condition(obj, "Ready") == ready
    assert objects.condition(obj, "Degraded") == {}
    assert objects.condition({"status": {"conditions": None}}, "Ready") == {}
