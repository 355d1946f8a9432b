"""What a create stores, and what it refuses: kinds, namespaces and names."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import MAPS, config_map
from tests.support.conformance_rows import Row, answered, invalid, play, post, refused
from tests.support.shapes import PLAINS, WIDGETS, plain, widget

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
        title="a namespace that does not exist is refused for a custom kind",
        when=post("/apis/shapes.example.io/v1/namespaces/$ns-none/widgets", widget()),
        then=refused(404, "NotFound", 'namespaces "$ns-none" not found', {"name": "$ns-none", "kind": "namespaces"}),
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
        title="no name at all is refused for a custom kind",
        when=post(PLAINS, plain("")),
        then=invalid(
            "Plain.shapes.example.io", ("metadata.name", "Required value: name or generateName is required"), name=""
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
        title="a generated name begins as asked",
        when=post(MAPS, config_map(generateName="one-")),
        look=("metadata.generateName",),
        then=answered(201, **{"metadata.generateName": "one-"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_create(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
