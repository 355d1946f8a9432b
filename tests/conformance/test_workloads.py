"""Deployments and Jobs: what is filled in, what is refused, what never changes."""
# what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, invalid, merge, play, post, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
JOB = f"{JOBS}/one"
DEPLOYMENT = f"{DEPLOYMENTS}/one"
CONTAINER = {"name": "c", "image": "i"}
_META = {"metadata": {"name": "one"}}


def _deployment(labels: object = None, **spec: object) -> dict[str, object]:
    template = {"metadata": {"labels": labels or {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    return _META | {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template} | spec}


def _job(pod: object = None, **spec: object) -> dict[str, object]:
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]} | (pod if isinstance(pod, dict) else {})}
    return _META | {"spec": {"suspend": True, "template": template} | spec}


ROWS = [
    Row(
        title="a Deployment is filled in",
        when=post(DEPLOYMENTS, _deployment()),
        look=("spec", "status", "metadata.generation", "metadata.annotations"),
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
        title="the selector of a Deployment does not change",
        given=(post(DEPLOYMENTS, _deployment({"a": "b", "c": "d"})),),
        when=merge(DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
        then=invalid("Deployment.apps", ("spec.selector", "Invalid value: $value: field is immutable")),
    ),
    Row(
        title="a Job is filled in",
        when=post(JOBS, _job()),
        look=("spec", "metadata.labels", "metadata.generation"),
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
        title="a Job without a restart policy is refused",
        when=post(JOBS, _META | {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}),
        then=invalid(
            "Job.batch", ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')
        ),
    ),
    Row(
        title="the template of a Job does not change",
        given=(post(JOBS, _job()),),
        when=strategic(JOB, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}}),
        then=invalid("Job.batch", ("spec.template", "Invalid value: $value: field is immutable")),
    ),
    Row(
        title="a Job that is suspended is resumed",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"suspend": False}}),
        look=("spec.suspend",),
        then=answered(200, **{"spec.suspend": False}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_workload(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
