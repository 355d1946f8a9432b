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
    assert objects.condition(obj, "Ready") is None
    assert not objects.is_condition_true(obj, "Ready")
    assert objects.owner_uid(obj) == ""
