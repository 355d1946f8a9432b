"""Namespaces and their termination."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, delete, get, merge, play, post, put, refused
from tests.support.shapes import widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

SPACES = "/api/v1/namespaces"
OTHER = f"{SPACES}/$word-2"
#: Has a finalizer, so that it stays Terminating.
TERMINATING = (post(SPACES, {"metadata": {"name": "$word-2", "finalizers": ["a.io/b"]}}), delete(OTHER))

ROWS = [
    Row(
        title="namespace gets its name label",
        when=post(SPACES, {"metadata": {"name": "$word-2", "labels": {"a": "b"}}}),
        fields=("metadata.labels", "spec", "status"),
        then=answered(
            201,
            **{
                "metadata.labels": {"a": "b", "kubernetes.io/metadata.name": "$ns-2"},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
        ),
    ),
    Row(
        title="namespace status is written at its endpoint",
        given=(post(SPACES, {"metadata": {"name": "$word-2"}}),),
        when=merge(f"{OTHER}/status", {"status": {"conditions": [{"type": "A", "status": "True"}]}}),
        fields=("status.phase", "status.conditions.0.type"),
        then=answered(200, **{"status.phase": "Active", "status.conditions.0.type": "A"}),
    ),
    Row(
        title="terminating namespace refuses a built-in object",
        given=TERMINATING,
        when=post(f"{OTHER}/configmaps", {"metadata": {"name": "one"}}),
        then=refused(
            403,
            "Forbidden",
            'configmaps "one" is forbidden: unable to create new content in namespace $ns-2 because it is being terminated',
            {
                "name": "one",
                "kind": "configmaps",
                "causes": [
                    {
                        "reason": "NamespaceTerminating",
                        "message": "namespace $ns-2 is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            },
        ),
    ),
    Row(
        title="terminating namespace refuses a custom object",
        given=TERMINATING,
        when=post("/apis/shapes.example.io/v1/namespaces/$word-2/widgets", widget()),
        then=refused(
            403,
            "Forbidden",
            'widgets.shapes.example.io "one" is forbidden: unable to create new content in namespace $ns-2 because it is being terminated',
            {
                "name": "one",
                "group": "shapes.example.io",
                "kind": "widgets",
                "causes": [
                    {
                        "reason": "NamespaceTerminating",
                        "message": "namespace $ns-2 is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            },
        ),
    ),
    Row(
        title="terminating namespace can be labelled",
        given=TERMINATING,
        when=merge(OTHER, {"metadata": {"labels": {"a": "b"}}}),
        fields=("metadata.labels.a", "status.phase"),
        then=answered(200, **{"metadata.labels.a": "b", "status.phase": "Terminating"}),
    ),
    Row(
        title="missing namespace is not found",
        when=get(OTHER),
        then=refused(404, "NotFound", 'namespaces "$ns-2" not found', {"name": "$ns-2", "kind": "namespaces"}),
    ),
    Row(
        title="namespace is finalized",
        given=(post(SPACES, {"metadata": {"name": "$word-2"}}),),
        when=put(f"{OTHER}/finalize", {"metadata": {"name": "$word-2"}, "spec": {"finalizers": []}}),
        fields=("spec",),
        then=answered(200, spec={}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_namespace(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
