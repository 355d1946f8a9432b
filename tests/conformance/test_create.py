"""Creation: stored metadata, names, namespaces, finalizers, owners."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import MAPS, config_map
from tests.support.conformance_rows import Row, answered, invalid, play, post, refused
from tests.support.shapes import PLAINS, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
    Row(
        title="object gets system fields",
        when=post(MAPS, config_map(name="one")),
        fields=(
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
        title="kind and apiVersion are optional for a built-in kind",
        when=post(MAPS, {"metadata": {"name": "one"}}),
        fields=("kind", "apiVersion"),
        then=answered(201, kind="ConfigMap", apiVersion="v1"),
    ),
    Row(
        title="namespace other than the path's is refused",
        when=post(WIDGETS, plain() | {"kind": "Widget", "metadata": {"name": "one", "namespace": "other"}}),
        then=refused(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            None,
        ),
    ),
    Row(
        title="missing namespace is refused",
        when=post("/apis/shapes.example.io/v1/namespaces/$ns-none/widgets", widget()),
        then=refused(404, "NotFound", 'namespaces "$ns-none" not found', {"name": "$ns-none", "kind": "namespaces"}),
    ),
    Row(
        title="existing name is refused",
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
        title="missing name is refused",
        when=post(PLAINS, plain("")),
        then=invalid(
            "Plain.shapes.example.io", ("metadata.name", "Required value: name or generateName is required"), name=""
        ),
    ),
    Row(
        title="uppercase name is refused",
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
        title="generated name has its prefix",
        when=post(MAPS, config_map(generateName="one-")),
        fields=("metadata.generateName",),
        then=answered(201, **{"metadata.generateName": "one-"}),
    ),
    Row(
        title="system fields of the request are replaced",
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
        fields=("metadata",),
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
        title="overlong label value is refused",
        when=post(MAPS, config_map(name="one", labels={"a": "b" * 64})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                'Invalid value: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": must be no more than 63 bytes',
            ),
        ),
    ),
    Row(
        title="empty maps and lists in metadata are dropped",
        when=post(
            WIDGETS,
            widget()
            | {"metadata": {"name": "one", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}},
        ),
        fields=("metadata",),
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
        title="finalizer without a domain returns a warning",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["mine"]}}),
        fields=("metadata.finalizers",),
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
        title="owner reference is stored unchanged",
        when=post(
            MAPS,
            config_map(
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
        fields=("metadata.ownerReferences",),
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
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_create(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
