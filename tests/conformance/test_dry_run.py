"""Dry runs are validated and not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import definition
from tests.support.conformance_rows import Row, answered, get, merge, play, post, refused
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
ONE = {"metadata": {"name": "one"}, "data": {"a": "b"}}
ALL = {"dryRun": "All"}

ROWS = [
    Row(
        title="create returns the object without resourceVersion",
        when=post(WIDGETS, widget(), **ALL),
        fields=("metadata", "spec"),
        then=answered(
            201,
            metadata={"creationTimestamp": "$time", "generation": 1, "name": "one", "namespace": "$ns", "uid": "$uid"},
            spec={"mode": "slow", "nested": {"level": 3}},
        ),
    ),
    Row(
        title="create stores nothing",
        given=(post(MAPS, ONE, **ALL),),
        when=get(MAP),
        then=refused(404, "NotFound", 'configmaps "one" not found', {"name": "one", "kind": "configmaps"}),
    ),
    Row(
        title="patch returns the new state",
        given=(post(WIDGETS, widget()),),
        when=merge(f"{WIDGETS}/one", {"spec": {"size": 3}}, **ALL),
        fields=("spec.size", "metadata.generation", "metadata.resourceVersion"),
        then=answered(200, **{"spec.size": 3, "metadata.generation": 2, "metadata.resourceVersion": "$version"}),
    ),
    Row(
        title="patch stores nothing",
        given=(post(WIDGETS, widget()), merge(f"{WIDGETS}/one", {"spec": {"size": 3}}, **ALL)),
        when=get(f"{WIDGETS}/one"),
        fields=("spec.size", "metadata.generation"),
        then=answered(200, **{"spec.size": "absent", "metadata.generation": 1}),
    ),
    Row(
        title="CustomResourceDefinition is not served",
        given=(
            post(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                definition("gadgets", "Gadget", {"type": "object"}, group="$word.example.io"),
                **ALL,
            ),
        ),
        when=get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.$word.example.io"),
        then=refused(
            404,
            "NotFound",
            'customresourcedefinitions.apiextensions.k8s.io "gadgets.$ns.example.io" not found',
            {"name": "gadgets.$ns.example.io", "group": "apiextensions.k8s.io", "kind": "customresourcedefinitions"},
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_dry_run(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
