"""The finalizers and owners that a create takes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import MAPS, config_map
from tests.support.conformance_rows import Row, answered, play, post
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
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
