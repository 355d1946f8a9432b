"""The finalizers and owners that a create takes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, play, post
from tests.support.maps import MAPS, config_map
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
    Row(
        title="a finalizer without a domain is refused",
        when=post(MAPS, config_map(name="one", finalizers=["mine"])),
        look=("metadata.finalizers",),
        then=invalid(
            "ConfigMap",
            (
                "metadata.finalizers[0]",
                'Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
            ),
        ),
    ),
    Row(
        title="a finalizer without a domain brings a warning for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["mine"]}}),
        look=("metadata.finalizers",),
        then=answered(
            201,
            **{
                "metadata.finalizers": ["mine"],
                "warnings": [
                    'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers'
                ],
            },
        ),
    ),
    Row(
        title="both collector finalizers are refused",
        when=post(MAPS, config_map(name="one", finalizers=["orphan", "foregroundDeletion"])),
        then=invalid(
            "ConfigMap",
            (
                "metadata.finalizers",
                'Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
            ),
        ),
    ),
    Row(
        title="an owner without a uid is refused",
        when=post(
            MAPS, config_map(name="one", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])
        ),
        then=invalid("ConfigMap", ("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty')),
    ),
    Row(
        title="two controlling owners are refused for a custom kind",
        when=post(
            WIDGETS,
            widget()
            | {
                "metadata": {
                    "name": "one",
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"u-{name}", "controller": True}
                        for name in "ab"
                    ],
                }
            },
        ),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "metadata.ownerReferences",
                'Invalid value: $value: Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b',
            ),
        ),
    ),
    Row(
        title="the same owner twice brings a warning",
        when=post(
            MAPS,
            config_map(
                name="one", ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "u-a"}] * 2
            ),
        ),
        look=("metadata.ownerReferences",),
        then=answered(
            201,
            **{
                "metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "u-a"}],
                "warnings": [
                    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u-a"
                ],
            },
        ),
    ),
    Row(
        title="the owner is kept as it is sent",
        when=post(
            MAPS,
            config_map(
                name="one",
                ownerReferences=[
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": "a",
                        "uid": "u-a",
                        "blockOwnerDeletion": False,
                        "controller": False,
                    }
                ],
            ),
        ),
        look=("metadata.ownerReferences",),
        then=answered(
            201,
            **{
                "metadata.ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": "a",
                        "uid": "u-a",
                        "controller": False,
                        "blockOwnerDeletion": False,
                    }
                ]
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_new_owners(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
