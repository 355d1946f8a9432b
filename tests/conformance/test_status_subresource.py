"""Who may write the status, and who may write all else; when the generation moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.conformance_rows import Row, answered, conflict, delete, invalid, merge, play, post, put
from tests.support.shapes import PLAINS, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

WIDGET = f"{WIDGETS}/one"
PLAIN = f"{PLAINS}/one"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
NODES = "/api/v1/nodes"
SPACES = "/api/v1/namespaces"
MAPS = "/api/v1/namespaces/$ns/configmaps"
ONE = (post(WIDGETS, widget(size=1)),)
BARE = (post(PLAINS, plain(spec={"size": 1})),)
NOW = {"resourceVersion": "$0.metadata.resourceVersion"}
_TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_DEPLOYMENT = {
    "metadata": {"name": "one"},
    "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
}
DEPLOYMENT = (post(DEPLOYMENTS, _DEPLOYMENT | {"status": {"replicas": 7}}),)

ROWS = [
    Row(
        title="a status that a new object brings is dropped",
        when=post(WIDGETS, widget() | {"status": {"phase": "x"}}),
        look=("status", "metadata.generation"),
        then=answered(201, **{"status": "absent", "metadata.generation": 1}),
    ),
    Row(
        title="a Node is created with the status that it brings",
        when=post(NODES, {"metadata": {"name": "$word"}, "status": {"phase": "x"}}),
        look=("status.phase", "metadata.generation"),
        then=answered(201, **{"status.phase": "x", "metadata.generation": "absent"}),
    ),
    Row(
        title="the status cannot be written at the object",
        given=ONE,
        when=merge(WIDGET, {"status": {"phase": "x"}}),
        look=("status", "metadata.generation", "metadata.resourceVersion"),
        then=answered(200, **{"status": "absent", "metadata.generation": 1, "metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="the status is written at its endpoint",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"status": {"phase": "x"}}),
        look=("status", "metadata.generation"),
        then=answered(200, **{"status": {"phase": "x"}, "metadata.generation": 1}),
    ),
    Row(
        title="the spec cannot be written at the status",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"spec": {"size": 5}, "status": {"phase": "x"}}),
        look=("status", "spec.size", "metadata.generation"),
        then=answered(200, **{"status": {"phase": "x"}, "spec.size": 1, "metadata.generation": 1}),
    ),
    Row(
        title="labels cannot be written at the status of a custom object",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"metadata": {"labels": {"a": "b"}}}),
        look=("metadata.labels",),
        then=answered(200, **{"metadata.labels": "absent"}),
    ),
    Row(
        title="the spec of a Node cannot be written at the status",
        given=(post(NODES, {"metadata": {"name": "$word"}}),),
        when=merge(f"{NODES}/$word/status", {"spec": {"unschedulable": True}}),
        look=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": "absent"}),
    ),
    Row(
        title="an old resourceVersion is a conflict at the status",
        given=(*ONE, merge(WIDGET, {"spec": {"size": 4}})),
        when=put(f"{WIDGET}/status", widget() | {"metadata": {"name": "one"} | NOW, "status": {"phase": "x"}}),
        then=conflict(
            "widgets.shapes.example.io",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ),
    Row(
        title="a PUT of the status without a resourceVersion is refused",
        given=ONE,
        when=put(f"{WIDGET}/status", widget() | {"status": {"phase": "x"}}),
        then=invalid(
            "widgets.shapes.example.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="a PUT of the status writes the status only",
        given=ONE,
        when=put(
            f"{WIDGET}/status",
            widget(size=9) | {"metadata": {"name": "one", "labels": {"a": "b"}} | NOW, "status": {"phase": "x"}},
        ),
        look=("spec.size", "status", "metadata.labels"),
        then=answered(200, **{"spec.size": 1, "status": {"phase": "x"}, "metadata.labels": "absent"}),
    ),
    Row(
        title="a status that breaks the schema is refused",
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
        title="an unknown field of the status goes with a warning",
        given=ONE,
        when=merge(f"{WIDGET}/status", {"status": {"strange": 1}}),
        look=("status",),
        then=answered(200, status={}, warnings=['unknown field "status.strange"']),
    ),
    Row(
        title="a status that changes nothing keeps the resourceVersion",
        given=(*ONE, merge(f"{WIDGET}/status", {"status": {"phase": "x"}})),
        when=merge(f"{WIDGET}/status", {"status": {"phase": "x"}}),
        look=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="the generation moves with the spec of a custom object",
        given=ONE,
        when=merge(WIDGET, {"spec": {"size": 2}}),
        look=("metadata.generation",),
        then=answered(200, **{"metadata.generation": 2}),
    ),
    Row(
        title="the generation does not move with labels",
        given=ONE,
        when=merge(WIDGET, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}),
        look=("metadata.generation",),
        then=answered(200, **{"metadata.generation": 1}),
    ),
    Row(
        title="the generation moves when a deletion begins",
        given=(post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),),
        when=delete(WIDGET),
        look=("metadata.generation", "metadata.deletionGracePeriodSeconds", "metadata.finalizers"),
        then=answered(
            200,
            **{"metadata.generation": 2, "metadata.deletionGracePeriodSeconds": 0, "metadata.finalizers": ["a.io/b"]},
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_write(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
