from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.removal import deletion, removal, ways_out
from upgrade_manager.kube.resources import MACHINES, NODES

DELETED = "2026-01-01T00:00:00Z"
LOG = "kubectl -n kube-system logs -l component=kube-controller-manager --tail=20 --prefix"
SHOW = "Show it: kubectl get machines.cluster.x-k8s.io -n fleet-local m -o yaml"
REPAIR = "Find out why the controller of {} does not end its work, and repair it"


def machine(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "fleet-local", "name": "m", **metadata}}


@pytest.mark.rule("blockers: an object that is being deleted is not to be deleted again, and its finalizers are named")
@pytest.mark.parametrize(
    ("obj", "why", "remedies"),
    [
        pytest.param(
            machine(),
            "the garbage collector has not removed it, although its owners are to be removed",
            ("Delete it: kubectl delete machines.cluster.x-k8s.io -n fleet-local m",),
            id="not deleted",
        ),
        pytest.param(
            machine(deletionTimestamp=DELETED),
            "it is being deleted",
            (f"Check the garbage collector: {LOG}", SHOW),
            id="without finalizers",
        ),
        pytest.param(
            machine(deletionTimestamp=DELETED, finalizers=["a/b"]),
            "it is being deleted, and its finalizer a/b holds it",
            (REPAIR.format("a/b"), SHOW),
            id="one finalizer",
        ),
        pytest.param(
            machine(deletionTimestamp=DELETED, finalizers=["a/b", "foregroundDeletion", "c/d"]),
            "it is being deleted, and its finalizers a/b, foregroundDeletion, c/d hold it",
            (REPAIR.format("a/b, c/d"), SHOW),
            id="several finalizers",
        ),
        pytest.param(
            machine(deletionTimestamp=DELETED, finalizers=["foregroundDeletion"]),
            "it is being deleted, and its finalizer foregroundDeletion holds it",
            (f"Check the garbage collector: {LOG}", SHOW),
            id="finalizer of the garbage collector",
        ),
    ],
)
def test_what_holds_an_object_is_named(obj: dict[str, Any], why: str, remedies: tuple[str, ...]) -> None:
    assert (removal(obj), tuple(map(str, ways_out(MACHINES, obj)))) == (why, remedies)
    assert deletion(obj) == (why if "deletionTimestamp" in obj["metadata"] else "")


def test_object_without_a_namespace_is_named_alone() -> None:
    (delete,) = ways_out(NODES, {"metadata": {"name": "n1"}})
    assert str(delete) == "Delete it: kubectl delete nodes n1"
