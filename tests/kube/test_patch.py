from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.kube.patch import JsonPatch, MergePatch, annotation_path, merge_diff, without_nulls


def test_merge_patch_can_require_a_resource_version() -> None:
    patch = MergePatch({"metadata": {"labels": {"a": "ä"}}})
    assert patch.content_type == "application/merge-patch+json"
    assert patch.encode() == '{"metadata":{"labels":{"a":"ä"}}}'.encode()
    assert json.loads(patch.at("7").encode()) == {"metadata": {"labels": {"a": "ä"}, "resourceVersion": "7"}}
    assert (patch.resource_version, patch.at("7").resource_version, MergePatch({}).resource_version) == ("", "7", "")


def test_json_patch_is_a_list_of_operations() -> None:
    patch = JsonPatch([{"op": "remove", "path": "/x"}])
    assert patch.content_type == "application/json-patch+json"
    assert patch.encode() == b'[{"op":"remove","path":"/x"}]'


DIFFS: dict[str, tuple[Any, Any, Any]] = {
    "nothing": ({"a": {"b": [1]}}, {"a": {"b": [1]}}, {}),
    "an added value": ({}, {"a": 1}, {"a": 1}),
    "a removed value": ({"a": 1}, {}, {"a": None}),
    "a removed value inside": ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, {"a": {"b": None}}),
    "a null inside is nothing": ({"a": {"b": 1}}, {"a": {"b": 1, "c": None}}, {}),
    "a list, as a whole": ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}),
    "an object for a value": ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "a value for an object": ({"a": {"b": 1}}, {"a": 1}, {"a": 1}),
    "a null is absence": ({"a": 1, "b": None}, {"a": None}, {"a": None}),
    "a new null is nothing": ({}, {"a": None, "b": {"c": None}}, {"b": {}}),
}


@pytest.mark.parametrize(("old", "new", "patch"), DIFFS.values(), ids=DIFFS.keys())
def test_merge_diff_is_the_smallest_patch(old: Any, new: Any, patch: Any) -> None:
    assert merge_diff(old, new) == patch


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


values = st.recursive(
    st.one_of(st.none(), st.integers(0, 3), st.sampled_from("xy")),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
)
documents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@given(documents, documents)
def test_merge_diff_leads_from_old_to_new(old: Any, new: Any) -> None:
    old = without_nulls(old)
    assert merged(old, merge_diff(old, new)) == without_nulls(new)
    assert merge_diff(new, new) == {}


def test_annotation_path_escapes_the_slash_of_its_prefix() -> None:
    assert annotation_path("example.com/hook") == "/metadata/annotations/example.com~1hook"
