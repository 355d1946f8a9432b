from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import named
from upgrade_manager.facts.node_obstacles import check_kubelet
from upgrade_manager.facts.pod_end import unended
from upgrade_manager.facts.removal import repair_controller

SHOW = "Show its events: kubectl describe pod -n ns p"
KUBELET = str(check_kubelet("n1"))
FORCE = "If the node is off and stays so, delete the Pod: kubectl delete pod -n ns p --force --grace-period=0"
TRACKED = "batch.kubernetes.io/job-tracking"
row = pytest.param


@pytest.mark.rule("blockers: a Pod that does not end has one reason and one remedy for failed Jobs and drains")
@pytest.mark.parametrize(
    ("node", "phase", "finalizers", "why", "ways_out"),
    [
        row("n1", "Running", [], "does not end on node n1", [SHOW, KUBELET, FORCE], id="its kubelet hangs"),
        row("n1", "Running", [TRACKED], "does not end on node n1", [SHOW, KUBELET, FORCE], id="of a Job"),
        row("", "Pending", [], "does not end", [SHOW], id="not scheduled"),
        row(
            "n1",
            "Succeeded",
            ["a/b"],
            "does not end on node n1, and its finalizer holds it (a/b)",
            [SHOW, str(repair_controller(["a/b"]))],
            id="held by a finalizer",
        ),
        row(
            "n1",
            "Running",
            ["a/b", "c/d"],
            "does not end on node n1, and its finalizers hold it (a/b, c/d)",
            [SHOW, KUBELET, str(repair_controller(["a/b", "c/d"]))],
            id="runs, with finalizers",
        ),
    ],
)
def test_reason_and_remedies(node: str, phase: str, finalizers: list[str], why: str, ways_out: list[str]) -> None:
    spec = {"nodeName": node} if node else {}
    found = unended(named("p", "ns", finalizers=finalizers, spec=spec, status={"phase": phase}))
    assert (found.why, [*map(str, found.ways_out)]) == (why, ways_out)
