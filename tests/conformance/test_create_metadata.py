"""The metadata that a create takes: system fields, labels, annotations."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import MAPS, config_map
from tests.support.conformance_rows import Row, answered, invalid, play, post
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
    Row(
        title="system fields that are sent are replaced for a custom kind",
        when=post(
            WIDGETS,
            widget()
            | {
                "metadata": {
                    "name": "one",
                    "uid": "mine",
                    "creationTimestamp": "2001-01-01T00:00:00Z",
                    "deletionTimestamp": "2001-01-01T00:00:00Z",
                    "deletionGracePeriodSeconds": 5,
                    "generation": 7,
                    "selfLink": "/x",
                }
            },
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
    Row(
        title="a label value that is too long is refused",
        when=post(MAPS, config_map(name="one", labels={"a": "b" * 64})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                'Invalid value: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": must be no more than 63 bytes',
            ),
        ),
    ),
    Row(
        title="empty maps and lists in metadata are left out",
        when=post(
            WIDGETS,
            widget()
            | {"metadata": {"name": "one", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}},
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_new_metadata(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
