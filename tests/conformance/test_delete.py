"""Deletion: finalizers, options, grace periods, collections."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.server.conformance_objects import (
    CUSTOM,
    CUSTOM_HELD,
    DYING,
    HELD,
    MAP,
    MAPS,
    ONE,
    WIDGET,
    WIDGET_KIND,
    WIDGETS_KIND,
    with_metadata,
)
from tests.support.server.conformance_rows import (
    Row,
    already_exists,
    conflict,
    delete,
    get,
    invalid,
    merge,
    not_found,
    play,
    post,
)
from tests.support.server.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.server.bareapi import BareApi

pytestmark = pytest.mark.servers

_SPEC = {"containers": [{"name": "c", "image": "i"}]}
_JOB = {"suspend": True, "template": {"spec": _SPEC | {"restartPolicy": "Never"}}}
PODS = "/api/v1/namespaces/$ns/pods"
POD = f"{PODS}/one"
WAITING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC}),)
RUNNING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC | {"nodeName": "none-$word"}}),)
TWO = (post(MAPS, with_metadata({}, labels={"a": "b"})), post(MAPS, {"metadata": {"name": "two"}}))
#: A custom object with finalizers after its deletion.
TERMINATING = {
    "code": 200,
    "metadata.deletionTimestamp": "$time",
    "metadata.deletionGracePeriodSeconds": 0,
    "metadata.generation": 2,
    "kind": "Widget",
    "status": "absent",
    "details": "absent",
}
#: A Pod that is deleted at once.
DELETED = {"code": 200, "kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}

ROWS = {
    "custom object is deleted immediately": Row(
        given=CUSTOM,
        when=delete(WIDGET),
        then={
            "code": 200,
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "one", "group": "shapes.example.io", "kind": "widgets", "uid": "$uid"},
        },
    ),
    "missing custom object is not found": Row(
        when=delete(WIDGET),
        then=not_found(WIDGETS_KIND),
    ),
    "finalizer delays the deletion": Row(
        given=CUSTOM_HELD,
        when=delete(WIDGET),
        then=TERMINATING | {"metadata.finalizers": ["a.io/b"]},
    ),
    "second delete changes nothing": Row(
        given=DYING,
        when=delete(MAP),
        then={"code": 200, "metadata.resourceVersion": "$version", "metadata.finalizers": ["a.io/b"]},
    ),
    "terminating object can change": Row(
        given=DYING,
        when=merge(MAP, {"data": {"a": "b"}}),
        then={"code": 200, "data": {"a": "b"}, "metadata.finalizers": ["a.io/b"]},
    ),
    "terminating object takes no new finalizer": Row(
        given=(*CUSTOM_HELD, delete(WIDGET)),
        when=merge(WIDGET, {"metadata": {"finalizers": ["a.io/b", "d.io/d", "c.io/d"]}}),
        then=invalid(
            WIDGET_KIND,
            (
                "metadata.finalizers",
                'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c.io/d", "d.io/d"}',
            ),
        ),
    ),
    "removing the last finalizer deletes the object": Row(
        given=DYING,
        when=merge(MAP, {"metadata": {"finalizers": None}}),
        then={"code": 200, "metadata.finalizers": "absent", "metadata.deletionTimestamp": "$time", "kind": "ConfigMap"},
    ),
    "name of a terminating object cannot be reused": Row(
        given=(*CUSTOM_HELD, delete(WIDGET)),
        when=post(WIDGETS, widget()),
        then=already_exists(WIDGETS_KIND, "object is being deleted: "),
    ),
    "dry run deletes nothing": Row(
        given=(*ONE, delete(MAP, dryRun="All")),
        when=get(MAP),
        then={"code": 200, "metadata.name": "one", "metadata.deletionTimestamp": "absent"},
    ),
    "wrong uid is a conflict": Row(
        given=CUSTOM,
        when=delete(WIDGET, {"preconditions": {"uid": "other"}}),
        then=conflict(
            WIDGET_KIND,
            "the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated",
        ),
    ),
    "wrong resourceVersion is a conflict": Row(
        given=ONE,
        when=delete(MAP, {"preconditions": {"resourceVersion": "1"}}),
        then=conflict(
            "ConfigMap",
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ($version). The object might have been modified",
        ),
    ),
    "matching preconditions are accepted": Row(
        given=ONE,
        when=delete(
            MAP, {"preconditions": {"uid": "$0.metadata.uid", "resourceVersion": "$0.metadata.resourceVersion"}}
        ),
        then={"code": 200, "status": "Success"},
    ),
    "background deletion keeps other finalizers": Row(
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Background"}),
        then={"code": 200, "metadata.finalizers": ["a.io/b"]},
    ),
    "foreground propagation adds its finalizer": Row(
        given=CUSTOM_HELD,
        when=delete(WIDGET, {"propagationPolicy": "Foreground"}),
        then=TERMINATING | {"metadata.finalizers": ["a.io/b", "foregroundDeletion"]},
    ),
    "collection is deleted by labels": Row(
        given=TWO,
        when=delete(MAPS, labelSelector="a=b"),
        then={
            "code": 200,
            "kind": "ConfigMapList",
            "apiVersion": "v1",
            "items.0.metadata.name": "one",
            "items.1": "absent",
            "status": "absent",
        },
    ),
    "collection delete keeps other labels": Row(
        given=(*TWO, delete(MAPS, labelSelector="a=b")),
        when=get(f"{MAPS}/two"),
        then={"code": 200, "metadata.name": "two"},
    ),
    "custom collection is deleted": Row(
        given=(post(WIDGETS, widget("a")), post(WIDGETS, widget("b"))),
        when=delete(WIDGETS),
        then={
            "code": 200,
            "kind": "WidgetList",
            "apiVersion": "shapes.example.io/v1",
            "items.0.metadata.name": "a",
            "items.1.metadata.name": "b",
            "items.2": "absent",
        },
    ),
    "collection delete keeps objects with finalizers": Row(
        given=HELD,
        when=delete(MAPS, labelSelector="!x", fieldSelector="metadata.name=one"),
        then={"code": 200, "items.0.metadata.finalizers": ["a.io/b"], "items.0.metadata.deletionTimestamp": "absent"},
    ),
    "dry run of a collection deletes nothing": Row(
        given=(*CUSTOM, delete(WIDGETS, dryRun="All")),
        when=get(WIDGET),
        then={"code": 200, "metadata.deletionTimestamp": "absent"},
    ),
    "unscheduled Pod is deleted immediately": Row(
        given=WAITING,
        when=delete(POD),
        then=DELETED | {"metadata.name": "one", "metadata.deletionTimestamp": "$time"},
    ),
    "scheduled Pod gets its grace period": Row(
        given=RUNNING,
        when=delete(POD),
        then={"code": 200, "kind": "Pod", "metadata.deletionGracePeriodSeconds": 30, "metadata.generation": 2},
    ),
    "scheduled Pod gets the grace period of the request": Row(
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 5}),
        then={"code": 200, "metadata.deletionGracePeriodSeconds": 5},
    ),
    "Pod without grace period is deleted immediately": Row(
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 0}),
        then=DELETED,
    ),
    "terminating Pod is deleted by force": Row(
        given=(*RUNNING, delete(POD)),
        when=delete(POD, {"gracePeriodSeconds": 0}),
        then=DELETED,
    ),
    "completed Pod is deleted immediately": Row(
        given=(*RUNNING, merge(f"{POD}/status", {"status": {"phase": "Succeeded"}})),
        when=delete(POD),
        then=DELETED,
    ),
    "failed Pod is deleted immediately": Row(
        given=(*RUNNING, merge(f"{POD}/status", {"status": {"phase": "Failed"}})), when=delete(POD), then=DELETED
    ),
    "deleted Pod is not found": Row(given=(*WAITING, delete(POD)), when=get(POD), then=not_found("pods")),
    "unscheduled Pod with a finalizer stays": Row(
        given=(post(PODS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}, "spec": _SPEC}),),
        when=delete(POD),
        then=DELETED
        | {"metadata.deletionTimestamp": "$time", "metadata.finalizers": ["a.io/b"], "metadata.generation": 2},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_delete(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
