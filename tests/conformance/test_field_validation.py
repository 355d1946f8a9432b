"""What becomes of fields that nobody knows, or that come twice."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Ask, Row, answered, invalid, json_patch, merge, play, post, put, refused, strategic
from tests.support.shapes import WIDGETS, definition, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
PODS = "/api/v1/namespaces/$ns/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
_ODD = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "strange": 1},
    "dataa": {"a": "b"},
    "extra": 5,
}
_TWICE = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","name":"one"},"data":{"a":"b"},"data":{"a":"c","a":"d"}}'
_ODD_WIDGET = widget(strange=1, size=2, nested={"deep": {"odd": 1}}, parts=[{"name": "a", "odd": 1}]) | {
    "top": 1,
    "metadata": {"name": "one", "odd": 1},
}
_TWICE_WIDGET = b'{"apiVersion":"shapes.example.io/v1","kind":"Widget","metadata":{"name":"one"},"spec":{"size":1,"size":2,"nested":{"level":1,"level":2},"parts":[{"name":"a","name":"b"}]},"spec":{"size":3}}'
_ODD_POD = {
    "metadata": {"name": "one", "labels": {"any": "thing"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "comand": ["x"], "env": [{"name": "A", "val": "1"}]}],
        "nodeSelectr": {},
        "volumes": [{"name": "v", "emptydir": {}}],
    },
    "statuss": {},
}
_ODD_DEPLOYMENT = {
    "metadata": {"name": "one"},
    "spec": {
        "replica": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}, "strange": 1},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"port": 80}]}]},
        },
    },
}
GIVEN = (post(MAPS, {"metadata": {"name": "one"}}),)
CUSTOM = (post(WIDGETS, widget()),)


ROWS = [
    Row(
        title="unknown fields of a ConfigMap under Ignore",
        when=post(MAPS, _ODD, fieldValidation="Ignore"),
        look=("dataa", "extra", "metadata.strange"),
        then=answered(201, **{"dataa": "absent", "extra": "absent", "metadata.strange": "absent"}),
    ),
    Row(
        title="unknown fields of a ConfigMap where nothing is said",
        when=post(MAPS, _ODD),
        look=("dataa", "extra", "metadata.strange"),
        then=answered(
            201,
            **{
                "dataa": "absent",
                "extra": "absent",
                "metadata.strange": "absent",
                "warnings": ['unknown field "metadata.strange"', 'unknown field "dataa"', 'unknown field "extra"'],
            },
        ),
    ),
    Row(
        title="unknown fields of a ConfigMap under Warn",
        when=post(MAPS, _ODD, fieldValidation="Warn"),
        look=("dataa",),
        then=answered(
            201,
            dataa="absent",
            warnings=['unknown field "metadata.strange"', 'unknown field "dataa"', 'unknown field "extra"'],
        ),
    ),
    Row(
        title="unknown fields of a ConfigMap under Strict",
        when=post(MAPS, _ODD, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.strange", unknown field "dataa", unknown field "extra"',
            None,
        ),
    ),
    Row(
        title="fields that come twice in a ConfigMap where nothing is said",
        when=Ask(method="POST", path=MAPS, body=_TWICE),
        look=("data",),
        then=answered(
            201,
            data={"a": "d"},
            warnings=['duplicate field "metadata.name"', 'duplicate field "data"', 'duplicate field "data.a"'],
        ),
    ),
    Row(
        title="fields that come twice in a ConfigMap under Ignore",
        when=Ask(method="POST", path=MAPS, body=_TWICE, query={"fieldValidation": "Ignore"}),
        look=("data",),
        then=answered(201, data={"a": "d"}),
    ),
    Row(
        title="fields that come twice in a ConfigMap under Strict",
        when=Ask(method="POST", path=MAPS, body=_TWICE, query={"fieldValidation": "Strict"}),
        look=("data",),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name", duplicate field "data", duplicate field "data.a"',
            None,
        ),
    ),
    Row(
        title="unknown fields of a Pod where nothing is said",
        when=post(PODS, _ODD_POD),
        look=("spec.nodeSelectr", "spec.containers.0.comand"),
        then=answered(
            201,
            **{
                "spec.nodeSelectr": "absent",
                "spec.containers.0.comand": "absent",
                "warnings": [
                    'unknown field "spec.containers[0].comand"',
                    'unknown field "spec.containers[0].env[0].val"',
                    'unknown field "spec.nodeSelectr"',
                    'unknown field "spec.volumes[0].emptydir"',
                    'unknown field "statuss"',
                ],
            },
        ),
    ),
    Row(
        title="unknown fields of a Pod under Strict",
        when=post(PODS, _ODD_POD, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].comand", unknown field "spec.containers[0].env[0].val", unknown field "spec.nodeSelectr", unknown field "spec.volumes[0].emptydir", unknown field "statuss"',
            None,
        ),
    ),
    Row(
        title="unknown fields of a Deployment under Strict",
        when=post(DEPLOYMENTS, _ODD_DEPLOYMENT, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.replica", unknown field "spec.template.metadata.strange", unknown field "spec.template.spec.containers[0].ports[0].port"',
            None,
        ),
    ),
    Row(
        title="names of fields count their case",
        when=post(MAPS, {"metadata": {"name": "one"}, "Data": {"a": "b"}}, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "Data"',
            None,
        ),
    ),
    Row(
        title="unknown fields of a custom object under Ignore",
        when=post(WIDGETS, _ODD_WIDGET, fieldValidation="Ignore"),
        look=("spec", "top"),
        then=answered(
            201,
            spec={"mode": "slow", "nested": {"deep": {}, "level": 3}, "parts": [{"name": "a", "weight": 1}], "size": 2},
            top="absent",
        ),
    ),
    Row(
        title="unknown fields of a custom object where nothing is said",
        when=post(WIDGETS, _ODD_WIDGET),
        look=("spec", "top"),
        then=answered(
            201,
            spec={"mode": "slow", "nested": {"deep": {}, "level": 3}, "parts": [{"name": "a", "weight": 1}], "size": 2},
            top="absent",
            warnings=[
                'unknown field "metadata.odd"',
                'unknown field "spec.nested.deep.odd"',
                'unknown field "spec.parts[0].odd"',
                'unknown field "spec.strange"',
                'unknown field "top"',
            ],
        ),
    ),
    Row(
        title="unknown fields of a custom object under Strict",
        when=post(WIDGETS, _ODD_WIDGET, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "metadata.odd", unknown field "spec.nested.deep.odd", unknown field "spec.parts[0].odd", unknown field "spec.strange", unknown field "top"',
            None,
        ),
    ),
    Row(
        title="fields that come twice in a custom object where nothing is said",
        when=Ask(method="POST", path=WIDGETS, body=_TWICE_WIDGET),
        look=("spec",),
        then=answered(
            201,
            spec={"mode": "slow", "nested": {"level": 3}, "size": 3},
            warnings=[
                'duplicate field "spec.size"',
                'duplicate field "spec.nested.level"',
                'duplicate field "spec.parts[0].name"',
                'duplicate field "spec"',
            ],
        ),
    ),
    Row(
        title="fields that come twice in a custom object under Strict",
        when=Ask(method="POST", path=WIDGETS, body=_TWICE_WIDGET, query={"fieldValidation": "Strict"}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", duplicate field "spec.nested.level", duplicate field "spec.parts[0].name", duplicate field "spec"',
            None,
        ),
    ),
    Row(
        title="an update with an unknown field under Strict",
        given=GIVEN,
        when=put(f"{MAPS}/one", _ODD, fieldValidation="Strict"),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.strange", unknown field "dataa", unknown field "extra"',
            None,
        ),
    ),
    Row(
        title="a merge patch with an unknown field where nothing is said",
        given=GIVEN,
        when=merge(f"{MAPS}/one", {"extra": 1}),
        look=("extra",),
        then=answered(200, extra="absent", warnings=['unknown field "extra"']),
    ),
    Row(
        title="a merge patch with an unknown field under Strict",
        given=GIVEN,
        when=merge(f"{MAPS}/one", {"extra": 1}, fieldValidation="Strict"),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: unknown field "extra"'), name=""),
    ),
    Row(
        title="a JSON patch with an unknown field under Strict",
        given=GIVEN,
        when=json_patch(f"{MAPS}/one", [{"op": "add", "path": "/extra", "value": 1}], fieldValidation="Strict"),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: unknown field "extra"'), name=""),
    ),
    Row(
        title="a strategic merge patch with an unknown field under Strict",
        given=GIVEN,
        when=strategic(f"{MAPS}/one", {"extra": 1}, fieldValidation="Strict"),
        then=invalid(
            "", ("patch", 'Invalid value: "map[extra:1]": strict decoding error: unknown field "extra"'), name=""
        ),
    ),
    Row(
        title="a merge patch of a custom object with an unknown field under Strict",
        given=CUSTOM,
        when=merge(f"{WIDGETS}/one", {"spec": {"odd": 1}}, fieldValidation="Strict"),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: unknown field "spec.odd"'), name=""),
    ),
    Row(
        title="a JSON patch of a custom object with an unknown field under Strict",
        given=CUSTOM,
        when=json_patch(f"{WIDGETS}/one", [{"op": "add", "path": "/spec/odd", "value": 1}], fieldValidation="Strict"),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: unknown field "spec.odd"'), name=""),
    ),
    Row(
        title="a merge patch with a field that comes twice under Strict",
        given=GIVEN,
        when=Ask(
            method="PATCH",
            path=f"{MAPS}/one",
            body=b'{"data":{"a":"1","a":"2"}}',
            media_type="application/merge-patch+json",
            query={"fieldValidation": "Strict"},
        ),
        look=("data",),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: duplicate field "data.a"'), name=""),
    ),
    Row(
        title="a merge patch with a field that comes twice where nothing is said",
        given=GIVEN,
        when=Ask(
            method="PATCH",
            path=f"{MAPS}/one",
            body=b'{"data":{"a":"1","a":"2"}}',
            media_type="application/merge-patch+json",
        ),
        look=("data",),
        then=answered(200, data={"a": "2"}, warnings=['duplicate field "data.a"']),
    ),
    Row(
        title="a status with an unknown field under Strict",
        given=CUSTOM,
        when=merge(f"{WIDGETS}/one/status", {"status": {"odd": 1}}, fieldValidation="Strict"),
        then=invalid(
            "", ("patch", 'Invalid value: $object: strict decoding error: unknown field "status.odd"'), name=""
        ),
    ),
    Row(
        title="an unknown field in free space under Strict",
        when=post(WIDGETS, widget(free={"odd": 1}), fieldValidation="Strict"),
        look=("spec.free",),
        then=answered(201, **{"spec.free": {"odd": 1}}),
    ),
    Row(
        title="a CustomResourceDefinition with an unknown field under Strict",
        when=post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition("gadgets", "Gadget", {"type": "object", "propertys": {}}, group="$word.example.io"),
            fieldValidation="Strict",
        ),
        then=refused(
            400,
            "BadRequest",
            'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: strict decoding error: unknown field "spec.versions[0].schema.openAPIV3Schema.propertys"',
            None,
        ),
    ),
    Row(
        title="a Job with an unknown field under Strict",
        when=post(
            "/apis/batch/v1/namespaces/$ns/jobs",
            {
                "metadata": {"name": "one"},
                "spec": {
                    "suspended": True,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
                },
            },
            fieldValidation="Strict",
        ),
        then=refused(
            400,
            "BadRequest",
            'Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field "spec.suspended"',
            None,
        ),
    ),
    Row(
        title="a Secret with an unknown field under Strict",
        when=post(
            "/api/v1/namespaces/$ns/secrets", {"metadata": {"name": "one"}, "stringdata": {}}, fieldValidation="Strict"
        ),
        then=refused(
            400,
            "BadRequest",
            'Secret in version "v1" cannot be handled as a Secret: strict decoding error: unknown field "stringdata"',
            None,
        ),
    ),
    Row(
        title="a Node with an unknown field under Strict",
        when=post(
            "/api/v1/nodes", {"metadata": {"name": "$word"}, "spec": {"cordoned": True}}, fieldValidation="Strict"
        ),
        then=refused(
            400,
            "BadRequest",
            'Node in version "v1" cannot be handled as a Node: strict decoding error: unknown field "spec.cordoned"',
            None,
        ),
    ),
    Row(
        title="an Event with an unknown field under Strict",
        when=post(
            "/api/v1/namespaces/$ns/events",
            {"metadata": {"name": "one"}, "involvedObject": {"namespace": "$ns", "plural": "x"}},
            fieldValidation="Strict",
        ),
        then=refused(
            400,
            "BadRequest",
            'Event in version "v1" cannot be handled as a Event: strict decoding error: unknown field "involvedObject.plural"',
            None,
        ),
    ),
    Row(
        title="a review with an unknown field under Strict",
        when=post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttribute": {}, "nonResourceAttributes": {"path": "/", "verb": "get"}}},
            fieldValidation="Strict",
        ),
        then=refused(
            400,
            "BadRequest",
            'SelfSubjectAccessReview in version "v1" cannot be handled as a SelfSubjectAccessReview: strict decoding error: unknown field "spec.resourceAttribute"',
            None,
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_strange_fields(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
