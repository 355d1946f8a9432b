from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.remedy import saving
from upgrade_manager.blockers.drains import FINDERS
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.wait import DrainWait
from upgrade_manager.facts.pod_end import unended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
OWNED = [{"kind": "ReplicaSet", "controller": True}]
DAEMON = [{"kind": "DaemonSet", "controller": True}]
STATUS = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 2, "observedGeneration": 1}
KEPT = "Pod ns/p cannot be evicted from n1: PodDisruptionBudget ns/b {}"
STALE = KEPT.format("allows no disruption ({})")
NEEDS_MORE = KEPT.format("needs 2 healthy Pods and has 1")
DELETE = "kubectl delete pdb -n ns b"
SAVE = f"Save the budget: {saving('kubectl get pdb -n ns b -o yaml', 'pdb-ns-b.yaml')}"
UNDO = "Undo it after the upgrade: kubectl create -f pdb-ns-b.yaml"
READY = f"(1) Repair its other Pods (2) {SAVE} (3) Or delete it, if none of them has to run: {DELETE} (4) {UNDO}"
ONE_DOWN = (
    "(1) Add a replica to its workload "
    "(2) Or allow one Pod to be down until the upgrade has ended (minAvailable is 2 now): "
    """kubectl patch pdb -n ns b --type=merge -p '{"spec":{"minAvailable":null,"maxUnavailable":1}}' """
    "(3) Undo it after the upgrade: "
    """kubectl patch pdb -n ns b --type=merge -p '{"spec":{"minAvailable":2,"maxUnavailable":null}}'"""
)


def wait(view: FakeView, *, age: float = 300, detail: str = "") -> DrainWait:
    since = view.ago(age)
    return DrainWait(
        namespace="fleet-local",
        name="m-machine-plan",
        node="n1",
        since=since,
        undisturbed=since,
        detail=detail,
    )


def blockers(view: FakeView, *, age: float = 300, detail: str = "") -> Sequence[Blocker]:
    return find_blockers(FINDERS, view, [wait(view, age=age, detail=detail)], []).blockers


def pod(name: str = "p", *, namespace: str = "ns", phase: object = "Running", **metadata: Any) -> dict[str, Any]:
    head = {"name": name, "namespace": namespace, "labels": {"app": "a"}, "ownerReferences": OWNED, **metadata}
    return {"metadata": head, "status": {"phase": phase}}


def unready(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}


def budget(
    name: str = "b", *, namespace: str = "ns", metadata: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    spec = {"selector": changes.pop("selector", {"matchLabels": {"app": "a"}}), **changes.pop("spec", {})}
    head = {"name": name, "namespace": namespace, "generation": 1, **(metadata or {})}
    return {"metadata": head, "spec": spec, "status": {**STATUS, **changes}}


def test_healthy_drain_is_not_read_before_its_deadline(view: FakeView) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod()], [budget()]
    assert blockers(view, age=299) == []
    assert view.read == []


def test_drained_node_is_not_read(view: FakeView) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod()], [budget()]
    done = replace(wait(view, detail="of an earlier attempt"), is_drained=True)
    assert find_blockers(FINDERS, view, [done], []).blockers == []
    assert view.read == []


@pytest.mark.rule(
    "blockers: a drain that does not end is named with Rancher's error, its PodDisruptionBudgets and its Pods"
)
def test_error_of_rancher_is_reported_at_once(view: FakeView) -> None:
    words = 'error when evicting pods/"p" -n "ns":\n\x1b[31mCannot evict pod.'
    (found,) = blockers(view, age=1, detail=words)
    assert (found.reason, found.kind, found.name, found.node) == ("DrainFailing", "Secret", "m-machine-plan", "n1")
    assert found.message == (
        "Secret fleet-local/m-machine-plan: Rancher cannot drain node n1 "
        '(error when evicting pods/"p" -n "ns": [31mCannot evict pod)'
    )
    command = "kubectl get pods -A --field-selector spec.nodeName=n1"
    assert found.remedy == f"List the node's Pods, and delete or move the Pod that Rancher cannot evict: {command}"


def test_budget_is_named_beside_the_error(view: FakeView) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod()], [budget()]
    assert [one.kind for one in blockers(view, age=1, detail="no")] == ["Secret", "PodDisruptionBudget"]
    assert [(one.field_selector, one.namespace) for one in view.read] == [("spec.nodeName=n1", ""), ("", "ns")]


