"""CustomResourceDefinitions: defaults, conflicts, updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import DEFINITIONS
from tests.support.conformance_objects import NAME, OPEN, gadget
from tests.support.conformance_rows import Row, answered, invalid, merge, play, post, put

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


def _version(**more: object) -> dict[str, object]:
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}} | more


ROWS = [
    Row(
        title="definition gets defaults",
        when=post(DEFINITIONS, gadget()),
        fields=("spec.names", "spec.conversion", "spec.scope", "spec.preserveUnknownFields", "metadata.generation"),
        then=answered(
            201,
            **{
                "spec.names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "spec.conversion": {"strategy": "None"},
                "spec.scope": "Namespaced",
                "spec.preserveUnknownFields": "absent",
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="update without resourceVersion is refused",
        given=(post(DEFINITIONS, gadget()),),
        when=put(f"{DEFINITIONS}/{NAME}", gadget()),
        then=invalid(
            "customresourcedefinitions.apiextensions.k8s.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="schema can change",
        given=(post(DEFINITIONS, gadget()),),
        when=merge(
            f"{DEFINITIONS}/{NAME}",
            {
                "spec": {
                    "versions": [
                        _version(
                            schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
                        )
                    ]
                }
            },
        ),
        fields=("spec.versions.0.schema", "metadata.generation"),
        then=answered(
            200,
            **{
                "spec.versions.0.schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}
                },
                "metadata.generation": 2,
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_definition(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
