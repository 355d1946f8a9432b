"""Strategic merge patches, of which built-in kinds tell how their lists merge."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, conflict, invalid, play, post, refused, strategic
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
SERVICES = "/api/v1/namespaces/$ns/services"
MAPS = "/api/v1/namespaces/$ns/configmaps"
NODES = "/api/v1/nodes"

_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "one",
                "image": "i:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "args": ["x", "y"],
            },
            {"name": "two", "image": "i:2"},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"n": "1"},
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
DEPLOYMENT = (
    post(
        DEPLOYMENTS,
        {
            "metadata": {"name": "one", "labels": {"l": "m"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
        },
    ),
)
MAP = (
    post(
        MAPS,
        {
            "metadata": {"name": "one", "finalizers": ["a.io/a", "a.io/b"], "labels": {"l": "m", "n": "o"}},
            "data": {"a": "b", "c": "d"},
        },
    ),
)
_SERVICE = (
    post(
        SERVICES,
        {
            "metadata": {"name": "one"},
            "spec": {"clusterIP": "None", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]},
        },
    ),
)


def _pod_spec(title: str, patch: object, *look: str, then: object) -> Row:
    """On a Deployment's Pod template."""
    paths = tuple(f"spec.template.spec.{path}" for path in look)
    return Row(
        title=title,
        given=DEPLOYMENT,
        when=strategic(f"{DEPLOYMENTS}/one", {"spec": {"template": {"spec": patch}}}),
        look=paths,
        then=then,
    )


def _map(title: str, patch: object, then: object) -> Row:
    """On a ConfigMap."""
    return Row(
        title=title,
        given=MAP,
        when=strategic(f"{MAPS}/one", patch),
        look=("data", "metadata.finalizers", "metadata.labels"),
        then=then,
    )


