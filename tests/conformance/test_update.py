"""What a PUT replaces, and what it refuses."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, conflict, invalid, merge, play, post, put, refused
from tests.support.shapes import PLAINS, VERSION, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
ONE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
OLD = "1"


def _map(data: dict[str, str] | None = None, **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"} | metadata, "data": data or {"a": "b"}}


def _widget(size: int = 1, **metadata: object) -> dict[str, object]:
    return widget(size=size) | {"metadata": {"name": "one"} | metadata}


ROWS = [
    Row(
        title="the object is replaced",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map({"c": "d"}, resourceVersion="$0.metadata.resourceVersion")),
        look=("data",),
        then=answered(200, data={"c": "d"}),
    ),
    Row(
        title="a resourceVersion may be left out for most built-in kinds",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map({"c": "d"})),
        look=("data",),
        then=answered(200, data={"c": "d"}),
    ),
    Row(
        title="a resourceVersion may not be left out for a Lease",
        given=(post(LEASES, {"metadata": {"name": "one"}}),),
        when=put(f"{LEASES}/one", {"metadata": {"name": "one"}}),
        look=("metadata.name",),
        then=invalid(
            "leases.coordination.k8s.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="a resourceVersion may not be left out for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget()),
        then=invalid(
            "widgets.shapes.example.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="another resourceVersion is a conflict",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map(resourceVersion=OLD)),
        then=conflict(
            "configmaps", "the object has been modified; please apply your changes to the latest version and try again"
        ),
    ),
    Row(
        title="another resourceVersion is a conflict for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget(resourceVersion=OLD)),
        then=conflict(
            "widgets.shapes.example.io",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ),
    Row(
        title="a resourceVersion that is no number is refused",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map(resourceVersion="x")),
        then=refused(500, "", 'strconv.ParseUint: parsing "x": invalid syntax', None),
    ),
    Row(
        title="another uid is a conflict",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map(uid="other")),
        then=conflict(
            "configmaps",
            "StorageError: invalid object, Code: 4, Key: /registry/configmaps/$ns/one, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: $uid",
        ),
    ),
    Row(
        title="another uid is a conflict for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget(uid="other", resourceVersion="$0.metadata.resourceVersion")),
        then=conflict(
            "widgets.shapes.example.io",
            "StorageError: invalid object, Code: 4, Key: /registry/shapes.example.io/widgets/$ns/one, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: $uid",
        ),
    ),
    Row(
        title="the same uid is taken",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map({"c": "d"}, uid="$0.metadata.uid")),
        look=("data",),
        then=answered(200, data={"c": "d"}),
    ),
    Row(
        title="an object that does not exist is not made",
        when=put(MAP, ONE),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
    ),
    Row(
        title="an object that does not exist is not made with a resourceVersion",
        when=put(MAP, _map(resourceVersion="5")),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
    ),
    Row(
        title="a custom object that does not exist is not made",
        when=put(f"{WIDGETS}/one", _widget()),
        then=refused(
            404,
            "NotFound",
            'widgets.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a Lease that does not exist is made",
        when=put(f"{LEASES}/one", {"metadata": {"name": "one"}}),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "one"}),
    ),
    Row(
        title="a ServiceAccount that does not exist is not made",
        when=put("/api/v1/namespaces/$ns/serviceaccounts/one", {"metadata": {"name": "one"}}),
        then=refused(404, "NotFound", 'serviceaccounts "one" not found', {"name": "one", "kind": "serviceaccounts"}),
    ),
    Row(
        title="a Service that does not exist is not made",
        when=put(
            "/api/v1/namespaces/$ns/services/one", {"metadata": {"name": "one"}, "spec": {"ports": [{"port": 80}]}}
        ),
        then=answered(201),
    ),
    Row(
        title="a Role that does not exist is not made",
        when=put("/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/roles/one", {"metadata": {"name": "one"}}),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "one"}),
    ),
    Row(
        title="an Event that does not exist is made",
        when=put(
            "/api/v1/namespaces/$ns/events/one", {"metadata": {"name": "one"}, "involvedObject": {"namespace": "$ns"}}
        ),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "one"}),
    ),
    Row(
        title="another name than the path's is refused",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map(name="two")),
        then=refused(400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)", None),
    ),
    Row(
        title="another name than the path's is refused for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget(name="two")),
        then=refused(400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)", None),
    ),
    Row(
        title="no name is taken for the path's",
        given=(post(MAPS, ONE),),
        when=put(MAP, {"metadata": {}, "data": {"c": "d"}}),
        look=("data",),
        then=refused(
            400,
            "BadRequest",
            "the name of the object (one based on URL) was undeterminable: name must be provided",
            None,
        ),
    ),
    Row(
        title="no name is refused for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", {"apiVersion": VERSION, "kind": "Widget"}),
        then=refused(
            400,
            "BadRequest",
            "the name of the object (one based on URL) was undeterminable: name must be provided",
            None,
        ),
    ),
    Row(
        title="another namespace than the path's is refused",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map(namespace="other")),
        then=refused(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            None,
        ),
    ),
    Row(
        title="system fields are kept",
        given=(post(MAPS, ONE),),
        when=put(
            MAP, _map({"c": "d"}, creationTimestamp="2001-01-01T00:00:00Z", generation=4, deletionGracePeriodSeconds=4)
        ),
        look=("metadata",),
        then=invalid("ConfigMap", ("metadata.deletionGracePeriodSeconds", "Invalid value: 4: field is immutable")),
    ),
    Row(
        title="system fields are kept for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=put(
            f"{WIDGETS}/one",
            _widget(
                2,
                resourceVersion="$0.metadata.resourceVersion",
                creationTimestamp="2001-01-01T00:00:00Z",
                generation=40,
            ),
        ),
        look=("metadata",),
        then=answered(
            200,
            metadata={
                "creationTimestamp": "$time",
                "generation": 2,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
    Row(
        title="a deletion is not begun by an update",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map({"c": "d"}, deletionTimestamp="2001-01-01T00:00:00Z")),
        look=("metadata.deletionTimestamp", "data"),
        then=invalid("ConfigMap", ("metadata.deletionTimestamp", 'Invalid value: "$time": field is immutable')),
    ),
    Row(
        title="the generateName may change",
        given=(post(MAPS, _map(generateName="on")),),
        when=put(MAP, _map({"c": "d"}, generateName="on-")),
        look=("metadata.generateName",),
        then=answered(200, **{"metadata.generateName": "on-"}),
    ),
    Row(
        title="the generateName may go",
        given=(post(MAPS, _map(generateName="on")),),
        when=put(MAP, _map({"c": "d"})),
        look=("metadata.generateName",),
        then=answered(200, **{"metadata.generateName": "absent"}),
    ),
    Row(
        title="labels that are left out go",
        given=(post(MAPS, _map(labels={"a": "b"}, annotations={"c": "d"}, finalizers=["a.io/b"])),),
        when=put(MAP, _map()),
        look=("metadata.labels", "metadata.annotations", "metadata.finalizers"),
        then=answered(
            200, **{"metadata.labels": "absent", "metadata.annotations": "absent", "metadata.finalizers": "absent"}
        ),
    ),
    Row(
        title="a wrong label is refused",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map(labels={"a": "b c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                "Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="what changes nothing keeps the resourceVersion",
        given=(post(MAPS, ONE),),
        when=put(MAP, ONE),
        look=("metadata.resourceVersion",),
        then=answered(200, **{"metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="what changes nothing keeps the resourceVersion of a custom object",
        given=(post(WIDGETS, widget(size=1)),),
        when=put(f"{WIDGETS}/one", _widget(resourceVersion="$0.metadata.resourceVersion")),
        look=("metadata.resourceVersion", "metadata.generation"),
        then=answered(200, **{"metadata.resourceVersion": "$version", "metadata.generation": 1}),
    ),
    Row(
        title="an update of the wrong kind is refused",
        given=(post(MAPS, ONE),),
        when=put(MAP, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
            None,
        ),
    ),
    Row(
        title="an update of the wrong custom kind is refused",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", plain()),
        then=invalid(
            "widgets.shapes.example.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="a collection cannot be updated",
        when=put(MAPS, ONE),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a subresource that a kind does not have cannot be updated",
        given=(post(MAPS, ONE),),
        when=put(f"{MAP}/status", ONE),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="the status of a custom kind without one cannot be updated",
        given=(post(PLAINS, plain()),),
        when=put(f"{PLAINS}/one/status", plain()),
        then=refused(
            404,
            "NotFound",
            'plains.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "plains"},
        ),
    ),
    Row(
        title="a subresource that nobody has cannot be updated",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one/nonsense", widget()),
        then=refused(
            404,
            "NotFound",
            'widgets.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a patch of an object that does not exist is refused",
        when=merge(MAP, {}),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
    ),
    Row(
        title="a patch of a custom object that does not exist is refused",
        when=merge(f"{WIDGETS}/one", {}),
        then=refused(
            404,
            "NotFound",
            'widgets.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_an_update(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
