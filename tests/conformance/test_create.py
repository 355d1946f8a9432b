"""What a create stores, and what it refuses: kinds, namespaces and names."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, play, post, refused
from tests.support.maps import MAPS, config_map
from tests.support.shapes import PLAINS, VERSION, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

SPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
SERVICES = "/api/v1/namespaces/$ns/services"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/roles"


ROWS = [
    Row(
        title="an object gets its system fields",
        when=post(MAPS, config_map(name="one")),
        look=(
            "kind",
            "apiVersion",
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
            "metadata.creationTimestamp",
            "metadata.generation",
        ),
        then=answered(
            201,
            **{
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata.name": "one",
                "metadata.namespace": "$ns",
                "metadata.uid": "$uid",
                "metadata.creationTimestamp": "$time",
                "metadata.generation": "absent",
            },
        ),
    ),
    Row(
        title="kind and apiVersion may be left out for a built-in kind",
        when=post(MAPS, {"metadata": {"name": "one"}}),
        look=("kind", "apiVersion"),
        then=answered(201, kind="ConfigMap", apiVersion="v1"),
    ),
    Row(
        title="kind and apiVersion may not be left out for a custom kind",
        when=post(WIDGETS, {"metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type Widget): Object \'Kind\' is missing in \'{"metadata": {"name": "one"}}\' ({"metadata": {"name": "one"}})',
            None,
        ),
    ),
    Row(
        title="apiVersion may not be left out for a custom kind",
        when=post(WIDGETS, {"kind": "Widget", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            "the API version in the data () does not match the expected API version (shapes.example.io/v1)",
            None,
        ),
    ),
    Row(
        title="kind may not be left out for a custom kind",
        when=post(WIDGETS, {"apiVersion": VERSION, "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type Widget): Object \'Kind\' is missing in \'{"apiVersion": "shapes.example.io/v1", "metadata": {"name": "one"}}\' ({"apiVersion": "shapes.example ...)',
            None,
        ),
    ),
    Row(
        title="the kind alone may not be given",
        when=post(MAPS, {"kind": "ConfigMap", "metadata": {"name": "one"}}),
        look=("kind", "apiVersion"),
        then=answered(201, kind="ConfigMap", apiVersion="v1"),
    ),
    Row(
        title="another kind is refused",
        when=post(MAPS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
            None,
        ),
    ),
    Row(
        title="an unknown kind is refused",
        when=post(MAPS, {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'Thing in version "v1" cannot be handled as a ConfigMap: no kind "Thing" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
            None,
        ),
    ),
    Row(
        title="another version is refused",
        when=post(MAPS, {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"',
            None,
        ),
    ),
    Row(
        title="another group is refused",
        when=post(MAPS, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            'Deployment in version "v1" cannot be handled as a ConfigMap: converting (v1.Deployment) to (core.ConfigMap): unknown conversion',
            None,
        ),
    ),
    Row(
        title="another custom kind is refused",
        when=post(WIDGETS, plain()),
        then=invalid("Plain.shapes.example.io", ("kind", 'Invalid value: "Plain": must be Widget')),
    ),
    Row(
        title="another version of a custom kind is refused",
        when=post(WIDGETS, {"kind": "Widget", "apiVersion": "shapes.example.io/v2", "metadata": {"name": "one"}}),
        then=refused(
            400,
            "BadRequest",
            "the API version in the data (shapes.example.io/v2) does not match the expected API version (shapes.example.io/v1)",
            None,
        ),
    ),
    Row(
        title="another group of a custom kind is refused",
        when=post(WIDGETS, widget() | {"apiVersion": "other.io/v1"}),
        then=refused(
            400,
            "BadRequest",
            "the API version in the data (other.io/v1) does not match the expected API version (shapes.example.io/v1)",
            None,
        ),
    ),
    Row(
        title="an apiVersion that is none is refused",
        when=post(WIDGETS, widget() | {"apiVersion": "a/b/c"}),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type Widget): unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)',
            None,
        ),
    ),
    Row(
        title="another namespace than the path's is refused",
        when=post(MAPS, config_map(name="one", namespace="other")),
        then=refused(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            None,
        ),
    ),
    Row(
        title="another namespace than the path's is refused for a custom kind",
        when=post(WIDGETS, plain() | {"kind": "Widget", "metadata": {"name": "one", "namespace": "other"}}),
        then=refused(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            None,
        ),
    ),
    Row(
        title="a namespace in a cluster-scoped object is refused",
        when=post(NODES, {"metadata": {"name": "$word", "namespace": "other"}}),
        look=("metadata.namespace",),
        then=answered(201, **{"metadata.namespace": "absent"}),
    ),
    Row(
        title="a namespace that does not exist is refused",
        when=post("/api/v1/namespaces/$ns-none/configmaps", config_map(name="one")),
        then=refused(404, "NotFound", 'namespaces "$ns-none" not found', {"name": "$ns-none", "kind": "namespaces"}),
    ),
    Row(
        title="a namespace that does not exist is refused for a custom kind",
        when=post("/apis/shapes.example.io/v1/namespaces/$ns-none/widgets", widget()),
        then=refused(404, "NotFound", 'namespaces "$ns-none" not found', {"name": "$ns-none", "kind": "namespaces"}),
    ),
    Row(
        title="a name that is taken is refused",
        given=(post(MAPS, config_map(name="one")),),
        when=post(MAPS, config_map(name="one")),
        then=refused(409, "AlreadyExists", 'configmaps "one" already exists', {"name": "one", "kind": "configmaps"}),
    ),
    Row(
        title="a name that is taken is refused for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=post(WIDGETS, widget()),
        then=refused(
            409,
            "AlreadyExists",
            'widgets.shapes.example.io "one" already exists',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="no name at all is refused",
        when=post(MAPS, config_map()),
        then=invalid("ConfigMap", ("metadata.name", "Required value: name or generateName is required"), name=""),
    ),
    Row(
        title="no name at all is refused for a custom kind",
        when=post(PLAINS, plain("")),
        then=invalid(
            "Plain.shapes.example.io", ("metadata.name", "Required value: name or generateName is required"), name=""
        ),
    ),
    Row(
        title="a name in capitals is refused",
        when=post(MAPS, config_map(name="One")),
        then=invalid(
            "ConfigMap",
            (
                "metadata.name",
                "Invalid value: \"One\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            name="One",
        ),
    ),
    Row(
        title="a name with a slash is refused",
        when=post(MAPS, config_map(name="a/b")),
        then=invalid(
            "ConfigMap",
            (
                "metadata.name",
                "Invalid value: \"a/b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            name="a/b",
        ),
    ),
    Row(
        title="a name in capitals is refused for a custom kind",
        when=post(WIDGETS, widget("One")),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "metadata.name",
                "Invalid value: \"One\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            name="One",
        ),
    ),
    Row(
        title="a name that is too long is refused",
        when=post(MAPS, config_map(name="a" * 254)),
        then=invalid(
            "ConfigMap",
            (
                "metadata.name",
                'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 characters',
            ),
            name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
    ),
    Row(
        title="a namespace with a dot is refused",
        when=post(SPACES, {"metadata": {"name": "a.b"}}),
        then=invalid("Namespace", ("metadata.name", 'Invalid value: "a.b": must not contain dots'), name="a.b"),
    ),
    Row(
        title="a namespace that is too long is refused",
        when=post(SPACES, {"metadata": {"name": "a" * 64}}),
        then=invalid(
            "Namespace",
            (
                "metadata.labels",
                'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 bytes',
            ),
            (
                "metadata.name",
                'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 63 characters',
            ),
            name="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
    ),
    Row(
        title="a Service that begins with a digit is refused",
        when=post(SERVICES, {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 80}]}}),
        then=invalid(
            "Service",
            (
                "metadata.name",
                "Invalid value: \"1a\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            name="1a",
        ),
    ),
    Row(
        title="a Role may have capitals and colons",
        when=post(ROLES, {"metadata": {"name": "A:b"}}),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "A:b"}),
    ),
    Row(
        title="a Role may have no slash",
        when=post(ROLES, {"metadata": {"name": "a/b"}}),
        then=invalid(
            "Role.rbac.authorization.k8s.io",
            ("metadata.name", "Invalid value: \"a/b\": may not contain '/'"),
            name="a/b",
        ),
    ),
    Row(
        title="a generated name begins as asked",
        when=post(MAPS, config_map(generateName="one-")),
        look=("metadata.generateName",),
        then=answered(201, **{"metadata.generateName": "one-"}),
    ),
    Row(
        title="a prefix that is no name is refused",
        when=post(MAPS, config_map(generateName="One-")),
        then=invalid(
            "ConfigMap",
            (
                "metadata.generateName",
                "Invalid value: \"One-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            (
                "metadata.name",
                "Invalid value: \"One-$suffix\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            name="One-$suffix",
        ),
    ),
    Row(
        title="a name on the path of a create is refused",
        when=post(f"{MAPS}/one", config_map(name="one")),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a namespaced kind is not created without a namespace",
        when=post("/api/v1/configmaps", config_map(name="one")),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a namespaced custom kind is not created without a namespace",
        when=post("/apis/shapes.example.io/v1/widgets", widget()),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="data that is a number is refused",
        when=post(MAPS, config_map(name="one") | {"data": {"a": 1}}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
            None,
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_create(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then


@pytest.mark.parametrize("length", [58, 59, 200, 248])
async def test_a_generated_name_is_cut_to_63_characters(api: BareApi, length: int) -> None:
    answer = await api.admin.post(api.path("configmaps"), config_map(generateName="a" * length))
    assert len(answer.body["metadata"]["name"]) == min(length, 58) + 5
