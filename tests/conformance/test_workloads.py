"""Deployments, Jobs and Pods: what is filled in, what is refused, what never changes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import Row, answered, invalid, merge, play, post, put, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
PODS = "/api/v1/namespaces/$ns/pods"
JOB = f"{JOBS}/one"
POD = f"{PODS}/one"
DEPLOYMENT = f"{DEPLOYMENTS}/one"
CONTAINER = {"name": "c", "image": "i"}
_META = {"metadata": {"name": "one"}}


def _deployment(labels: object = None, **spec: object) -> dict[str, object]:
    template = {"metadata": {"labels": labels or {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    return _META | {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template} | spec}


def _job(pod: object = None, **spec: object) -> dict[str, object]:
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]} | (pod if isinstance(pod, dict) else {})}
    return _META | {"spec": {"suspend": True, "template": template} | spec}


def _pod(*containers: object, **spec: object) -> dict[str, object]:
    return _META | {"spec": {"containers": list(containers) or [CONTAINER]} | spec}


def _refused_pod(title: str, pod: object, then: object) -> Row:
    return Row(title=title, when=post(PODS, pod), look=("spec.volumes.0",), then=then)


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
    Row(
        title="a Pod is filled in",
        when=post(
            PODS,
            _pod(
                CONTAINER
                | {
                    "ports": [{"containerPort": 80}],
                    "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                },
                volumes=[{"name": "v", "hostPath": {"path": "/x"}}, {"name": "e", "emptyDir": {}}],
            ),
        ),
        look=(
            "spec.volumes.0",
            "spec.volumes.1",
            "spec.containers.0.ports",
            "spec.containers.0.env",
            "spec.containers.0.imagePullPolicy",
            "spec.restartPolicy",
            "spec.dnsPolicy",
            "spec.schedulerName",
            "spec.securityContext",
            "spec.terminationGracePeriodSeconds",
            "spec.enableServiceLinks",
            "status",
            "metadata.generation",
        ),
        then=answered(
            201,
            **{
                "spec.volumes.0": {"name": "v", "hostPath": {"path": "/x", "type": ""}},
                "spec.volumes.1": {"name": "e", "emptyDir": {}},
                "spec.containers.0.ports": [{"containerPort": 80, "protocol": "TCP"}],
                "spec.containers.0.env": [
                    {"name": "N", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}
                ],
                "spec.containers.0.imagePullPolicy": "Always",
                "spec.restartPolicy": "Always",
                "spec.dnsPolicy": "ClusterFirst",
                "spec.schedulerName": "default-scheduler",
                "spec.securityContext": {},
                "spec.terminationGracePeriodSeconds": 30,
                "spec.enableServiceLinks": True,
                "status": {"phase": "Pending", "qosClass": "BestEffort"},
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="a Pod with a probe is filled in",
        when=post(PODS, _pod(CONTAINER | {"readinessProbe": {"httpGet": {"port": 80}}})),
        look=("spec.containers.0.readinessProbe",),
        then=answered(
            201,
            **{
                "spec.containers.0.readinessProbe": {
                    "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                }
            },
        ),
    ),
    Row(
        title="limits are requests",
        when=post(PODS, _pod(CONTAINER | {"resources": {"limits": {"cpu": "100m"}}})),
        look=("spec.containers.0.resources", "status.qosClass"),
        then=answered(
            201,
            **{
                "spec.containers.0.resources": {"limits": {"cpu": "100m"}, "requests": {"cpu": "100m"}},
                "status.qosClass": "Burstable",
            },
        ),
    ),
    _refused_pod(
        "a Pod without containers",
        _META | {"spec": {}},
        then=invalid("Pod", ("spec.containers", "Required value")),
    ),
    _refused_pod(
        "a Pod without a spec",
        _META,
        then=invalid("Pod", ("spec.containers", "Required value")),
    ),
    _refused_pod(
        "a container without a name",
        _pod({"image": "i"}),
        then=invalid("Pod", ("spec.containers[0].name", "Required value")),
    ),
    _refused_pod(
        "a container without an image",
        _pod({"name": "c"}),
        then=invalid("Pod", ("spec.containers[0].image", "Required value")),
    ),
    _refused_pod(
        "a container with a bad name",
        _pod({"name": "C d", "image": "i"}),
        then=invalid(
            "Pod",
            (
                "spec.containers[0].name",
                "Invalid value: \"C d\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ),
        ),
    ),
    _refused_pod(
        "two containers of one name",
        _pod(CONTAINER, CONTAINER),
        then=invalid("Pod", ("spec.containers[1].name", 'Duplicate value: "c"')),
    ),
    _refused_pod(
        "a mount without a volume",
        _pod(CONTAINER | {"volumeMounts": [{"name": "v", "mountPath": "/a"}]}),
        then=invalid("Pod", ("spec.containers[0].volumeMounts[0].name", 'Not found: "v"')),
    ),
    _refused_pod(
        "a mount without a path",
        _pod(CONTAINER | {"volumeMounts": [{"name": "v"}]}, volumes=[{"name": "v", "emptyDir": {}}]),
        then=invalid("Pod", ("spec.containers[0].volumeMounts[0].mountPath", "Required value")),
    ),
    _refused_pod(
        "two mounts at one path",
        _pod(
            CONTAINER | {"volumeMounts": [{"name": "v", "mountPath": "/a"}] * 2},
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        then=invalid("Pod", ("spec.containers[0].volumeMounts[1].mountPath", 'Invalid value: "/a": must be unique')),
    ),
    _refused_pod(
        "a volume without a source",
        _pod(volumes=[{"name": "v"}]),
        then=answered(201, **{"spec.volumes.0": {"name": "v", "emptyDir": {}}}),
    ),
    _refused_pod(
        "a volume with two sources",
        _pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
        then=invalid("Pod", ("spec.volumes[0].hostPath", "Forbidden: may not specify more than 1 volume type")),
    ),
    _refused_pod(
        "two volumes of one name",
        _pod(volumes=[{"name": "v", "emptyDir": {}}] * 2),
        then=invalid("Pod", ("spec.volumes[1].name", 'Duplicate value: "v"')),
    ),
    _refused_pod(
        "a variable without a name",
        _pod(CONTAINER | {"env": [{"value": "x"}]}),
        then=invalid("Pod", ("spec.containers[0].env[0].name", "Required value")),
    ),
    _refused_pod(
        "a variable with two sources",
        _pod(
            CONTAINER
            | {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
        ),
        then=invalid(
            "Pod",
            (
                "spec.containers[0].env[0].valueFrom",
                'Invalid value: "": may not be specified when `value` is not empty',
            ),
        ),
    ),
    _refused_pod(
        "an unknown restart policy",
        _pod(restartPolicy="Sometimes"),
        then=invalid(
            "Pod",
            ("spec.restartPolicy", 'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'),
        ),
    ),
    _refused_pod(
        "an unknown pull policy",
        _pod(CONTAINER | {"imagePullPolicy": "Maybe"}),
        then=invalid(
            "Pod",
            (
                "spec.containers[0].imagePullPolicy",
                'Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"',
            ),
        ),
    ),
    _refused_pod(
        "a toleration with an unknown operator",
        _pod(tolerations=[{"key": "a", "operator": "Like"}]),
        then=invalid(
            "Pod", ("spec.tolerations[0].operator", 'Unsupported value: "Like": supported values: "Equal", "Exists"')
        ),
    ),
    _refused_pod(
        "a port out of range",
        _pod(CONTAINER | {"ports": [{"containerPort": 70000}]}),
        then=invalid(
            "Pod",
            (
                "spec.containers[0].ports[0].containerPort",
                "Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
        ),
    ),
    *(
        _refused_pod(
            title,
            _pod(CONTAINER | {"ports": ports}),
            then=invalid("Pod", ("spec.containers[0].ports[0].containerPort", "Required value")),
        )
        for title, ports in (
            ("a port that is null", [None]),
            ("a port with a number that is null", [{"containerPort": None}]),
        )
    ),
    _refused_pod(
        "a toleration that is null",
        _pod(tolerations=[None]),
        then=invalid(
            "Pod",
            (
                "spec.tolerations[0].operator",
                'Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
            ),
        ),
    ),
    _refused_pod(
        "a node selector with a bad value",
        _pod(nodeSelector={"a": "b c"}),
        then=invalid(
            "Pod",
            (
                "spec.nodeSelector",
                "Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="the image of a Pod changes",
        given=(post(PODS, _pod()),),
        when=strategic(POD, {"spec": {"containers": [{"name": "c", "image": "j"}]}}),
        look=("spec.containers.0.image", "metadata.generation"),
        then=answered(200, **{"spec.containers.0.image": "j", "metadata.generation": 2}),
    ),
    Row(
        title="a command of a Pod does not change",
        given=(post(PODS, _pod()),),
        when=strategic(POD, {"spec": {"containers": [{"name": "c", "command": ["x"]}]}}),
        then=invalid(
            "Pod",
            (
                "spec",
                "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
            ),
        ),
    ),
    Row(
        title="a container of a Pod is not added",
        given=(post(PODS, _pod()),),
        when=strategic(POD, {"spec": {"containers": [{"name": "d", "image": "j"}]}}),
        then=invalid("Pod", ("spec.containers", "Forbidden: pod updates may not add or remove containers")),
    ),
    Row(
        title="the node of a Pod is not set by an update",
        given=(post(PODS, _pod()),),
        when=merge(POD, {"spec": {"nodeName": "somewhere"}}),
        then=invalid(
            "Pod",
            (
                "spec",
                "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
            ),
        ),
    ),
    Row(
        title="labels of a Pod change",
        given=(post(PODS, _pod()),),
        when=merge(POD, {"metadata": {"labels": {"a": "b"}}}),
        look=("metadata.labels", "metadata.generation"),
        then=answered(200, **{"metadata.labels": {"a": "b"}, "metadata.generation": 1}),
    ),
    Row(
        title="the status of a Pod is written at its endpoint",
        given=(post(PODS, _pod()),),
        when=strategic(
            f"{POD}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        ),
        look=("status", "metadata.generation"),
        then=answered(
            200,
            **{
                "status": {
                    "phase": "Running",
                    "conditions": [
                        {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
                    ],
                    "qosClass": "BestEffort",
                },
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="the deadline of a Pod may be set",
        given=(post(PODS, _pod()),),
        when=merge(POD, {"spec": {"activeDeadlineSeconds": 5}}),
        look=("spec.activeDeadlineSeconds",),
        then=answered(200, **{"spec.activeDeadlineSeconds": 5}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_workload(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
