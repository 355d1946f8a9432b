"""Deletion: finalizers, options, grace periods, collections."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.conformance_objects import (
    CUSTOM,
    CUSTOM_HELD,
    DYING,
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
    play,
    post,
)
from tests.support.server.shapes import WIDGETS, widget

pytestmark = pytest.mark.servers

_SPEC = {"containers": [{"name": "c", "image": "i"}]}
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
    "finalizer delays the deletion": Row(
        given=CUSTOM_HELD,
        when=delete(WIDGET),
        then=TERMINATING | {"metadata.finalizers": ["a.io/b"]},
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
    "completed Pod is deleted immediately": Row(
        given=(*RUNNING, merge(f"{POD}/status", {"status": {"phase": "Succeeded"}})),
        when=delete(POD),
        then=DELETED,
    ),
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