def _owner(name: str, given: int) -> dict[str, str]:
    """A ConfigMap that was created before; one that does not exist would take its dependents with it."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"${given}.metadata.uid"}


ROWS = [
    _pod_spec(
        "containers merge by name",
        {"containers": [{"name": "two", "image": "i:3"}]},
        "containers.0.image",
        "containers.1.image",
        then=answered(
            200, **{"spec.template.spec.containers.0.image": "i:1", "spec.template.spec.containers.1.image": "i:3"}
        ),
    ),
    _pod_spec(
        "a new container comes first",
        {"containers": [{"name": "three", "image": "i:3"}]},
        "containers.0.name",
        "containers.1.name",
        "containers.2.name",
        then=answered(
            200,
            **{
                "spec.template.spec.containers.0.name": "three",
                "spec.template.spec.containers.1.name": "one",
                "spec.template.spec.containers.2.name": "two",
            },
        ),
    ),
    _pod_spec(
        "a container is deleted by name",
        {"containers": [{"name": "two", "$patch": "delete"}]},
        "containers.0.name",
        "containers.1",
        then=answered(
            200, **{"spec.template.spec.containers.0.name": "one", "spec.template.spec.containers.1": "absent"}
        ),
    ),
    _pod_spec(
        "a container that is not there is deleted",
        {"containers": [{"name": "x", "$patch": "delete"}]},
        "containers.0.name",
        "containers.1.name",
        "containers.2",
        then=answered(
            200,
            **{
                "spec.template.spec.containers.0.name": "one",
                "spec.template.spec.containers.1.name": "two",
                "spec.template.spec.containers.2": "absent",
            },
        ),
    ),
    _pod_spec(
        "the list of containers is replaced",
        {"containers": [{"name": "new", "image": "i:4"}, {"$patch": "replace"}]},
        "containers.0.name",
        "containers.1",
        then=answered(
            200, **{"spec.template.spec.containers.0.name": "new", "spec.template.spec.containers.1": "absent"}
        ),
    ),
    _pod_spec(
        "a container without its name is refused",
        {"containers": [{"image": "i:3"}]},
        then=refused(500, "", "map: map[image:i:3] does not contain declared merge key: name", None),
    ),
    _pod_spec(
        "variables merge by name",
        {"containers": [{"name": "one", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]},
        "containers.0.env",
        then=answered(
            200,
            **{
                "spec.template.spec.containers.0.env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "value": "3"},
                    {"name": "C", "value": "4"},
                ]
            },
        ),
    ),
    _pod_spec(
        "a variable is deleted",
        {"containers": [{"name": "one", "env": [{"name": "A", "$patch": "delete"}]}]},
        "containers.0.env",
        then=answered(200, **{"spec.template.spec.containers.0.env": [{"name": "B", "value": "2"}]}),
    ),
    _pod_spec(
        "arguments are replaced",
        {"containers": [{"name": "one", "args": ["z"]}]},
        "containers.0.args",
        then=answered(200, **{"spec.template.spec.containers.0.args": ["z"]}),
    ),
    _pod_spec(
        "tolerations are replaced",
        {"tolerations": [{"key": "l", "operator": "Exists"}]},
        "tolerations",
        then=answered(200, **{"spec.template.spec.tolerations": [{"key": "l", "operator": "Exists"}]}),
    ),
    _pod_spec(
        "a map is merged",
        {"nodeSelector": {"m": "2"}},
        "nodeSelector",
        then=answered(200, **{"spec.template.spec.nodeSelector": {"m": "2", "n": "1"}}),
    ),
    _pod_spec(
        "a member of a map is removed by null",
        {"nodeSelector": {"n": None}},
        "nodeSelector",
        then=answered(200, **{"spec.template.spec.nodeSelector": "absent"}),
    ),
    _pod_spec(
        "a map is replaced",
        {"nodeSelector": {"$patch": "replace", "m": "2"}},
        "nodeSelector",
        then=answered(200, **{"spec.template.spec.nodeSelector": {"m": "2"}}),
    ),
    _pod_spec(
        "a map is deleted",
        {"nodeSelector": {"$patch": "delete"}},
        "nodeSelector",
        then=answered(200, **{"spec.template.spec.nodeSelector": "absent"}),
    ),
    _pod_spec(
        "a list is removed by null",
        {"tolerations": None},
        "tolerations",
        then=answered(200, **{"spec.template.spec.tolerations": "absent"}),
    ),
    _pod_spec(
        "volumes merge by name and keep only the keys named",
        {"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]},
        "volumes",
        then=answered(200, **{"spec.template.spec.volumes": [{"name": "v", "hostPath": {"path": "/x", "type": ""}}]}),
    ),
    _pod_spec(
        "an order puts items in it",
        {
            "$setElementOrder/containers": [{"name": "two"}, {"name": "one"}],
            "containers": [{"name": "one", "image": "i:9"}],
        },
        "containers.0.name",
        "containers.1.name",
        "containers.1.image",
        then=answered(
            200,
            **{
                "spec.template.spec.containers.0.name": "two",
                "spec.template.spec.containers.1.name": "one",
                "spec.template.spec.containers.1.image": "i:9",
            },
        ),
    ),
    _pod_spec(
        "an order without its list puts items in it",
        {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}]},
        "containers.0.name",
        "containers.1.name",
        then=answered(
            200, **{"spec.template.spec.containers.0.name": "two", "spec.template.spec.containers.1.name": "one"}
        ),
    ),
    _pod_spec(
        "an order that leaves out what the list names is refused",
        {"$setElementOrder/containers": [{"name": "two"}], "containers": [{"name": "three", "image": "i"}]},
        then=refused(
            500,
            "",
            "The order in patch list:\n[map[image:i name:three]]\n doesn't match $setElementOrder list:\n[map[name:two]]\n",
            None,
        ),
    ),
    _pod_spec(
        "an order places a new item",
        {
            "$setElementOrder/containers": [{"name": "one"}, {"name": "new"}, {"name": "two"}],
            "containers": [{"name": "new", "image": "i"}],
        },
        "containers.0.name",
        "containers.1.name",
        "containers.2.name",
        then=answered(
            200,
            **{
                "spec.template.spec.containers.0.name": "one",
                "spec.template.spec.containers.1.name": "new",
                "spec.template.spec.containers.2.name": "two",
            },
        ),
    ),
    _pod_spec(
        "an unknown field goes with a warning",
        {"strange": 1},
        "strange",
        then=answered(
            200, **{"spec.template.spec.strange": "absent", "warnings": ['unknown field "spec.template.spec.strange"']}
        ),
    ),
    _pod_spec(
        "a value of the wrong type is refused",
        {"containers": [{"name": "one", "image": 5}]},
        then=invalid(
            "",
            (
                "patch",
                'Invalid value: "map[spec:map[template:map[spec:map[containers:[map[image:5 name:one]]]]]]": cannot convert int64 to string',
            ),
            name="",
        ),
    ),
    _pod_spec(
        "an unknown directive is refused",
        {"nodeSelector": {"$patch": "shrink"}},
        then=refused(500, "", "unknown patch type: shrink in map: map[$patch:shrink]", None),
    ),
    _pod_spec(
        "mounts merge by path",
        {"containers": [{"name": "one", "volumeMounts": [{"name": "v", "mountPath": "/a"}]}]},
        "containers.0.volumeMounts",
        then=answered(200, **{"spec.template.spec.containers.0.volumeMounts": [{"name": "v", "mountPath": "/a"}]}),
    ),
    _pod_spec(
        "ports of a container merge by number",
        {"containers": [{"name": "one", "ports": [{"containerPort": 80}]}]},
        "containers.0.ports",
        then=answered(200, **{"spec.template.spec.containers.0.ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    ),
    _map(
        "data is merged",
        {"data": {"a": "x", "e": "f"}},
        then=answered(
            200,
            **{
                "data": {"a": "x", "c": "d", "e": "f"},
                "metadata.finalizers": ["a.io/a", "a.io/b"],
                "metadata.labels": {"l": "m", "n": "o"},
            },
        ),
    ),
    _map(
        "data is removed",
        {"data": None},
        then=answered(
            200,
            **{"data": "absent", "metadata.finalizers": ["a.io/a", "a.io/b"], "metadata.labels": {"l": "m", "n": "o"}},
        ),
    ),
    _map(
        "finalizers are merged as a set",
        {"metadata": {"finalizers": ["a.io/c"]}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d"},
                "metadata.finalizers": ["a.io/c", "a.io/a", "a.io/b"],
                "metadata.labels": {"l": "m", "n": "o"},
            },
        ),
    ),
    _map(
        "finalizers that are there already are not doubled",
        {"metadata": {"finalizers": ["a.io/a"]}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d"},
                "metadata.finalizers": ["a.io/a", "a.io/b"],
                "metadata.labels": {"l": "m", "n": "o"},
            },
        ),
    ),
    _map(
        "a finalizer is deleted from the set",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.io/a"]}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d"},
                "metadata.finalizers": ["a.io/b"],
                "metadata.labels": {"l": "m", "n": "o"},
            },
        ),
    ),
    _map(
        "finalizers are put in order",
        {"metadata": {"$setElementOrder/finalizers": ["a.io/b", "a.io/c", "a.io/a"], "finalizers": ["a.io/c"]}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d"},
                "metadata.finalizers": ["a.io/b", "a.io/c", "a.io/a"],
                "metadata.labels": {"l": "m", "n": "o"},
            },
        ),
    ),
    _map(
        "labels are merged",
        {"metadata": {"labels": {"l": None, "p": "q"}}},
        then=answered(
            200,
            **{
                "data": {"a": "b", "c": "d"},
                "metadata.finalizers": ["a.io/a", "a.io/b"],
                "metadata.labels": {"n": "o", "p": "q"},
            },
        ),
    ),
    _map(
        "an old resourceVersion is a conflict",
        {"metadata": {"resourceVersion": "1"}},
        then=conflict(
            "configmaps", "the object has been modified; please apply your changes to the latest version and try again"
        ),
    ),
    _map(
        "the object cannot be deleted by a directive",
        {"$patch": "delete"},
        then=refused(
            400,
            "BadRequest",
            "the name of the object (one based on URL) was undeterminable: name must be provided",
            None,
        ),
    ),
    _map(
        "the object can be replaced by a directive",
        {"$patch": "replace", "metadata": {"name": "one"}, "data": {"new": "x"}},
        then=answered(200, **{"data": {"new": "x"}, "metadata.finalizers": "absent", "metadata.labels": "absent"}),
    ),
    Row(
        title="ports of a Service merge by number",
        given=_SERVICE,
        when=strategic(f"{SERVICES}/one", {"spec": {"ports": [{"port": 81, "name": "c"}]}}),
        look=("spec.ports",),
        then=answered(
            200,
            **{
                "spec.ports": [
                    {"name": "a", "protocol": "TCP", "port": 80, "targetPort": 80},
                    {"name": "c", "protocol": "TCP", "port": 81, "targetPort": 81},
                ]
            },
        ),
    ),
    Row(
        title="conditions merge by type",
        given=(
            post(
                NODES,
                {
                    "metadata": {"name": "$word"},
                    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
                },
            ),
        ),
        when=strategic(f"{NODES}/$word/status", {"status": {"conditions": [{"type": "B", "status": "False"}]}}),
        look=("status.conditions",),
        then=answered(
            200,
            **{
                "status.conditions": [
                    {"type": "A", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None},
                    {"type": "B", "status": "False", "lastHeartbeatTime": None, "lastTransitionTime": None},
                ]
            },
        ),
    ),
    Row(
        title="addresses of a Node merge by type",
        given=(
            post(
                NODES,
                {
                    "metadata": {"name": "$word"},
                    "status": {
                        "addresses": [
                            {"type": "InternalIP", "address": "10.0.0.1"},
                            {"type": "Hostname", "address": "h"},
                        ]
                    },
                },
            ),
        ),
        when=strategic(
            f"{NODES}/$word/status", {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}
        ),
        look=("status.addresses",),
        then=answered(
            200,
            **{
                "status.addresses": [
                    {"type": "InternalIP", "address": "10.0.0.2"},
                    {"type": "Hostname", "address": "h"},
                ]
            },
        ),
    ),
    Row(
        title="taints of a Node are replaced",
        given=(
            post(
                NODES, {"metadata": {"name": "$word"}, "spec": {"taints": [{"key": "a.io/a", "effect": "NoSchedule"}]}}
            ),
        ),
        when=strategic(f"{NODES}/$word", {"spec": {"taints": [{"key": "a.io/b", "effect": "NoExecute"}]}}),
        look=("spec.taints.0.key", "spec.taints.1.key"),
        then=answered(200, **{"spec.taints.0.key": "a.io/b", "spec.taints.1.key": "absent"}),
    ),
    Row(
        title="owners merge by uid",
        given=(
            post(MAPS, {"metadata": {"name": "a"}}),
            post(MAPS, {"metadata": {"name": "b"}}),
            post(MAPS, {"metadata": {"name": "one", "ownerReferences": [_owner("a", 0)]}}),
        ),
        when=strategic(f"{MAPS}/one", {"metadata": {"ownerReferences": [_owner("b", 1)]}}),
        look=("metadata.ownerReferences.0.name", "metadata.ownerReferences.1.name"),
        then=answered(200, **{"metadata.ownerReferences.0.name": "b", "metadata.ownerReferences.1.name": "a"}),
    ),
    Row(
        title="a patch that changes nothing keeps the resourceVersion",
        given=MAP,
        when=strategic(f"{MAPS}/one", {"data": {"a": "b"}}),
        look=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="a list is no strategic merge patch",
        given=MAP,
        when=strategic(f"{MAPS}/one", []),
        then=refused(
            400, "BadRequest", "json: cannot unmarshal array into Go value of type map[string]interface {}", None
        ),
    ),
    Row(
        title="what is no JSON is refused",
        given=MAP,
        when=strategic(f"{MAPS}/one", b"{"),
        then=refused(400, "BadRequest", "unexpected end of JSON input", None),
    ),
    Row(
        title="a custom kind takes none",
        given=(post(WIDGETS, widget()),),
        when=strategic(f"{WIDGETS}/one", {}),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            None,
        ),
    ),
    Row(
        title="a CustomResourceDefinition takes one",
        when=strategic("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/$word.example.io", {}),
        then=refused(
            404,
            "NotFound",
            'customresourcedefinitions.apiextensions.k8s.io "$ns.example.io" not found',
            {"name": "$ns.example.io", "group": "apiextensions.k8s.io", "kind": "customresourcedefinitions"},
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_strategic_merge_patch(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
