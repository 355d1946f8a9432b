"""Updates by PUT."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, conflict, invalid, merge, play, post, put, refused
from tests.support.shapes import WIDGETS, widget

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
        title="object is replaced",
        given=(post(MAPS, ONE),),
        when=put(MAP, _map({"c": "d"}, resourceVersion="$0.metadata.resourceVersion")),
        fields=("data",),
        then=answered(200, data={"c": "d"}),
    ),
    Row(
        title="Lease update without resourceVersion is refused",
        given=(post(LEASES, {"metadata": {"name": "one"}}),),
        when=put(f"{LEASES}/one", {"metadata": {"name": "one"}}),
        fields=("metadata.name",),
        then=invalid(
            "leases.coordination.k8s.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="custom update without resourceVersion is refused",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget()),
        then=invalid(
            "widgets.shapes.example.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
        ),
    ),
    Row(
        title="wrong resourceVersion is a conflict",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget(resourceVersion=OLD)),
        then=conflict(
            "widgets.shapes.example.io",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ),
    Row(
        title="wrong uid is a conflict",
        given=(post(WIDGETS, widget()),),
        when=put(f"{WIDGETS}/one", _widget(uid="other", resourceVersion="$0.metadata.resourceVersion")),
        then=conflict(
            "widgets.shapes.example.io",
            "StorageError: invalid object, Code: 4, Key: /registry/shapes.example.io/widgets/$ns/one, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: $uid",
        ),
    ),
    Row(
        title="missing custom object is not found",
        when=put(f"{WIDGETS}/one", _widget()),
        then=refused(
            404,
            "NotFound",
            'widgets.shapes.example.io "one" not found',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="missing Lease is created",
        when=put(f"{LEASES}/one", {"metadata": {"name": "one"}}),
        fields=("metadata.name",),
        then=answered(201, **{"metadata.name": "one"}),
    ),
    Row(
        title="system fields are kept",
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
        fields=("metadata",),
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
        title="no-op update keeps the resourceVersion",
        given=(post(WIDGETS, widget(size=1)),),
        when=put(f"{WIDGETS}/one", _widget(resourceVersion="$0.metadata.resourceVersion")),
        fields=("metadata.resourceVersion", "metadata.generation"),
        then=answered(200, **{"metadata.resourceVersion": "$version", "metadata.generation": 1}),
    ),
    Row(
        title="patch of a missing custom object is not found",
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
async def test_update(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
