"""What may be asked of a deletion: preconditions, and what becomes of dependents."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import CUSTOM, CUSTOM_HELD, HELD, MAP, ONE, PLACED, WIDGET
from tests.support.conformance_rows import Row, answered, conflict, delete, play

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
    Row(
        title="another uid is a conflict for a custom object",
        given=CUSTOM,
        when=delete(WIDGET, {"preconditions": {"uid": "other"}}),
        then=conflict(
            "Widget.shapes.example.io",
            "the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated",
        ),
    ),
    Row(
        title="another resourceVersion is a conflict",
        given=ONE,
        when=delete(MAP, {"preconditions": {"resourceVersion": "1"}}),
        then=conflict(
            "ConfigMap",
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ($version). The object might have been modified",
        ),
    ),
    Row(
        title="the right preconditions are taken",
        given=ONE,
        when=delete(
            MAP, {"preconditions": {"uid": "$0.metadata.uid", "resourceVersion": "$0.metadata.resourceVersion"}}
        ),
        look=("status",),
        then=answered(200, status="Success"),
    ),
    Row(
        title="an orphaning deletion takes its finalizer",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Orphan"}),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="the propagation in the query counts without a body",
        given=HELD,
        when=delete(MAP, propagationPolicy="Orphan"),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="a background deletion leaves a finalizer of others alone",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Background"}),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="a custom object takes the foreground finalizer",
        given=CUSTOM_HELD,
        when=delete(WIDGET, {"propagationPolicy": "Foreground"}),
        look=PLACED,
        then=answered(
            200,
            **{
                "metadata.deletionTimestamp": "$time",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.finalizers": ["a.io/b", "foregroundDeletion"],
                "metadata.generation": 2,
                "kind": "Widget",
                "status": "absent",
                "details": "absent",
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_delete_options(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
