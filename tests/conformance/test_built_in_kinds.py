"""Defaults and validation of Leases, bindings, Nodes, workloads and Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, conflict, invalid, merge, play, post, put, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
LEASE = f"{LEASES}/one"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/rolebindings"
_META = {"metadata": {"name": "one"}}
_NOW = "2026-01-02T03:04:05.000000Z"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
JOB = f"{JOBS}/one"
DEPLOYMENT = f"{DEPLOYMENTS}/one"
CONTAINER = {"name": "c", "image": "i"}


def _deployment(labels: object = None, **spec: object) -> dict[str, object]:
    template = {"metadata": {"labels": labels or {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    return _META | {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template} | spec}


def _job(pod: object = None, **spec: object) -> dict[str, object]:
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]} | (pod if isinstance(pod, dict) else {})}
    return _META | {"spec": {"suspend": True, "template": template} | spec}


EVENTS = "/api/v1/namespaces/$ns/events"
DEFAULT_EVENTS = "/api/v1/namespaces/default/events"


def _event(**more: object) -> dict[str, object]:
    return (
        _META
        | {
            "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
            "reason": "Why",
            "message": "so",
            "type": "Normal",
        }
        | more
    )


ROWS = [
    Row(
        title="Lease is stored",
        when=post(
            LEASES,
            _META
            | {
                "spec": {
                    "holderIdentity": "me",
                    "leaseDurationSeconds": 15,
                    "acquireTime": _NOW,
                    "renewTime": _NOW,
                    "leaseTransitions": 0,
                }
            },
        ),
        fields=("spec",),
        then=answered(
            201,
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "acquireTime": "$time",
                "renewTime": "$time",
                "leaseTransitions": 0,
            },
        ),
    ),
    Row(
        title="old resourceVersion of a Lease is a conflict",
        given=(post(LEASES, _META), merge(LEASE, {"spec": {"holderIdentity": "me"}})),
        when=put(
            LEASE,
            {
                "metadata": {"name": "one", "resourceVersion": "$0.metadata.resourceVersion"},
                "spec": {"holderIdentity": "you"},
            },
        ),
        then=conflict(
            "leases.coordination.k8s.io",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ),
    Row(
        title="RoleBinding gets defaults",
        when=post(
            BINDINGS,
            _META
            | {
                "roleRef": {"kind": "Role", "name": "a"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
            },
        ),
        fields=("roleRef", "subjects"),
        then=answered(
            201,
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
            subjects=[
                {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        ),
    ),
    Row(
        title="Node gets defaults",
        when=post(
            "/api/v1/nodes",
            {"metadata": {"name": "$word"}, "spec": {"taints": [{"key": "a.io/b", "effect": "NoExecute"}]}},
        ),
        fields=("spec.taints.0.key", "spec.unschedulable"),
        then=answered(201, **{"spec.taints.0.key": "a.io/b", "spec.unschedulable": "absent"}),
    ),
    Row(
        title="Node is cordoned",
        given=(post("/api/v1/nodes", {"metadata": {"name": "$word"}}),),
        when=merge("/api/v1/nodes/$word", {"spec": {"unschedulable": True}}),
        fields=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": True}),
    ),
    Row(
        title="Node is uncordoned",
        given=(post("/api/v1/nodes", {"metadata": {"name": "$word"}, "spec": {"unschedulable": True}}),),
        when=merge("/api/v1/nodes/$word", {"spec": {"unschedulable": False}}),
        fields=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": "absent"}),
    ),
    Row(
        title="Deployment gets defaults",
        when=post(DEPLOYMENTS, _deployment()),
        fields=("spec", "status", "metadata.generation", "metadata.annotations"),
        then=answered(
            201,
            **{
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {
                            "containers": [
                                {
                                    "name": "c",
                                    "image": "i",
                                    "resources": {},
                                    "terminationMessagePath": "/dev/termination-log",
                                    "terminationMessagePolicy": "File",
                                    "imagePullPolicy": "Always",
                                }
                            ],
                            "restartPolicy": "Always",
                            "terminationGracePeriodSeconds": 30,
                            "dnsPolicy": "ClusterFirst",
                            "securityContext": {},
                            "schedulerName": "default-scheduler",
                        },
                    },
                    "strategy": {
                        "type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
                    },
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                },
                "status": {},
                "metadata.generation": 1,
                "metadata.annotations": "absent",
            },
        ),
    ),
    Row(
        title="Deployment selector is immutable",
        given=(post(DEPLOYMENTS, _deployment({"a": "b", "c": "d"})),),
        when=merge(DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
        then=invalid("Deployment.apps", ("spec.selector", "Invalid value: $value: field is immutable")),
    ),
    Row(
        title="Job gets defaults",
        when=post(JOBS, _job()),
        fields=("spec", "metadata.labels", "metadata.generation"),
        then=answered(
            201,
            **{
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "backoffLimit": 6,
                    "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "$uid"}},
                    "manualSelector": False,
                    "template": {
                        "metadata": {
                            "labels": {
                                "batch.kubernetes.io/controller-uid": "$uid",
                                "batch.kubernetes.io/job-name": "one",
                                "controller-uid": "$uid",
                                "job-name": "one",
                            }
                        },
                        "spec": {
                            "containers": [
                                {
                                    "name": "c",
                                    "image": "i",
                                    "resources": {},
                                    "terminationMessagePath": "/dev/termination-log",
                                    "terminationMessagePolicy": "File",
                                    "imagePullPolicy": "Always",
                                }
                            ],
                            "restartPolicy": "Never",
                            "terminationGracePeriodSeconds": 30,
                            "dnsPolicy": "ClusterFirst",
                            "securityContext": {},
                            "schedulerName": "default-scheduler",
                        },
                    },
                    "completionMode": "NonIndexed",
                    "suspend": True,
                    "podReplacementPolicy": "TerminatingOrFailed",
                },
                "metadata.labels": {
                    "batch.kubernetes.io/controller-uid": "$uid",
                    "batch.kubernetes.io/job-name": "one",
                    "controller-uid": "$uid",
                    "job-name": "one",
                },
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="Job without restart policy is refused",
        when=post(JOBS, _META | {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}),
        then=invalid(
            "Job.batch", ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')
        ),
    ),
    Row(
        title="Job template is immutable",
        given=(post(JOBS, _job()),),
        when=strategic(JOB, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}}),
        then=invalid("Job.batch", ("spec.template", "Invalid value: $value: field is immutable")),
    ),
    Row(
        title="suspended Job is resumed",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"suspend": False}}),
        fields=("spec.suspend",),
        then=answered(200, **{"spec.suspend": False}),
    ),
    Row(
        title="Event is stored",
        when=post(EVENTS, _event()),
        fields=(
            "reason",
            "involvedObject",
            "metadata.name",
            "type",
            "firstTimestamp",
            "eventTime",
            "source",
            "reportingComponent",
        ),
        then=answered(
            201,
            **{
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
    ),
    Row(
        title="Event outside its object's namespace is refused",
        when=post(EVENTS, _event(involvedObject={"kind": "Pod", "namespace": "other"})),
        then=invalid("Event", ("involvedObject.namespace", 'Invalid value: "other": does not match event.namespace')),
    ),
    Row(
        title="Event about a cluster-scoped object is stored in default",
        when=post(
            DEFAULT_EVENTS, _event(involvedObject={"kind": "Node", "name": "n"}) | {"metadata": {"name": "$word"}}
        ),
        fields=("metadata.namespace",),
        then=answered(201, **{"metadata.namespace": "default"}),
    ),
    Row(
        title="Event count is patched",
        given=(post(EVENTS, _event(count=1)),),
        when=strategic(f"{EVENTS}/one", {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z", "message": "again"}),
        fields=("count", "message", "lastTimestamp"),
        then=answered(200, count=2, message="again", lastTimestamp="$time"),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_built_in_kind(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
