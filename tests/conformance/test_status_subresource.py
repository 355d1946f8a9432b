"""The status subresource, and when the generation increases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, conflict, delete, invalid, merge, play, post, put
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

WIDGET = f"{WIDGETS}/one"
NODES = "/api/v1/nodes"
ONE = (post(WIDGETS, widget(size=1)),)
NOW = {"resourceVersion": "$0.metadata.resourceVersion"}

ROWS = [
    Row(
        title="create drops the status",
        when=post(WIDGETS, widget() | {"status": {"phase": "x"}}),
        fields=("status", "metadata.generation"),
        then=answered(201, **{"status": "absent", "metadata.generation": 1}),
    ),
    Row(
        title="create keeps the status of a Node",
        when=post(NODES, {"metadata": {"name": "$word"}, "status": {"phase": "x"}}),
        fields=("status.phase", "metadata.generation"),
        then=answered(201, **{"status.phase": "x", "metadata.generation": "absent"}),
    ),
    Row(
        title="object endpoint ignores the status",
        given=ONE,
        when=merge(WIDGET, {"status": {"phase": "x"}}),
        fields=("status", "metadata.generation", "metadata.resourceVersion"),
        then=answered(200, **{"status": "absent", "metadata.generation": 1, "metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="status endpoint writes the status",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"status": {"phase": "x"}}),
        fields=("status", "metadata.generation"),
        then=answered(200, **{"status": {"phase": "x"}, "metadata.generation": 1}),
    ),
    Row(
        title="status endpoint ignores the spec",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"spec": {"size": 5}, "status": {"phase": "x"}}),
        fields=("status", "spec.size", "metadata.generation"),
        then=answered(200, **{"status": {"phase": "x"}, "spec.size": 1, "metadata.generation": 1}),
    ),
    Row(
        title="status endpoint ignores labels",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"metadata": {"labels": {"a": "b"}}}),
        fields=("metadata.labels",),
        then=answered(200, **{"metadata.labels": "absent"}),
    ),
    Row(
        title="status endpoint ignores the spec of a Node",
        given=(post(NODES, {"metadata": {"name": "$word"}}),),
        when=merge(f"{NODES}/$word/status", {"spec": {"unschedulable": True}}),
        fields=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": "absent"}),
    ),
    Row(
        title="old resourceVersion is a conflict",
        given=(*ONE, merge(WIDGET, {"spec": {"size": 4}})),
        when=put(f"{WIDGET}/status", widget() | {"metadata": {"name": "one"} | NOW, "status": {"phase": "x"}}),
        then=conflict(
            "widgets.shapes.example.io",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ),
    Row(
        title="status PUT without resourceVersion is refused",
        given=ONE,
        when=put(f"{WIDGET}/status", widget() | {"status": {"phase": "x"}}),
        then=invalid(
            "widgets.shapes.example.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="status PUT writes only the status",
        given=ONE,
        when=put(
            f"{WIDGET}/status",
            widget(size=9) | {"metadata": {"name": "one", "labels": {"a": "b"}} | NOW, "status": {"phase": "x"}},
        ),
        fields=("spec.size", "status", "metadata.labels"),
        then=answered(200, **{"spec.size": 1, "status": {"phase": "x"}, "metadata.labels": "absent"}),
    ),
    Row(
        title="status that violates the schema is refused",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"status": {"count": -1, "phase": 5}}),
        then=invalid(
            "Widget.shapes.example.io",
            ("status.count", "Invalid value: -1: count in body should be greater than or equal to 0"),
            (
                "status.phase",
                'Invalid value: "integer": phase in body must be of type string: "integer"',
                "FieldValueTypeInvalid",
            ),
        ),
    ),
    Row(
        title="unknown status field is dropped with a warning",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"status": {"strange": 1}}),
        fields=("status",),
        then=answered(200, status={}, warnings=['unknown field "status.strange"']),
    ),
    Row(
        title="no-op status keeps the resourceVersion",
        given=(*ONE, merge(f"{WIDGET}/status", {"status": {"phase": "x"}})),
        when=merge(f"{WIDGET}/status", {"status": {"phase": "x"}}),
        fields=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="spec change increases the generation",
        given=ONE,
        when=merge(WIDGET, {"spec": {"size": 2}}),
        fields=("metadata.generation",),
        then=answered(200, **{"metadata.generation": 2}),
    ),
    Row(
        title="label change keeps the generation",
        given=ONE,
        when=merge(WIDGET, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}),
        fields=("metadata.generation",),
        then=answered(200, **{"metadata.generation": 1}),
    ),
    Row(
        title="deletion increases the generation",
        given=(post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),),
        when=delete(WIDGET),
        fields=("metadata.generation", "metadata.deletionGracePeriodSeconds", "metadata.finalizers"),
        then=answered(
            200,
            **{"metadata.generation": 2, "metadata.deletionGracePeriodSeconds": 0, "metadata.finalizers": ["a.io/b"]},
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_status_subresource(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
