"""Values of other types than their fields, and what becomes of nothing."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, play, post, refused

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
PODS = "/api/v1/namespaces/$ns/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"


ROWS = [
    Row(
        title="a number for a text in a Pod",
        when=post(PODS, {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": 5}]}}),
        then=refused(
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string',
            None,
        ),
    ),
    Row(
        title="a text for a number in a Deployment",
        when=post(DEPLOYMENTS, {"metadata": {"name": "one"}, "spec": {"replicas": "3"}}),
        then=refused(
            400,
            "BadRequest",
            'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
            None,
        ),
    ),
    Row(
        title="an object for a list in a Pod",
        when=post(PODS, {"metadata": {"name": "one"}, "spec": {"containers": {}}}),
        then=refused(
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
            None,
        ),
    ),
    Row(
        title="a text for an object in a Pod",
        when=post(PODS, {"metadata": {"name": "one"}, "spec": "x"}),
        then=refused(
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec',
            None,
        ),
    ),
    Row(
        title="a text for a boolean in a Node",
        when=post("/api/v1/nodes", {"metadata": {"name": "$word"}, "spec": {"unschedulable": "yes"}}),
        then=refused(
            400,
            "BadRequest",
            'Node in version "v1" cannot be handled as a Node: json: cannot unmarshal string into Go struct field NodeSpec.spec.unschedulable of type bool',
            None,
        ),
    ),
    Row(
        title="a fraction for a whole number in a Deployment",
        when=post(DEPLOYMENTS, {"metadata": {"name": "one"}, "spec": {"replicas": 1.5}}),
        then=refused(
            400,
            "BadRequest",
            'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32',
            None,
        ),
    ),
    Row(
        title="a number that is too large for its field",
        when=post(DEPLOYMENTS, {"metadata": {"name": "one"}, "spec": {"replicas": 3000000000}}),
        then=refused(
            400,
            "BadRequest",
            'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32',
            None,
        ),
    ),
    Row(
        title="a quantity that is none",
        when=post(
            PODS,
            {
                "metadata": {"name": "one"},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "lots"}}}]},
            },
        ),
        then=refused(
            400,
            "BadRequest",
            "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            None,
        ),
    ),
    Row(
        title="a number is a quantity",
        when=post(
            PODS,
            {
                "metadata": {"name": "one"},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"requests": {"cpu": 1, "memory": "0.5Gi"}}}
                    ]
                },
            },
        ),
        look=("spec.containers.0.resources",),
        then=answered(201, **{"spec.containers.0.resources": {"requests": {"cpu": "1", "memory": "512Mi"}}}),
    ),
    Row(
        title="a time that is none",
        when=post(
            "/apis/coordination.k8s.io/v1/namespaces/$ns/leases",
            {"metadata": {"name": "one"}, "spec": {"renewTime": "now"}},
        ),
        then=refused(
            400,
            "BadRequest",
            'Lease in version "v1" cannot be handled as a Lease: parsing time "now" as "$time07:00": cannot parse "now" as "2006"',
            None,
        ),
    ),
    Row(
        title="a time in metadata that is none",
        when=post(MAPS, {"metadata": {"name": "one", "creationTimestamp": "now"}}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "now" as "$time07:00": cannot parse "now" as "2006"',
            None,
        ),
    ),
    Row(
        title="base64 that is none",
        when=post("/api/v1/namespaces/$ns/secrets", {"metadata": {"name": "one"}, "data": {"a": "%"}}),
        then=refused(
            400,
            "BadRequest",
            'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
            None,
        ),
    ),
    Row(
        title="nulls are left out of a Pod",
        when=post(
            PODS,
            {
                "metadata": {"name": "one"},
                "spec": {
                    "containers": [{"name": "c", "image": "i", "args": None, "env": [{"name": "A", "value": None}]}],
                    "nodeSelector": None,
                },
            },
        ),
        look=("spec.containers.0.env", "spec.containers.0.args", "spec.nodeSelector"),
        then=answered(
            201,
            **{
                "spec.containers.0.env": [{"name": "A"}],
                "spec.containers.0.args": "absent",
                "spec.nodeSelector": "absent",
            },
        ),
    ),
    Row(
        title="empty lists and maps are left out of a Pod",
        when=post(
            PODS,
            {
                "metadata": {"name": "one"},
                "spec": {
                    "containers": [{"name": "c", "image": "i", "args": [], "env": [], "workingDir": ""}],
                    "nodeSelector": {},
                    "hostNetwork": False,
                },
            },
        ),
        look=(
            "spec.containers.0.env",
            "spec.containers.0.args",
            "spec.nodeSelector",
            "spec.hostNetwork",
            "spec.containers.0.workingDir",
        ),
        then=answered(
            201,
            **{
                "spec.containers.0.env": "absent",
                "spec.containers.0.args": "absent",
                "spec.nodeSelector": "absent",
                "spec.hostNetwork": "absent",
                "spec.containers.0.workingDir": "absent",
            },
        ),
    ),
    Row(
        title="empty data is left out of a ConfigMap",
        when=post(MAPS, {"metadata": {"name": "one"}, "data": {}}),
        look=("data",),
        then=answered(201, data="absent"),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_type(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