@pytest.mark.rule(
    "blockers: a drain that does not end is named with Rancher's error, its PodDisruptionBudgets and its Pods"
)
@pytest.mark.parametrize(
    ("found", "message", "remedy"),
    [
        row(budget(), NEEDS_MORE, READY, id="budget"),
        row(
            budget(selector={}),
            NEEDS_MORE,
            READY,
            id="all",
        ),
        row(
            budget(selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}, disruptionsAllowed=None),
            NEEDS_MORE,
            READY,
            id="absent counts as 0",
        ),
        row(
            budget(currentHealthy=2, spec={"minAvailable": 2}),
            KEPT.format("needs 2 of 2 healthy Pods"),
            ONE_DOWN,
            id="too few replicas",
        ),
        row(
            budget(metadata={"generation": 2}, disruptionsAllowed=1),
            STALE.format("its status is stale: the disruption controller has not processed its spec"),
            f"(1) {SAVE} (2) Delete it: {DELETE} (3) {UNDO}",
            id="not observed",
        ),
        row(
            budget(observedGeneration=None, disruptionsAllowed=1),
            STALE.format("its status is stale: the disruption controller has not processed its spec"),
            f"(1) {SAVE} (2) Delete it: {DELETE} (3) {UNDO}",
            id="never observed",
        ),
        row(
            budget(expectedPods=0),
            STALE.format("its status is stale: it expects 0 Pods"),
            f"(1) {SAVE} (2) Delete it: {DELETE} (3) {UNDO}",
            id="expects none",
        ),
        row(
            budget(conditions=[{"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "no scale of Foo/x."}]),
            STALE.format("its status is stale: no scale of Foo/x"),
            f"(1) {SAVE} (2) Delete it: {DELETE} (3) {UNDO}",
            id="not computed",
        ),
        row(
            budget(metadata={"ownerReferences": [{"kind": "VirtualMachineInstance", "name": "db01"}]}),
            NEEDS_MORE,
            "Migrate the VM: virtctl migrate db01 -n ns",
            id="of a VM",
        ),
    ],
)
def test_budget_without_disruptions(view: FakeView, found: dict[str, Any], message: str, remedy: str) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod()], [found]
    (blocker,) = blockers(view)
    assert (blocker.reason, blocker.kind, blocker.namespace, blocker.name, blocker.node) == (
        "DrainFailing",
        "PodDisruptionBudget",
        "ns",
        "b",
        "n1",
    )
    assert (blocker.message, blocker.remedy, blocker.since) == (message, remedy, view.ago(300))


def test_budget_of_pods_without_owner_is_stale(view: FakeView) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod(ownerReferences=None)], [budget()]
    (found,) = blockers(view)
    assert found.message == STALE.format("it is stale: its Pods have no owner that would replace them")
    assert found.remedy == f"(1) {SAVE} (2) Delete it: {DELETE} (3) {UNDO}"


def test_budget_of_longhorn_stays_until_volumes_are_healthy(view: FakeView) -> None:
    view.found["Pod"] = [pod(namespace="longhorn-system")]
    view.found["PodDisruptionBudget"] = [budget(namespace="longhorn-system")]
    (found,) = blockers(view)
    assert found.remedy == (
        "(1) Wait until no volume is degraded: kubectl get volumes.longhorn.io -n longhorn-system "
        "(2) Save the budget: (F=pdb-longhorn-system-b.yaml; "
        '[ -s $F ] && echo "$F exists: move it first" && exit 1; kubectl get pdb -n longhorn-system b -o yaml > $F) '
        "(3) Delete it then: kubectl delete pdb -n longhorn-system b "
        "(4) Undo it after the upgrade: kubectl create -f pdb-longhorn-system-b.yaml"
    )


def test_two_budgets_of_a_pod_are_both_named(view: FakeView) -> None:
    view.found["Pod"] = [pod("q"), pod("p")]
    view.found["PodDisruptionBudget"] = [budget("b", disruptionsAllowed=1), budget("c", disruptionsAllowed=1)]
    found = blockers(view)
    assert [one.name for one in found] == ["b", "c"]
    assert found[0].message == (
        "Pods ns/p, ns/q cannot be evicted from n1: PodDisruptionBudget ns/b and another PodDisruptionBudget select "
        "the same Pods, which Kubernetes never evicts"
    )
    assert found[0].remedy == f"(1) {SAVE} (2) Keep one of them, and delete the other: {DELETE} (3) {UNDO}"


