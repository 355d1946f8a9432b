"""What a delete answers and leaves."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import CUSTOM, CUSTOM_HELD, DYING, MAP, ONE, PLACED, WIDGET
from tests.support.conformance_rows import Row, answered, delete, get, invalid, merge, play, post, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
_SPEC = {"containers": [{"name": "c", "image": "i"}]}
_JOB = {"suspend": True, "template": {"spec": _SPEC | {"restartPolicy": "Never"}}}

ROWS = [
    Row(
        title="a custom object goes at once",
        given=CUSTOM,
        when=delete(WIDGET),
        look=("kind", "apiVersion", "metadata", "status", "details"),
        then=answered(
            200,
            kind="Status",
            apiVersion="v1",
            metadata={},
            status="Success",
            details={"name": "one", "group": "shapes.example.io", "kind": "widgets", "uid": "$uid"},
        ),
    ),
    Row(
        title="a custom object that does not exist is not found",
        when=delete(WIDGET),
        then=refused(
            404,
            "NotFound",
            'widgets.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a finalizer holds the custom object",
        given=CUSTOM_HELD,
        when=delete(WIDGET),
        look=PLACED,
        then=answered(
            200,
            **{
                "metadata.deletionTimestamp": "$time",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.finalizers": ["a.io/b"],
                "metadata.generation": 2,
                "kind": "Widget",
                "status": "absent",
                "details": "absent",
            },
        ),
    ),
    Row(
        title="a second delete changes nothing",
        given=DYING,
        when=delete(MAP),
        look=("metadata.resourceVersion", "metadata.finalizers"),
        then=answered(200, **{"metadata.resourceVersion": "$version", "metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="a dying object can be changed",
        given=DYING,
        when=merge(MAP, {"data": {"a": "b"}}),
        look=("data", "metadata.finalizers"),
        then=answered(200, **{"data": {"a": "b"}, "metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="a dying custom object gets no new finalizer",
        given=(*CUSTOM_HELD, delete(WIDGET)),
        when=merge(WIDGET, {"metadata": {"finalizers": ["a.io/b", "d.io/d", "c.io/d"]}}),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "metadata.finalizers",
                'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c.io/d", "d.io/d"}',
            ),
        ),
    ),
    Row(
        title="a dying object goes with its last finalizer",
        given=DYING,
        when=merge(MAP, {"metadata": {"finalizers": None}}),
        look=("metadata.finalizers", "metadata.deletionTimestamp", "kind"),
        then=answered(
            200, **{"metadata.finalizers": "absent", "metadata.deletionTimestamp": "$time", "kind": "ConfigMap"}
        ),
    ),
    Row(
        title="a custom name that is being deleted is taken",
        given=(*CUSTOM_HELD, delete(WIDGET)),
        when=post(WIDGETS, widget()),
        then=refused(
            409,
            "AlreadyExists",
            'object is being deleted: widgets.shapes.example.io "one" already exists',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a Job is orphaned where nothing is said",
        given=(post(JOBS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}, "spec": _JOB}),),
        when=delete(f"{JOBS}/one"),
        look=("metadata.finalizers",),
        then=answered(
            200,
            **{
                "metadata.finalizers": ["a.io/b", "orphan"],
                "warnings": [
                    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
                ],
            },
        ),
    ),
    Row(
        title="a dry run deletes nothing",
        given=(*ONE, delete(MAP, dryRun="All")),
        when=get(MAP),
        look=("metadata.name", "metadata.deletionTimestamp"),
        then=answered(200, **{"metadata.name": "one", "metadata.deletionTimestamp": "absent"}),
    ),
    Row(
        title="a namespace is deleted in the background",
        given=(post("/api/v1/namespaces", {"metadata": {"name": "$word-2", "finalizers": ["a.io/b"]}}),),
        when=delete("/api/v1/namespaces/$word-2"),
        look=("status.phase", "metadata.finalizers", "metadata.deletionGracePeriodSeconds", "spec.finalizers"),
        then=answered(
            200,
            **{
                "status.phase": "Terminating",
                "metadata.finalizers": ["a.io/b"],
                "metadata.deletionGracePeriodSeconds": "absent",
                "spec.finalizers": ["kubernetes"],
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_delete(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
