from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.facets import facets, reduced
from upgrade_manager.api.crd import crd_manifest

RULE = {"x-kubernetes-validations": [{"rule": "true"}]}
STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "object", "properties": {"a": STRING}}, None, id="nothing anywhere"),
        pytest.param(
            {"properties": {"a": STRING, "b": RULE}}, {"properties": {"b": RULE}}, id="branches without it are left out"
        ),
        pytest.param(
            {"properties": {"a": {"properties": {"b": RULE, "c": STRING}}}},
            {"properties": {"a": {"properties": {"b": RULE}}}},
            id="further down",
        ),
        pytest.param({"type": "array", "items": RULE}, {"type": "array", "items": RULE}, id="in a list"),
        pytest.param({"additionalProperties": RULE}, {"additionalProperties": RULE}, id="in a map"),
        pytest.param({"additionalProperties": True}, None, id="a map of anything"),
        pytest.param(
            RULE | {"properties": {"a": STRING}},
            RULE | {"properties": {"a": STRING}},
            id="a node that has it stays whole",
        ),
    ],
)
def test_a_schema_is_reduced_to_where_a_keyword_is(schema: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert reduced(schema, "x-kubernetes-validations") == expected


def test_the_facets_of_the_real_schema() -> None:
    found = facets(crd_manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    assert found.rules is not None
    assert set(found.rules["properties"]) == {"spec"}
    assert found.lists is not None
    assert set(found.lists["properties"]) == {"spec", "status"}
    assert found.defaults is None


def test_facets_are_made_once() -> None:
    schema = {"type": "object"}
    assert facets(schema) is facets(schema)


def test_schemas_that_come_and_go_are_not_kept_for_ever() -> None:
    made = [facets({"type": "object", "title": str(number)}) for number in range(1500)]
    assert [found.schema["title"] for found in made] == [str(number) for number in range(1500)]