def test_budgets_of_the_pods_namespaces_alone_are_watched(view: FakeView) -> None:
    view.found["Pod"] = [pod("p"), pod("q"), pod("r", namespace="a"), pod("s", namespace="x", ownerReferences=DAEMON)]
    view.found["PodDisruptionBudget"] = [budget("b"), budget("c", namespace="a"), budget("d", namespace="x")]
    assert [one.name for one in blockers(view)] == ["c", "b"]
    assert [one.namespace for one in view.read[1:]] == ["a", "ns"]


@pytest.mark.parametrize(
    ("pods", "budgets"),
    [
        row([], [budget()], id="no Pod"),
        row([pod()], [budget(disruptionsAllowed=1)], id="allows one"),
        row([pod()], [budget(selector=None)], id="null selector"),
        row([pod()], [budget(selector={"matchLabels": {"app": "b"}})], id="other Pods"),
        row([pod()], [budget(namespace="other")], id="other namespace"),
        row(
            [pod()],
            [budget(metadata={"generation": None}, observedGeneration=None, disruptionsAllowed=None)],
            id="no status",
        ),
        row([pod(annotations={"kubernetes.io/config.mirror": "x"})], [budget()], id="mirror Pod"),
        row([pod(ownerReferences=DAEMON)], [budget()], id="DaemonSet"),
        row([pod(phase="Succeeded")], [budget()], id="finished"),
        row([pod(phase="Failed")], [budget()], id="failed"),
        row([pod(phase="Pending")], [budget()], id="pending"),
        row([pod(deletionTimestamp="2026-01-01T11:59:30Z")], [budget()], id="being deleted"),
        row([unready(pod())], [budget(currentHealthy=2)], id="not Ready, others are"),
        row([unready(pod())], [budget(spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"})], id="not Ready, allowed"),
    ],
)
def test_drain_that_nothing_keeps(view: FakeView, pods: list[Any], budgets: list[Any]) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = pods, budgets
    assert blockers(view) == []


def test_unready_pod_is_kept_while_too_few_are_healthy(view: FakeView) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [unready(pod())], [budget()]
    assert [one.name for one in blockers(view)] == ["b"]


@pytest.mark.rule(
    "blockers: a drain that does not end is named with Rancher's error, its PodDisruptionBudgets and its Pods"
)
@pytest.mark.parametrize(("finalizers", "phase"), [(["a/b", 1], "Running"), (["a/b"], "Succeeded"), (None, "Running")])
def test_pod_that_does_not_end_is_named(view: FakeView, finalizers: object, phase: str) -> None:
    """Rancher's drain deletes Pods that have ended, too, and waits for their removal."""
    lingering = pod(deletionTimestamp=view.time(60), finalizers=finalizers)
    lingering["status"]["phase"] = phase
    view.found["Pod"] = [lingering]
    (found,) = blockers(view, age=900)
    assert (found.reason, found.kind, found.name, found.since) == ("DrainFailing", "Pod", "p", view.ago(900))
    expected = unended(lingering)
    assert found.message == f"Pod ns/p: it is deleted, but {expected.why}"
    assert found.remedies == expected.ways_out


@pytest.mark.parametrize(
    "hostile",
    [
        row({"metadata": {"name": "b", "namespace": "ns"}}, id="no spec"),
        row({"metadata": {"name": "b", "namespace": "ns"}, "spec": [], "status": "x"}, id="wrong types"),
        row(budget(selector={"matchLabels": "x", "matchExpressions": [1]}), id="broken selector"),
    ],
)
def test_broken_budget_hides_no_other(view: FakeView, hostile: dict[str, Any]) -> None:
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod()], [hostile, budget("good")]
    assert [one.name for one in blockers(view)] == ["good"]


def test_long_words_stay_short(view: FakeView) -> None:
    condition = {"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "x" * 1_000_000}
    view.found["Pod"], view.found["PodDisruptionBudget"] = [pod()], [budget(conditions=[condition])]
    found = blockers(view, detail="y" * 1_000_000)
    assert max(len(one.message) for one in found) < 450


def test_missing_permission_is_named_with_the_error(view: FakeView) -> None:
    view.found["Pod"] = [pod()]
    view.errors["PodDisruptionBudget"] = 'list poddisruptionbudgets.policy: 403 Forbidden: User "x" cannot list'
    found = blockers(view, detail="cannot evict")[-1]
    assert found.message == (
        "Secret fleet-local/m-machine-plan: the upgrade waits for it too long (cannot evict), "
        "and the manager cannot read the reason: " + view.errors["PodDisruptionBudget"]
    )
