"""Leases, bindings of roles and Nodes."""
# what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, conflict, merge, play, post, put

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
LEASE = f"{LEASES}/one"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/rolebindings"
_META = {"metadata": {"name": "one"}}
_NOW = "2026-01-02T03:04:05.000000Z"


ROWS = [
    Row(
        title="a Lease is stored",
        when=post(
            LEASES,
            _META
            | {
                "spec": {
                    "holderIdentity": "me",
                    "leaseDurationSeconds": 15,
                    "acquireTime": _NOW,
                    "renewTime": _NOW,
                    "leaseTransitions": 0,
                }
            },
        ),
        look=("spec",),
        then=answered(
            201,
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "acquireTime": "$time",
                "renewTime": "$time",
                "leaseTransitions": 0,
            },
        ),
    ),
    Row(
        title="an old Lease is a conflict",
        given=(post(LEASES, _META), merge(LEASE, {"spec": {"holderIdentity": "me"}})),
        when=put(
            LEASE,
            {
                "metadata": {"name": "one", "resourceVersion": "$0.metadata.resourceVersion"},
                "spec": {"holderIdentity": "you"},
            },
        ),
        then=conflict(
            "leases.coordination.k8s.io",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ),
    Row(
        title="a binding is filled in",
        when=post(
            BINDINGS,
            _META
            | {
                "roleRef": {"kind": "Role", "name": "a"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
            },
        ),
        look=("roleRef", "subjects"),
        then=answered(
            201,
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
            subjects=[
                {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        ),
    ),
    Row(
        title="a Node is filled in",
        when=post(
            "/api/v1/nodes",
            {"metadata": {"name": "$word"}, "spec": {"taints": [{"key": "a.io/b", "effect": "NoExecute"}]}},
        ),
        look=("spec.taints.0.key", "spec.unschedulable"),
        then=answered(201, **{"spec.taints.0.key": "a.io/b", "spec.unschedulable": "absent"}),
    ),
    Row(
        title="a Node is cordoned",
        given=(post("/api/v1/nodes", {"metadata": {"name": "$word"}}),),
        when=merge("/api/v1/nodes/$word", {"spec": {"unschedulable": True}}),
        look=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": True}),
    ),
    Row(
        title="a Node is uncordoned",
        given=(post("/api/v1/nodes", {"metadata": {"name": "$word"}, "spec": {"unschedulable": True}}),),
        when=merge("/api/v1/nodes/$word", {"spec": {"unschedulable": False}}),
        look=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": "absent"}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_lease_or_node(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
