"""Deletion: finalizers, options, grace periods, collections."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import CUSTOM, CUSTOM_HELD, DYING, HELD, MAP, MAPS, ONE, PLACED, WIDGET
from tests.support.conformance_rows import Row, answered, conflict, delete, get, invalid, merge, play, post, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
_SPEC = {"containers": [{"name": "c", "image": "i"}]}
_JOB = {"suspend": True, "template": {"spec": _SPEC | {"restartPolicy": "Never"}}}
PODS = "/api/v1/namespaces/$ns/pods"
POD = f"{PODS}/one"
WAITING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC}),)
RUNNING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC | {"nodeName": "none-$word"}}),)


ROWS = [
    Row(
        title="custom object is deleted immediately",
        given=CUSTOM,
        when=delete(WIDGET),
        fields=("kind", "apiVersion", "metadata", "status", "details"),
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
        title="missing custom object is not found",
        when=delete(WIDGET),
        then=refused(
            404,
            "NotFound",
            'widgets.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="finalizer delays the deletion",
        given=CUSTOM_HELD,
        when=delete(WIDGET),
        fields=PLACED,
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
        title="second delete changes nothing",
        given=DYING,
        when=delete(MAP),
        fields=("metadata.resourceVersion", "metadata.finalizers"),
        then=answered(200, **{"metadata.resourceVersion": "$version", "metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="terminating object can change",
        given=DYING,
        when=merge(MAP, {"data": {"a": "b"}}),
        fields=("data", "metadata.finalizers"),
        then=answered(200, **{"data": {"a": "b"}, "metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="terminating object takes no new finalizer",
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
        title="removing the last finalizer deletes the object",
        given=DYING,
        when=merge(MAP, {"metadata": {"finalizers": None}}),
        fields=("metadata.finalizers", "metadata.deletionTimestamp", "kind"),
        then=answered(
            200, **{"metadata.finalizers": "absent", "metadata.deletionTimestamp": "$time", "kind": "ConfigMap"}
        ),
    ),
    Row(
        title="name of a terminating object cannot be reused",
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
        title="Job is orphaned by default",
        given=(post(JOBS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}, "spec": _JOB}),),
        when=delete(f"{JOBS}/one"),
        fields=("metadata.finalizers",),
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
        title="dry run deletes nothing",
        given=(*ONE, delete(MAP, dryRun="All")),
        when=get(MAP),
        fields=("metadata.name", "metadata.deletionTimestamp"),
        then=answered(200, **{"metadata.name": "one", "metadata.deletionTimestamp": "absent"}),
    ),
    Row(
        title="namespace deletion continues in the background",
        given=(post("/api/v1/namespaces", {"metadata": {"name": "$word-2", "finalizers": ["a.io/b"]}}),),
        when=delete("/api/v1/namespaces/$word-2"),
        fields=("status.phase", "metadata.finalizers", "metadata.deletionGracePeriodSeconds", "spec.finalizers"),
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
    Row(
        title="wrong uid is a conflict",
        given=CUSTOM,
        when=delete(WIDGET, {"preconditions": {"uid": "other"}}),
        then=conflict(
            "Widget.shapes.example.io",
            "the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated",
        ),
    ),
    Row(
        title="wrong resourceVersion is a conflict",
        given=ONE,
        when=delete(MAP, {"preconditions": {"resourceVersion": "1"}}),
        then=conflict(
            "ConfigMap",
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ($version). The object might have been modified",
        ),
    ),
    Row(
        title="matching preconditions are accepted",
        given=ONE,
        when=delete(
            MAP, {"preconditions": {"uid": "$0.metadata.uid", "resourceVersion": "$0.metadata.resourceVersion"}}
        ),
        fields=("status",),
        then=answered(200, status="Success"),
    ),
    Row(
        title="orphan propagation adds its finalizer",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Orphan"}),
        fields=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="propagation policy is read from the query",
        given=HELD,
        when=delete(MAP, propagationPolicy="Orphan"),
        fields=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="background deletion keeps other finalizers",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Background"}),
        fields=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="foreground propagation adds its finalizer",
        given=CUSTOM_HELD,
        when=delete(WIDGET, {"propagationPolicy": "Foreground"}),
        fields=PLACED,
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
    Row(
        title="collection is deleted by labels",
        given=(
            post(MAPS, {"metadata": {"name": "one", "labels": {"a": "b"}}}),
            post(MAPS, {"metadata": {"name": "two"}}),
        ),
        when=delete(MAPS, labelSelector="a=b"),
        fields=("kind", "apiVersion", "items.0.metadata.name", "items.1", "status"),
        then=answered(
            200,
            **{
                "kind": "ConfigMapList",
                "apiVersion": "v1",
                "items.0.metadata.name": "one",
                "items.1": "absent",
                "status": "absent",
            },
        ),
    ),
    Row(
        title="collection delete keeps other labels",
        given=(
            post(MAPS, {"metadata": {"name": "one", "labels": {"a": "b"}}}),
            post(MAPS, {"metadata": {"name": "two"}}),
            delete(MAPS, labelSelector="a=b"),
        ),
        when=get(f"{MAPS}/two"),
        fields=("metadata.name",),
        then=answered(200, **{"metadata.name": "two"}),
    ),
    Row(
        title="custom collection is deleted",
        given=(post(WIDGETS, widget("a")), post(WIDGETS, widget("b"))),
        when=delete(WIDGETS),
        fields=("kind", "apiVersion", "items.0.metadata.name", "items.1.metadata.name", "items.2"),
        then=answered(
            200,
            **{
                "kind": "WidgetList",
                "apiVersion": "shapes.example.io/v1",
                "items.0.metadata.name": "a",
                "items.1.metadata.name": "b",
                "items.2": "absent",
            },
        ),
    ),
    Row(
        title="collection delete keeps objects with finalizers",
        given=HELD,
        when=delete(MAPS, labelSelector="!x", fieldSelector="metadata.name=one"),
        fields=("items.0.metadata.finalizers", "items.0.metadata.deletionTimestamp"),
        then=answered(
            200, **{"items.0.metadata.finalizers": ["a.io/b"], "items.0.metadata.deletionTimestamp": "absent"}
        ),
    ),
    Row(
        title="dry run of a collection deletes nothing",
        given=(*CUSTOM, delete(WIDGETS, dryRun="All")),
        when=get(WIDGET),
        fields=("metadata.deletionTimestamp",),
        then=answered(200, **{"metadata.deletionTimestamp": "absent"}),
    ),
    Row(
        title="unscheduled Pod is deleted immediately",
        given=WAITING,
        when=delete(POD),
        fields=("kind", "metadata.deletionGracePeriodSeconds", "metadata.name", "metadata.deletionTimestamp"),
        then=answered(
            200,
            **{
                "kind": "Pod",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.name": "one",
                "metadata.deletionTimestamp": "$time",
            },
        ),
    ),
    Row(
        title="scheduled Pod gets its grace period",
        given=RUNNING,
        when=delete(POD),
        fields=("kind", "metadata.deletionGracePeriodSeconds", "metadata.name", "metadata.generation"),
        then=answered(
            200,
            **{
                "kind": "Pod",
                "metadata.deletionGracePeriodSeconds": 30,
                "metadata.name": "one",
                "metadata.generation": 2,
            },
        ),
    ),
    Row(
        title="scheduled Pod gets the grace period of the request",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 5}),
        fields=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 5}),
    ),
    Row(
        title="Pod without grace period is deleted immediately",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 0}),
        fields=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="terminating Pod is deleted by force",
        given=(*RUNNING, delete(POD)),
        when=delete(POD, {"gracePeriodSeconds": 0}),
        fields=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="completed Pod is deleted immediately",
        given=(*RUNNING, merge(f"{POD}/status", {"status": {"phase": "Succeeded"}})),
        when=delete(POD),
        fields=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="unscheduled Pod with a finalizer stays",
        given=(post(PODS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}, "spec": _SPEC}),),
        when=delete(POD),
        fields=PLACED[:4],
        then=answered(
            200,
            **{
                "metadata.deletionTimestamp": "$time",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.finalizers": ["a.io/b"],
                "metadata.generation": 2,
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_delete(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
