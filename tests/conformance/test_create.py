"""What a create stores, and what it refuses."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import Row, answered, invalid, play, post, refused
from tests.support.shapes import PLAINS, VERSION, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
SPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
SERVICES = "/api/v1/namespaces/$ns/services"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/roles"


def _map(**metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


ROWS = [
    Row(
        title="an object gets its system fields",
        when=post(MAPS, _map(name="one")),
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
        when=post(MAPS, _map(name="one", namespace="other")),
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
        when=post("/api/v1/namespaces/$ns-none/configmaps", _map(name="one")),
        then=refused(404, "NotFound", 'namespaces "$ns-none" not found', {"name": "$ns-none", "kind": "namespaces"}),
    ),
    Row(
        title="a namespace that does not exist is refused for a custom kind",
        when=post("/apis/shapes.example.io/v1/namespaces/$ns-none/widgets", widget()),
        then=refused(404, "NotFound", 'namespaces "$ns-none" not found', {"name": "$ns-none", "kind": "namespaces"}),
    ),
    Row(
        title="a name that is taken is refused",
        given=(post(MAPS, _map(name="one")),),
        when=post(MAPS, _map(name="one")),
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
        when=post(MAPS, _map()),
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
        when=post(MAPS, _map(name="One")),
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
        when=post(MAPS, _map(name="a/b")),
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
        when=post(MAPS, _map(name="a" * 254)),
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
        when=post(MAPS, _map(generateName="one-")),
        look=("metadata.generateName",),
        then=answered(201, **{"metadata.generateName": "one-"}),
    ),
    Row(
        title="a prefix that is no name is refused",
        when=post(MAPS, _map(generateName="One-")),
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
        title="a resourceVersion is refused",
        when=post(MAPS, _map(name="one", resourceVersion="5")),
        then=refused(500, "", "resourceVersion should not be set on objects to be created", None),
    ),
    Row(
        title="a resourceVersion is refused for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "resourceVersion": "5"}}),
        then=refused(500, "", "resourceVersion should not be set on objects to be created", None),
    ),
    Row(
        title="system fields that are sent are replaced",
        when=post(
            MAPS,
            _map(
                name="one",
                uid="mine",
                creationTimestamp="2001-01-01T00:00:00Z",
                deletionTimestamp="2001-01-01T00:00:00Z",
                deletionGracePeriodSeconds=5,
                generation=7,
                selfLink="/x",
            ),
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "name": "one",
                "namespace": "$ns",
                "uid": "$uid",
                "resourceVersion": "$version",
                "generation": 7,
                "creationTimestamp": "$time",
            },
        ),
    ),
    Row(
        title="system fields that are sent are replaced for a custom kind",
        when=post(
            WIDGETS,
            widget()
            | {
                "metadata": {
                    "name": "one",
                    "uid": "mine",
                    "creationTimestamp": "2001-01-01T00:00:00Z",
                    "deletionTimestamp": "2001-01-01T00:00:00Z",
                    "deletionGracePeriodSeconds": 5,
                    "generation": 7,
                    "selfLink": "/x",
                }
            },
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
    Row(
        title="a label key with a space is refused",
        when=post(MAPS, _map(name="one", labels={"a b": "c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ),
    ),
    Row(
        title="a label value with a space is refused",
        when=post(MAPS, _map(name="one", labels={"a": "b c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                "Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="a label value that is too long is refused",
        when=post(MAPS, _map(name="one", labels={"a": "b" * 64})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                'Invalid value: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": must be no more than 63 bytes',
            ),
        ),
    ),
    Row(
        title="a label key with two slashes is refused",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "labels": {"a/b/c": "d"}}}),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "metadata.labels",
                "Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ),
        ),
    ),
    Row(
        title="a label value that is a number is refused",
        when=post(MAPS, _map(name="one", labels={"a": 1})),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
            None,
        ),
    ),
    Row(
        title="a label value that is a number is refused for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "labels": {"a": 1}}}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
            None,
        ),
    ),
    Row(
        title="an annotation that is a boolean is refused",
        when=post(MAPS, _map(name="one", annotations={"a": True})),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.annotations of type string',
            None,
        ),
    ),
    Row(
        title="an annotation key with a space is refused",
        when=post(MAPS, _map(name="one", annotations={"a b": "c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.annotations",
                "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ),
    ),
    Row(
        title="annotation keys are judged without regard to case",
        when=post(MAPS, _map(name="one", annotations={"Example.IO/a": "b"})),
        look=("metadata.annotations",),
        then=answered(201, **{"metadata.annotations": {"Example.IO/a": "b"}}),
    ),
    Row(
        title="annotations that are too large are refused",
        when=post(MAPS, _map(name="one", annotations={"a": "b" * 262144})),
        then=invalid("ConfigMap", ("metadata.annotations", "Too long: may not be more than 262144 bytes")),
    ),
    Row(
        title="a finalizer without a domain is refused",
        when=post(MAPS, _map(name="one", finalizers=["mine"])),
        look=("metadata.finalizers",),
        then=invalid(
            "ConfigMap",
            (
                "metadata.finalizers[0]",
                'Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
            ),
        ),
    ),
    Row(
        title="a finalizer that is no qualified name is refused",
        when=post(MAPS, _map(name="one", finalizers=["a b/c"])),
        then=invalid(
            "ConfigMap",
            (
                "metadata.finalizers",
                "Invalid value: \"a b/c\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
        ),
    ),
    Row(
        title="a finalizer without a domain brings a warning for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["mine"]}}),
        look=("metadata.finalizers",),
        then=answered(
            201,
            **{
                "metadata.finalizers": ["mine"],
                "warnings": [
                    'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers'
                ],
            },
        ),
    ),
    Row(
        title="a finalizer with a dotted name brings a warning for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["mine.example.io"]}}),
        look=("metadata.finalizers",),
        then=answered(
            201,
            **{
                "metadata.finalizers": ["mine.example.io"],
                "warnings": [
                    'metadata.finalizers: "mine.example.io": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers'
                ],
            },
        ),
    ),
    Row(
        title="both collector finalizers are refused",
        when=post(MAPS, _map(name="one", finalizers=["orphan", "foregroundDeletion"])),
        then=invalid(
            "ConfigMap",
            (
                "metadata.finalizers",
                'Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
            ),
        ),
    ),
    Row(
        title="an owner without a uid is refused",
        when=post(MAPS, _map(name="one", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}])),
        then=invalid("ConfigMap", ("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty')),
    ),
    Row(
        title="an owner without anything is refused",
        when=post(MAPS, _map(name="one", ownerReferences=[{}])),
        then=invalid(
            "ConfigMap",
            ("metadata.ownerReferences.apiVersion", 'Invalid value: "": version must not be empty'),
            ("metadata.ownerReferences.kind", 'Invalid value: "": must not be empty'),
            ("metadata.ownerReferences.name", 'Invalid value: "": must not be empty'),
            ("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty'),
        ),
    ),
    Row(
        title="an Event may own nothing",
        when=post(
            MAPS, _map(name="one", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}])
        ),
        then=invalid(
            "ConfigMap",
            (
                "metadata.ownerReferences",
                'Invalid value: {"apiVersion":"v1","kind":"Event","name":"a","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
            ),
        ),
    ),
    Row(
        title="two controlling owners are refused",
        when=post(
            MAPS,
            _map(
                name="one",
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"u-{name}", "controller": True}
                    for name in "ab"
                ],
            ),
        ),
        then=invalid(
            "ConfigMap",
            (
                "metadata.ownerReferences",
                'Invalid value: $value: Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b',
            ),
        ),
    ),
    Row(
        title="two controlling owners are refused for a custom kind",
        when=post(
            WIDGETS,
            widget()
            | {
                "metadata": {
                    "name": "one",
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"u-{name}", "controller": True}
                        for name in "ab"
                    ],
                }
            },
        ),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "metadata.ownerReferences",
                'Invalid value: $value: Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b',
            ),
        ),
    ),
    Row(
        title="the same owner twice brings a warning",
        when=post(
            MAPS,
            _map(name="one", ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "u-a"}] * 2),
        ),
        look=("metadata.ownerReferences",),
        then=answered(
            201,
            **{
                "metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "u-a"}],
                "warnings": [
                    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u-a"
                ],
            },
        ),
    ),
    Row(
        title="the owner is kept as it is sent",
        when=post(
            MAPS,
            _map(
                name="one",
                ownerReferences=[
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": "a",
                        "uid": "u-a",
                        "blockOwnerDeletion": False,
                        "controller": False,
                    }
                ],
            ),
        ),
        look=("metadata.ownerReferences",),
        then=answered(
            201,
            **{
                "metadata.ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "name": "a",
                        "uid": "u-a",
                        "controller": False,
                        "blockOwnerDeletion": False,
                    }
                ]
            },
        ),
    ),
    Row(
        title="a name on the path of a create is refused",
        when=post(f"{MAPS}/one", _map(name="one")),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a namespaced kind is not created without a namespace",
        when=post("/api/v1/configmaps", _map(name="one")),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a namespaced custom kind is not created without a namespace",
        when=post("/apis/shapes.example.io/v1/widgets", widget()),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="metadata that is a text is refused",
        when=post(MAPS, {"metadata": "one"}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta',
            None,
        ),
    ),
    Row(
        title="metadata that is a text is refused for a custom kind",
        when=post(WIDGETS, {"apiVersion": VERSION, "kind": "Widget", "metadata": "one"}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal string into Go value of type v1.ObjectMeta',
            None,
        ),
    ),
    Row(
        title="a name that is a number is refused",
        when=post(MAPS, {"metadata": {"name": 1}}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string',
            None,
        ),
    ),
    Row(
        title="a name that is a number is refused for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": 1}}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string',
            None,
        ),
    ),
    Row(
        title="data that is a number is refused",
        when=post(MAPS, _map(name="one") | {"data": {"a": 1}}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
            None,
        ),
    ),
    Row(
        title="nulls in metadata are left out",
        when=post(
            WIDGETS,
            widget() | {"metadata": {"name": "one", "labels": None, "annotations": {"a": None}, "finalizers": None}},
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "annotations": {"a": ""},
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
    Row(
        title="empty maps and lists in metadata are left out",
        when=post(
            WIDGETS,
            widget()
            | {"metadata": {"name": "one", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}},
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_create(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then


@pytest.mark.parametrize("length", [58, 59, 200, 248])
async def test_a_generated_name_is_cut_to_63_characters(api: BareApi, length: int) -> None:
    answer = await api.admin.post(api.path("configmaps"), _map(generateName="a" * length))
    assert len(answer.body["metadata"]["name"]) == min(length, 58) + 5
