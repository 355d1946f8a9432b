"""Deployments and Jobs: what is filled in, what is refused, what never changes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, merge, play, post, put, strategic

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
        title="a Deployment that recreates is filled in",
        when=post(DEPLOYMENTS, _deployment(strategy={"type": "Recreate"})),
        look=("spec.strategy",),
        then=answered(201, **{"spec.strategy": {"type": "Recreate"}}),
    ),
    Row(
        title="a Deployment without a selector is refused",
        when=post(DEPLOYMENTS, _deployment(selector=None)),
        then=invalid(
            "Deployment.apps",
            ("spec.selector", "Required value"),
            ("spec.template.metadata.labels", 'Invalid value: {"a":"b"}: `selector` does not match template `labels`'),
        ),
    ),
    Row(
        title="a Deployment that selects everything is refused",
        when=post(DEPLOYMENTS, _deployment(selector={})),
        then=invalid(
            "Deployment.apps", ("spec.selector", "Invalid value: {}: empty selector is invalid for deployment")
        ),
    ),
    Row(
        title="a Deployment that does not select its Pods is refused",
        when=post(DEPLOYMENTS, _deployment({"x": "y"})),
        then=invalid(
            "Deployment.apps",
            ("spec.template.metadata.labels", 'Invalid value: {"x":"y"}: `selector` does not match template `labels`'),
        ),
    ),
    Row(
        title="a Deployment without a spec is refused",
        when=post(DEPLOYMENTS, _META),
        then=invalid(
            "Deployment.apps",
            ("spec.selector", "Required value"),
            ("spec.template.metadata.labels", "Invalid value: null: `selector` does not match template `labels`"),
            ("spec.template.spec.containers", "Required value"),
        ),
    ),
    Row(
        title="a Deployment with fewer than no replicas is refused",
        when=post(DEPLOYMENTS, _deployment(replicas=-1)),
        then=invalid("Deployment.apps", ("spec.replicas", "Invalid value: -1: must be greater than or equal to 0")),
    ),
    Row(
        title="a Deployment of an unknown strategy is refused",
        when=post(DEPLOYMENTS, _deployment(strategy={"type": "Never"})),
        then=invalid(
            "Deployment.apps",
            ("spec.strategy", 'Unsupported value: $value: supported values: "Recreate", "RollingUpdate"'),
        ),
    ),
    Row(
        title="a Deployment whose Pods end is refused",
        when=post(
            DEPLOYMENTS,
            _deployment(
                template={
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"restartPolicy": "Never", "containers": [CONTAINER]},
                }
            ),
        ),
        then=invalid(
            "Deployment.apps",
            ("spec.template.spec.restartPolicy", 'Unsupported value: "Never": supported values: "Always"'),
        ),
    ),
    Row(
        title="the selector of a Deployment does not change",
        given=(post(DEPLOYMENTS, _deployment({"a": "b", "c": "d"})),),
        when=merge(DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
        then=invalid("Deployment.apps", ("spec.selector", "Invalid value: $value: field is immutable")),
    ),
    Row(
        title="the image of a Deployment changes",
        given=(post(DEPLOYMENTS, _deployment()),),
        when=strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j:2"}]}}}}),
        look=(
            "spec.template.spec.containers.0.image",
            "spec.template.spec.containers.0.imagePullPolicy",
            "metadata.generation",
        ),
        then=answered(
            200,
            **{
                "spec.template.spec.containers.0.image": "j:2",
                "spec.template.spec.containers.0.imagePullPolicy": "Always",
                "metadata.generation": 2,
            },
        ),
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
        title="a Job with labels keeps them",
        when=post(JOBS, _job() | {"metadata": {"name": "one", "labels": {"a": "b"}}}),
        look=("metadata.labels", "spec.selector"),
        then=answered(
            201,
            **{
                "metadata.labels": {"a": "b"},
                "spec.selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "$uid"}},
            },
        ),
    ),
    Row(
        title="a Job that restarts for ever is refused",
        when=post(JOBS, _job({"restartPolicy": "Always"})),
        then=invalid(
            "Job.batch", ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')
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
        title="a Job without containers is refused",
        when=post(JOBS, _job({"containers": []})),
        then=invalid("Job.batch", ("spec.template.spec.containers", "Required value")),
    ),
    Row(
        title="a Job without a spec is refused",
        when=post(JOBS, _META),
        then=invalid(
            "Job.batch",
            ("spec.template.spec.containers", "Required value"),
            ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"'),
        ),
    ),
    Row(
        title="a Job with fewer than no retries is refused",
        when=post(JOBS, _job(backoffLimit=-1)),
        then=invalid("Job.batch", ("spec.backoffLimit", "Invalid value: -1: must be greater than or equal to 0")),
    ),
    Row(
        title="a Job with negative numbers is refused",
        when=post(JOBS, _job(parallelism=-1, completions=-1, activeDeadlineSeconds=-1, ttlSecondsAfterFinished=-1)),
        then=invalid(
            "Job.batch",
            ("spec.activeDeadlineSeconds", "Invalid value: -1: must be greater than or equal to 0"),
            ("spec.completions", "Invalid value: -1: must be greater than or equal to 0"),
            ("spec.parallelism", "Invalid value: -1: must be greater than or equal to 0"),
            ("spec.ttlSecondsAfterFinished", "Invalid value: -1: must be greater than or equal to 0"),
        ),
    ),
    Row(
        title="a Job with a selector of its own is refused",
        when=post(JOBS, _job(selector={"matchLabels": {"a": "b"}})),
        then=invalid(
            "Job.batch",
            ("spec.selector", "Invalid value: $value: `selector` not auto-generated"),
            (
                "spec.template.metadata.labels",
                'Invalid value: {"batch.kubernetes.io/controller-uid":"$uid","batch.kubernetes.io/job-name":"one","controller-uid":"$uid","job-name":"one"}: `selector` does not match template `labels`',
            ),
        ),
    ),
    Row(
        title="a Job whose name is too long for a Pod brings a warning",
        when=post(JOBS, _job() | {"metadata": {"name": "a" * 64}}),
        then=invalid(
            "Job.batch",
            (
                "spec.template.labels",
                'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 bytes',
            ),
            name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
    ),
    Row(
        title="the template of a Job does not change",
        given=(post(JOBS, _job()),),
        when=strategic(JOB, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}}),
        then=invalid("Job.batch", ("spec.template", "Invalid value: $value: field is immutable")),
    ),
    Row(
        title="the node selector of a suspended Job changes",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}),
        look=("spec.template.spec.nodeSelector",),
        then=answered(200, **{"spec.template.spec.nodeSelector": {"a": "b"}}),
    ),
    Row(
        title="the completions of a Job do not change",
        given=(post(JOBS, _job(completions=1)),),
        when=merge(JOB, {"spec": {"completions": 2}}),
        then=invalid("Job.batch", ("spec.completions", "Invalid value: 2: field is immutable")),
    ),
    Row(
        title="the selector of a Job does not change",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
        then=invalid(
            "Job.batch",
            ("spec.selector", "Invalid value: $value: `selector` not auto-generated"),
            ("spec.selector", "Invalid value: $value: field is immutable"),
            (
                "spec.template.metadata.labels",
                'Invalid value: {"batch.kubernetes.io/controller-uid":"$uid","batch.kubernetes.io/job-name":"one","controller-uid":"$uid","job-name":"one"}: `selector` does not match template `labels`',
            ),
        ),
    ),
    Row(
        title="the parallelism of a Job changes",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"parallelism": 2}}),
        look=("spec.parallelism",),
        then=answered(200, **{"spec.parallelism": 2}),
    ),
    Row(
        title="the limit of a Job changes",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"backoffLimit": 2, "ttlSecondsAfterFinished": 5, "activeDeadlineSeconds": 7}}),
        look=("spec.backoffLimit", "spec.ttlSecondsAfterFinished", "spec.activeDeadlineSeconds"),
        then=answered(
            200, **{"spec.backoffLimit": 2, "spec.ttlSecondsAfterFinished": 5, "spec.activeDeadlineSeconds": 7}
        ),
    ),
    Row(
        title="a Job that is suspended is resumed",
        given=(post(JOBS, _job()),),
        when=merge(JOB, {"spec": {"suspend": False}}),
        look=("spec.suspend",),
        then=answered(200, **{"spec.suspend": False}),
    ),
    Row(
        title="a PUT of a Job without its generated parts is refused",
        given=(post(JOBS, _job()),),
        when=put(JOB, _job(parallelism=2)),
        then=invalid(
            "Job.batch",
            ("spec.completions", "Invalid value: null: field is immutable"),
            ("spec.selector", "Invalid value: null: field is immutable"),
            ("spec.selector", "Required value"),
            ("spec.template.metadata.labels", "Invalid value: null: `selector` does not match template `labels`"),
        ),
    ),
    Row(title="an indexed Job needs completions", when=post(JOBS, _job(completionMode="Indexed")), then=answered(201)),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_workload(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
