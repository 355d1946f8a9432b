"""What a delete answers and leaves, by its options."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import Row, answered, delete, get, invalid, merge, play, post, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
WIDGET = f"{WIDGETS}/one"
PODS = "/api/v1/namespaces/$ns/pods"
POD = f"{PODS}/one"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
ONE = (post(MAPS, {"metadata": {"name": "one"}}),)
HELD = (post(MAPS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),)
DYING = (*HELD, delete(MAP))
CUSTOM = (post(WIDGETS, widget()),)
CUSTOM_HELD = (post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),)
_SPEC = {"containers": [{"name": "c", "image": "i"}]}
WAITING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC}),)
RUNNING = (post(PODS, {"metadata": {"name": "one"}, "spec": _SPEC | {"nodeName": "none-$word"}}),)
PLACED = (
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "metadata.generation",
    "kind",
    "status",
    "details",
)
_JOB = {"suspend": True, "template": {"spec": _SPEC | {"restartPolicy": "Never"}}}

ROWS = [
    Row(
        title="an object goes at once",
        given=ONE,
        when=delete(MAP),
        look=("kind", "apiVersion", "metadata", "status", "details"),
        then=answered(
            200,
            kind="Status",
            apiVersion="v1",
            metadata={},
            status="Success",
            details={"name": "one", "kind": "configmaps", "uid": "$uid"},
        ),
    ),
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
        title="an object that does not exist is not found",
        when=delete(MAP),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
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
        title="a finalizer holds the object",
        given=HELD,
        when=delete(MAP),
        look=PLACED,
        then=answered(
            200,
            **{
                "metadata.deletionTimestamp": "$time",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.finalizers": ["a.io/b"],
                "metadata.generation": "absent",
                "kind": "ConfigMap",
                "status": "absent",
                "details": "absent",
            },
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
        title="a dying object gets no new finalizer",
        given=DYING,
        when=merge(MAP, {"metadata": {"finalizers": ["a.io/b", "c.io/d"]}}),
        then=invalid(
            "ConfigMap",
            (
                "metadata.finalizers",
                'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c.io/d"}',
            ),
        ),
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
        title="what goes with its last finalizer is not found",
        given=(*DYING, merge(MAP, {"metadata": {"finalizers": None}})),
        when=get(MAP),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
    ),
    Row(
        title="a name that is being deleted is taken",
        given=DYING,
        when=post(MAPS, {"metadata": {"name": "one"}}),
        then=refused(
            409,
            "AlreadyExists",
            'object is being deleted: configmaps "one" already exists',
            {"name": "one", "kind": "configmaps"},
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
        title="a generated name is answered as any other",
        given=ONE,
        when=delete(MAP, {"kind": "DeleteOptions", "apiVersion": "v1"}),
        look=("status",),
        then=answered(200, status="Success"),
    ),
    Row(
        title="options of the group meta are taken",
        given=ONE,
        when=delete(MAP, {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}),
        look=("status",),
        then=answered(200, status="Success"),
    ),
    Row(
        title="options without kind are taken",
        given=ONE,
        when=delete(MAP, {"propagationPolicy": "Background"}),
        look=("status",),
        then=answered(200, status="Success"),
    ),
    Row(
        title="options of another kind are refused",
        given=ONE,
        when=delete(MAP, {"kind": "ConfigMap", "apiVersion": "v1"}),
        look=("status",),
        then=refused(
            400,
            "BadRequest",
            'no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
            None,
        ),
    ),
    Row(
        title="options that are a list are refused",
        given=ONE,
        when=delete(MAP, []),
        then=refused(
            400,
            "BadRequest",
            'couldn\'t get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
            None,
        ),
    ),
    Row(
        title="options that are no JSON are refused",
        given=ONE,
        when=delete(MAP, b"{x"),
        then=refused(
            400,
            "BadRequest",
            "couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of object key string",
            None,
        ),
    ),
    Row(
        title="another uid is a conflict",
        given=ONE,
        when=delete(MAP, {"preconditions": {"uid": "other"}}),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated',
            {"name": "one", "kind": "ConfigMap"},
        ),
    ),
    Row(
        title="another uid is a conflict for a custom object",
        given=CUSTOM,
        when=delete(WIDGET, {"preconditions": {"uid": "other"}}),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on Widget.shapes.example.io "one": the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated',
            {"name": "one", "group": "shapes.example.io", "kind": "Widget"},
        ),
    ),
    Row(
        title="another uid is a conflict for an object with finalizers",
        given=HELD,
        when=delete(MAP, {"preconditions": {"uid": "other"}}),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated',
            {"name": "one", "kind": "ConfigMap"},
        ),
    ),
    Row(
        title="another resourceVersion is a conflict",
        given=ONE,
        when=delete(MAP, {"preconditions": {"resourceVersion": "1"}}),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ($version). The object might have been modified',
            {"name": "one", "kind": "ConfigMap"},
        ),
    ),
    Row(
        title="another resourceVersion is a conflict for a dying object",
        given=DYING,
        when=delete(MAP, {"preconditions": {"resourceVersion": "1"}}),
        look=("metadata.finalizers",),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ($version). The object might have been modified',
            {"name": "one", "kind": "ConfigMap"},
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
        title="an unknown propagation is refused",
        given=ONE,
        when=delete(MAP, {"propagationPolicy": "Sideways"}),
        then=invalid(
            "DeleteOptions.meta.k8s.io",
            (
                "propagationPolicy",
                'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
            ),
            name="",
        ),
    ),
    Row(
        title="an unknown propagation in the query is refused",
        given=ONE,
        when=delete(MAP, propagationPolicy="Sideways"),
        then=invalid(
            "DeleteOptions.meta.k8s.io",
            (
                "propagationPolicy",
                'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
            ),
            name="",
        ),
    ),
    Row(
        title="two ways to say propagation are refused",
        given=ONE,
        when=delete(MAP, {"propagationPolicy": "Orphan", "orphanDependents": True}),
        then=invalid(
            "DeleteOptions.meta.k8s.io",
            (
                "propagationPolicy",
                'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
            ),
            name="",
        ),
    ),
    Row(
        title="a foreground deletion takes its finalizer",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Foreground"}),
        look=PLACED,
        then=answered(
            200,
            **{
                "metadata.deletionTimestamp": "$time",
                "metadata.deletionGracePeriodSeconds": 0,
                "metadata.finalizers": ["a.io/b", "foregroundDeletion"],
                "metadata.generation": "absent",
                "kind": "ConfigMap",
                "status": "absent",
                "details": "absent",
            },
        ),
    ),
    Row(
        title="an orphaning deletion takes its finalizer",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Orphan"}),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="orphanDependents orphans",
        given=HELD,
        when=delete(MAP, {"orphanDependents": True}),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="orphanDependents of false does not orphan",
        given=HELD,
        when=delete(MAP, {"orphanDependents": False}),
        look=("metadata.finalizers",),
        then=answered(202, **{"metadata.finalizers": ["a.io/b"]}),
    ),
    Row(
        title="the propagation in the query counts without a body",
        given=HELD,
        when=delete(MAP, propagationPolicy="Orphan"),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b", "orphan"]}),
    ),
    Row(
        title="a body wins over the query",
        given=HELD,
        when=delete(MAP, {"propagationPolicy": "Background"}, propagationPolicy="Orphan"),
        look=("metadata.finalizers",),
        then=answered(200, **{"metadata.finalizers": ["a.io/b"]}),
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
        title="a Job that is deleted without a word brings a warning",
        given=(post(JOBS, {"metadata": {"name": "one"}, "spec": _JOB}),),
        when=delete(f"{JOBS}/one"),
        look=("kind", "metadata.finalizers"),
        then=answered(
            200,
            **{
                "kind": "Job",
                "metadata.finalizers": ["orphan"],
                "warnings": [
                    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
                ],
            },
        ),
    ),
    Row(
        title="a Pod without a node goes at once",
        given=WAITING,
        when=delete(POD),
        look=("kind", "metadata.deletionGracePeriodSeconds", "metadata.name", "metadata.deletionTimestamp"),
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
        title="a Pod with a node gets its grace",
        given=RUNNING,
        when=delete(POD),
        look=("kind", "metadata.deletionGracePeriodSeconds", "metadata.name", "metadata.generation"),
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
        title="a Pod with a node gets the grace of the request",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 5}),
        look=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 5}),
    ),
    Row(
        title="a Pod with a node gets the grace of the query",
        given=RUNNING,
        when=delete(POD, gracePeriodSeconds="5"),
        look=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 5}),
    ),
    Row(
        title="a Pod without grace goes at once",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": 0}),
        look=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="a negative grace is one second",
        given=RUNNING,
        when=delete(POD, {"gracePeriodSeconds": -5}),
        look=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 1}),
    ),
    Row(
        title="a second delete of a Pod keeps its grace",
        given=(*RUNNING, delete(POD, {"gracePeriodSeconds": 20})),
        when=delete(POD),
        look=("metadata.deletionGracePeriodSeconds", "metadata.resourceVersion"),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 20, "metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="a second delete of a Pod may shorten its grace",
        given=(*RUNNING, delete(POD, {"gracePeriodSeconds": 20})),
        when=delete(POD, {"gracePeriodSeconds": 5}),
        look=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 5}),
    ),
    Row(
        title="a second delete of a Pod cannot lengthen its grace",
        given=(*RUNNING, delete(POD, {"gracePeriodSeconds": 20})),
        when=delete(POD, {"gracePeriodSeconds": 50}),
        look=("metadata.deletionGracePeriodSeconds",),
        then=answered(200, **{"metadata.deletionGracePeriodSeconds": 20}),
    ),
    Row(
        title="a dying Pod goes when it is deleted without grace",
        given=(*RUNNING, delete(POD)),
        when=delete(POD, {"gracePeriodSeconds": 0}),
        look=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="a Pod that has ended goes at once",
        given=(*RUNNING, merge(f"{POD}/status", {"status": {"phase": "Succeeded"}})),
        when=delete(POD),
        look=("kind", "metadata.deletionGracePeriodSeconds"),
        then=answered(200, **{"kind": "Pod", "metadata.deletionGracePeriodSeconds": 0}),
    ),
    Row(
        title="a Pod without a node and with a finalizer stays",
        given=(post(PODS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}, "spec": _SPEC}),),
        when=delete(POD),
        look=PLACED[:4],
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
    Row(
        title="a grace means nothing to other kinds",
        given=ONE,
        when=delete(MAP, {"gracePeriodSeconds": 5}),
        look=("status",),
        then=answered(200, status="Success"),
    ),
    Row(
        title="a grace that is no number is refused",
        given=ONE,
        when=delete(MAP, {"gracePeriodSeconds": "x"}),
        then=refused(
            400,
            "BadRequest",
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            None,
        ),
    ),
    Row(
        title="a grace in the query that is no number is refused",
        given=ONE,
        when=delete(MAP, gracePeriodSeconds="x"),
        then=refused(400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax', None),
    ),
    Row(
        title="a dry run deletes nothing",
        given=(*ONE, delete(MAP, dryRun="All")),
        when=get(MAP),
        look=("metadata.name", "metadata.deletionTimestamp"),
        then=answered(200, **{"metadata.name": "one", "metadata.deletionTimestamp": "absent"}),
    ),
    Row(
        title="a dry run answers as the deletion would",
        given=ONE,
        when=delete(MAP, dryRun="All"),
        look=("kind", "status"),
        then=answered(200, kind="Status", status="Success"),
    ),
    Row(
        title="a dry run in the body counts",
        given=(*ONE, delete(MAP, {"dryRun": ["All"]})),
        when=get(MAP),
        look=("metadata.name",),
        then=answered(200, **{"metadata.name": "one"}),
    ),
    Row(
        title="an unknown dry run in the body is refused",
        given=ONE,
        when=delete(MAP, {"dryRun": ["Some"]}),
        then=invalid(
            "DeleteOptions.meta.k8s.io", ("dryRun", 'Unsupported value: ["Some"]: supported values: "All"'), name=""
        ),
    ),
    Row(
        title="a dry run answers a dying object",
        given=HELD,
        when=delete(MAP, dryRun="All"),
        look=("kind", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"),
        then=answered(
            200,
            **{"kind": "ConfigMap", "metadata.deletionTimestamp": "$time", "metadata.deletionGracePeriodSeconds": 0},
        ),
    ),
    Row(
        title="a namespace that every cluster needs is not deleted",
        when=delete("/api/v1/namespaces/default"),
        then=refused(
            403,
            "Forbidden",
            'namespaces "default" is forbidden: this namespace may not be deleted',
            {"name": "default", "kind": "namespaces"},
        ),
    ),
    Row(
        title="the system's namespace is not deleted",
        when=delete("/api/v1/namespaces/kube-system"),
        then=refused(
            403,
            "Forbidden",
            'namespaces "kube-system" is forbidden: this namespace may not be deleted',
            {"name": "kube-system", "kind": "namespaces"},
        ),
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
    Row(
        title="a collection is deleted by labels",
        given=(
            post(MAPS, {"metadata": {"name": "one", "labels": {"a": "b"}}}),
            post(MAPS, {"metadata": {"name": "two"}}),
        ),
        when=delete(MAPS, labelSelector="a=b"),
        look=("kind", "apiVersion", "items.0.metadata.name", "items.1", "status"),
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
        title="a collection that is deleted by labels keeps the rest",
        given=(
            post(MAPS, {"metadata": {"name": "one", "labels": {"a": "b"}}}),
            post(MAPS, {"metadata": {"name": "two"}}),
            delete(MAPS, labelSelector="a=b"),
        ),
        when=get(f"{MAPS}/two"),
        look=("metadata.name",),
        then=answered(200, **{"metadata.name": "two"}),
    ),
    Row(
        title="a collection is deleted by fields",
        given=(post(MAPS, {"metadata": {"name": "one"}}), post(MAPS, {"metadata": {"name": "two"}})),
        when=delete(MAPS, fieldSelector="metadata.name=two"),
        look=("items.0.metadata.name", "items.1"),
        then=answered(200, **{"items.0.metadata.name": "two", "items.1": "absent"}),
    ),
    Row(
        title="a custom collection is deleted",
        given=(post(WIDGETS, widget("a")), post(WIDGETS, widget("b"))),
        when=delete(WIDGETS),
        look=("kind", "apiVersion", "items.0.metadata.name", "items.1.metadata.name", "items.2"),
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
        title="a collection with nothing in it is deleted",
        when=delete(WIDGETS),
        look=("kind", "items"),
        then=answered(200, kind="WidgetList", items=[]),
    ),
    Row(
        title="a deleted collection keeps what finalizers hold",
        given=HELD,
        when=delete(MAPS, labelSelector="!x", fieldSelector="metadata.name=one"),
        look=("items.0.metadata.finalizers", "items.0.metadata.deletionTimestamp"),
        then=answered(
            200, **{"items.0.metadata.finalizers": ["a.io/b"], "items.0.metadata.deletionTimestamp": "absent"}
        ),
    ),
    Row(
        title="a dry run of a collection deletes nothing",
        given=(*CUSTOM, delete(WIDGETS, dryRun="All")),
        when=get(WIDGET),
        look=("metadata.deletionTimestamp",),
        then=answered(200, **{"metadata.deletionTimestamp": "absent"}),
    ),
    Row(
        title="a selector that is none is refused",
        when=delete(MAPS, labelSelector="a=(b"),
        then=refused(400, "BadRequest", "unable to parse requirement: found '(', expected: identifier", None),
    ),
    Row(
        title="a collection with a precondition on the uid is a conflict",
        given=CUSTOM,
        when=delete(WIDGETS, {"preconditions": {"uid": "other"}}),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on Widget.shapes.example.io "one": the UID in the precondition (other) does not match the UID in record ($uid). The object might have been deleted and then recreated',
            {"name": "one", "group": "shapes.example.io", "kind": "Widget"},
        ),
    ),
    Row(
        title="a limit counts for a deleted collection",
        given=(post(WIDGETS, widget("a")), post(WIDGETS, widget("b"))),
        when=delete(WIDGETS, limit="1"),
        look=("items.0.metadata.name", "items.1"),
        then=answered(200, **{"items.0.metadata.name": "a", "items.1": "absent"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_delete(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
