"""Unknown fields under each fieldValidation mode."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, invalid, merge, play, post, put, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
_UNKNOWN_FIELDS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "strange": 1},
    "dataa": {"a": "b"},
    "extra": 5,
}
_UNKNOWN_WIDGET_FIELDS = widget(strange=1, size=2, nested={"deep": {"odd": 1}}, parts=[{"name": "a", "odd": 1}]) | {
    "top": 1,
    "metadata": {"name": "one", "odd": 1},
}
GIVEN = (post(MAPS, {"metadata": {"name": "one"}}),)
CUSTOM = (post(WIDGETS, widget()),)


ROWS = [
    Row(
        title="Ignore drops unknown fields",
        when=post(WIDGETS, _UNKNOWN_WIDGET_FIELDS, fieldValidation="Ignore"),
        fields=("spec", "top"),
        then=answered(
            201,
            spec={"mode": "slow", "nested": {"deep": {}, "level": 3}, "parts": [{"name": "a", "weight": 1}], "size": 2},
            top="absent",
        ),
    ),
    Row(
        title="default mode warns of unknown fields",
        when=post(WIDGETS, _UNKNOWN_WIDGET_FIELDS),
        fields=("spec", "top"),
        then=answered(
            201,
            spec={"mode": "slow", "nested": {"deep": {}, "level": 3}, "parts": [{"name": "a", "weight": 1}], "size": 2},
            top="absent",
            warnings=[
                'unknown field "metadata.odd"',
                'unknown field "spec.nested.deep.odd"',
                'unknown field "spec.parts[0].odd"',
                'unknown field "spec.strange"',
                'unknown field "top"',
            ],
        ),
    ),
    Row(
        title="Strict refuses unknown fields",
        when=post(WIDGETS, _UNKNOWN_WIDGET_FIELDS, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.odd", unknown field "spec.nested.deep.odd", unknown field "spec.parts[0].odd", unknown field "spec.strange", unknown field "top"',
            None,
        ),
    ),
    Row(
        title="Strict refuses an update with an unknown field",
        given=GIVEN,
        when=put(f"{MAPS}/one", _UNKNOWN_FIELDS, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.strange", unknown field "dataa", unknown field "extra"',
            None,
        ),
    ),
    Row(
        title="Strict refuses a merge patch with an unknown field",
        given=CUSTOM,
        when=merge(f"{WIDGETS}/one", {"spec": {"odd": 1}}, fieldValidation="Strict"),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: unknown field "spec.odd"'), name=""),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_field_validation(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
