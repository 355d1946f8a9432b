"""Defaults and validation of Leases, bindings, Nodes, workloads, Events and namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.conformance_objects import (
    DEPLOYMENTS,
    JOBS,
    NODE,
    NODES,
    WIDGETS_KIND,
)
from tests.support.server.conformance_rows import (
    Row,
    delete,
    get,
    merge,
    play,
    post,
    refused,
    strategic,
)
from tests.support.server.shapes import widget

pytestmark = pytest.mark.servers

_META = {"metadata": {"name": "one"}}
CONTAINER = {"name": "c", "image": "i"}
EVENTS = "/api/v1/namespaces/$ns/events"
_EVENT = {
    "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
    "reason": "Why",
    "message": "so",
    "type": "Normal",
}
#: The Pod spec of a template with CONTAINER, besides its restartPolicy.
_POD_SPEC = {
    "containers": [
        CONTAINER
        | {
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ],
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_JOB_LABELS = {
    "batch.kubernetes.io/controller-uid": "$uid",
    "batch.kubernetes.io/job-name": "one",
    "controller-uid": "$uid",
    "job-name": "one",
}
_JOB = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}
DEPLOYMENT = f"{DEPLOYMENTS}/one"
SCALE = f"{DEPLOYMENT}/scale"
_SCALE_KIND = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
_SCALE = _SCALE_KIND | {"metadata.name": "one", "status": {"replicas": 0, "selector": "a=b"}}
_TWO = {"spec": {"replicas": 2}}
SPACES = "/api/v1/namespaces"
OTHER = f"{SPACES}/$word-2"
#: Has a finalizer, so that it stays Terminating.
TERMINATING = (post(SPACES, {"metadata": {"name": "$word-2", "finalizers": ["a.io/b"]}}), delete(OTHER))


def _deployment(**labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    return _META | {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}}


def _terminating(kind: str) -> dict[str, Any]:
    """Return the expected refusal of a new object in the terminating namespace."""
    cause = {
        "reason": "NamespaceTerminating",
        "message": "namespace $ns-2 is being terminated",
        "field": "metadata.namespace",
    }
    plural, _, group = kind.partition(".")
    details = {"name": "one", "kind": plural, "causes": [cause]} | ({"group": group} if group else {})
    message = "unable to create new content in namespace $ns-2 because it is being terminated"
    return refused(403, "Forbidden", f'{kind} "one" is forbidden: {message}', details)


ROWS = {
    "Node is uncordoned": Row(
        given=(post(NODES, {"metadata": {"name": "$word"}, "spec": {"unschedulable": True}}),),
        when=merge(NODE, {"spec": {"unschedulable": False}}),
        then={"code": 200, "spec.unschedulable": "absent"},
    ),
    "Deployment gets defaults": Row(
        when=post(DEPLOYMENTS, _deployment(a="b")),
        then={
            "code": 201,
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": _POD_SPEC | {"restartPolicy": "Always"},
                },
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            "status": {},
            "metadata.generation": 1,
            "metadata.annotations": "absent",
        },
    ),
    "Scale of a Deployment": Row(
        given=(post(DEPLOYMENTS, _deployment(a="b")),),
        when=get(SCALE),
        then={"code": 200, **_SCALE, "metadata.uid": "$uid", "spec": {}},
    ),
    "Scale is patched": Row(
        given=(post(DEPLOYMENTS, _deployment(a="b")),),
        when=merge(SCALE, {"spec": {"replicas": 3}}, dryRun="All"),
        then={"code": 200, **_SCALE, "spec": {"replicas": 3}},
    ),
    "Scale changes the replicas": Row(
        given=(post(DEPLOYMENTS, _deployment(a="b")), merge(SCALE, _TWO)),
        when=get(DEPLOYMENT),
        then={"code": 200, "spec.replicas": 2, "metadata.generation": 2},
    ),
    "Job gets defaults": Row(
        when=post(JOBS, _META | {"spec": _JOB}),
        then={
            "code": 201,
            "spec": {
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": 6,
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "$uid"}},
                "manualSelector": False,
                "template": {
                    "metadata": {"labels": _JOB_LABELS},
                    "spec": _POD_SPEC | {"restartPolicy": "Never"},
                },
                "completionMode": "NonIndexed",
                "suspend": True,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
            "metadata.labels": _JOB_LABELS,
            "metadata.generation": 1,
        },
    ),
    "Event is stored": Row(
        when=post(EVENTS, _META | _EVENT),
        then={
            "code": 201,
            "reason": "Why",
            "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
            "metadata.name": "one",
            "type": "Normal",
            "firstTimestamp": None,
            "eventTime": None,
            "source": {},
            "reportingComponent": "",
        },
    ),
    "Event count is patched": Row(
        given=(post(EVENTS, _META | _EVENT | {"count": 1}),),
        when=strategic(f"{EVENTS}/one", {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z", "message": "again"}),
        then={"code": 200, "count": 2, "message": "again", "lastTimestamp": "$time"},
    ),
    "namespace gets its name label": Row(
        when=post(SPACES, {"metadata": {"name": "$word-2", "labels": {"a": "b"}}}),
        then={
            "code": 201,
            "metadata.labels": {"a": "b", "kubernetes.io/metadata.name": "$ns-2"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        },
    ),
    "namespace deletion continues in the background": Row(
        given=TERMINATING[:1],
        when=delete(OTHER),
        then={
            "code": 200,
            "status.phase": "Terminating",
            "metadata.finalizers": ["a.io/b"],
            "metadata.deletionGracePeriodSeconds": "absent",
            "spec.finalizers": ["kubernetes"],
        },
    ),
    "terminating namespace refuses a built-in object": Row(
        given=TERMINATING, when=post(f"{OTHER}/configmaps", _META), then=_terminating("configmaps")
    ),
    "terminating namespace refuses a custom object": Row(
        given=TERMINATING,
        when=post("/apis/shapes.example.io/v1/namespaces/$word-2/widgets", widget()),
        then=_terminating(WIDGETS_KIND),
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_built_in_kind(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
