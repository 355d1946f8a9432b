from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.decode import mistyped_metadata, unknown_metadata


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"name": "a", "labels": {"a": "b"}, "ownerReferences": []}, [], id="what ObjectMeta has"),
        pytest.param({"lables": {}}, ["metadata.lables"], id="a misspelt field"),
        pytest.param(
            {"ownerReferences": [{"name": "a", "nmae": "b"}]},
            ["metadata.ownerReferences[0].nmae"],
            id="a misspelt field of an owner",
        ),
    ],
)
def test_unknown_fields_of_metadata(metadata: dict[str, Any], expected: list[str]) -> None:
    assert unknown_metadata(metadata) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"name": "a", "labels": {"a": "b"}, "generation": 1}, "", id="right types"),
        pytest.param({"labels": None, "finalizers": None}, "", id="null is nothing"),
        pytest.param({"labels": {"a": None}}, "", id="null in labels"),
        pytest.param({"name": 1}, "number into Go struct field ObjectMeta.metadata.name of type string", id="a name"),
        pytest.param(
            {"labels": {"a": True}}, "bool into Go struct field ObjectMeta.metadata.labels of type string", id="a label"
        ),
        pytest.param(
            {"labels": []},
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            id="labels",
        ),
        pytest.param(
            {"annotations": {"a": {}}},
            "object into Go struct field ObjectMeta.metadata.annotations of type string",
            id="an annotation",
        ),
        pytest.param(
            {"finalizers": "a"},
            "string into Go struct field ObjectMeta.metadata.finalizers of type []string",
            id="finalizers",
        ),
        pytest.param(
            {"finalizers": [1]}, "number into Go struct field ObjectMeta.metadata.finalizers of type string", id="one"
        ),
        pytest.param(
            {"generation": True},
            "bool into Go struct field ObjectMeta.metadata.generation of type string",
            id="no number",
        ),
        pytest.param(
            {"ownerReferences": ["a"]},
            "string into Go struct field ObjectMeta.metadata.ownerReferences of type v1.OwnerReference",
            id="an owner",
        ),
        pytest.param(
            {"ownerReferences": [{"controller": "true"}]},
            "string into Go struct field OwnerReference.metadata.ownerReferences.controller of type bool",
            id="an owner's flag",
        ),
    ],
)
def test_metadata_of_a_wrong_type(metadata: dict[str, Any], expected: str) -> None:
    assert mistyped_metadata(metadata) == (f"json: cannot unmarshal {expected}" if expected else "")
