"""Pods: what is filled in, what is refused, what never changes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, merge, play, post, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

PODS = "/api/v1/namespaces/$ns/pods"
POD = f"{PODS}/one"
CONTAINER = {"name": "c", "image": "i"}
_META = {"metadata": {"name": "one"}}


def _pod(*containers: object, **spec: object) -> dict[str, object]:
    return _META | {"spec": {"containers": list(containers) or [CONTAINER]} | spec}


def _refused_pod(title: str, pod: object, then: object) -> Row:
    return Row(title=title, when=post(PODS, pod), look=("spec.volumes.0",), then=then)


ROWS = [
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
async def test_a_pod(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
