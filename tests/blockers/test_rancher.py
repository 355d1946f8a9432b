from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.keys import ANNOTATION_PROGRESS, ANNOTATION_PROGRESS_TIME, Component
from upgrade_manager.api.remedy import Remedy, remedy_text
from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.jobs import job_wait
from upgrade_manager.blockers.known_wait import LostHookWait
from upgrade_manager.blockers.rancher import FINDERS
from upgrade_manager.blockers.table import FINDERS as ALL
from upgrade_manager.blockers.wait import DrainWait, JobWait, RancherWait
from upgrade_manager.facts.job_state import JobState
from upgrade_manager.facts.node_obstacles import AWAITS_DRAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.blockers.finder import Row
    from upgrade_manager.blockers.wait import Wait

row = pytest.param
NEXT = "waiting for Rancher to drain the next node"
LOGS = (
    "(1) Show its log: kubectl -n cattle-system logs -l app=rancher --tail=100 --prefix --timestamps "
    "(2) If its last line is older than 10 minutes, it hangs: "
    "kubectl -n cattle-system rollout restart deploy/rancher"
)
STATUS = (
    "(1) Watch it: kubectl -n cattle-system rollout status deploy/rancher --timeout=30s "
    "(2) Show the events of its Pods: kubectl describe pods -n cattle-system "
    "(3) If they run but are not ready, restart them: kubectl -n cattle-system rollout restart deploy/rancher"
)
SCALE = Remedy(
    "Start it",
    command="kubectl -n cattle-system scale deploy/rancher --replicas=1",
)
DRAINED = f"Secret fleet-local/m-machine-plan: {AWAITS_DRAIN.format('node n1')}"
SILENT = "and reports no reason"
NEXT_NODE = "Cluster fleet-local/local: Rancher has not started the next node for over 10 min"


def planner(view: FakeView, *, age: float = 600, detail: str = NEXT) -> RancherWait:
    since = view.ago(age)
    return RancherWait(namespace="fleet-local", name="local", since=since, detail=detail)


def drain(view: FakeView, *, age: float = 600, disturbed: float = 0) -> DrainWait:
    """Return a drain that nothing has held up for that time, and something before it."""
    began, undisturbed = view.ago(age + disturbed), view.ago(age)
    name, node = "m-machine-plan", "n1"
    return DrainWait(namespace="fleet-local", name=name, node=node, since=began, undisturbed=undisturbed)


def blockers(view: FakeView, wait: Wait, table: Sequence[Row] = FINDERS) -> Sequence[Blocker]:
    return find_blockers(table, view, [wait], []).blockers


def reports(name: str, *words: str, node: str = "n1", status: str = "Unknown") -> dict[str, Any]:
    conditions = [{"type": f"C{index}", "status": status, "message": one} for index, one in enumerate(words)]
    return {"metadata": {"name": name}, "status": {"conditions": conditions, "nodeRef": {"name": node}}}


@pytest.fixture(autouse=True)
def _runs(view: FakeView) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": 1}}]


@pytest.mark.rule("blockers: a Rancher that does nothing is named with its Deployment or its conditions")
@pytest.mark.parametrize(
    ("deployments", "state", "remedy"),
    [
        row([], "does not exist", "Install it again: kubectl -n cattle-system get deploy", id="no Deployment"),
        row([{"status": {"availableReplicas": 0}}], "is not available", STATUS, id="no replica"),
        row([{"spec": {"replicas": 0}}], "is scaled to 0 replicas", remedy_text([SCALE]), id="scaled down"),
        row([{"status": {"availableReplicas": "1"}}], "is not available", STATUS, id="wrong type"),
    ],
)
def test_rancher_that_does_not_run_comes_first(view: FakeView, deployments: list[Any], state: str, remedy: str) -> None:
    view.found["Deployment"], view.found["Machine"] = deployments, [reports("m", "draining node")]
    (found,) = blockers(view, planner(view))
    assert (found.reason, found.kind, found.namespace, found.name) == (
        "RancherSilent",
        "Deployment",
        "cattle-system",
        "rancher",
    )
    assert found.message == f"Deployment cattle-system/rancher {state}; {NEXT}"
    assert found.remedy == remedy
    assert [one.resource.kind for one in view.read] == ["Deployment"]


def cluster_upgrade(view: FakeView, *, age: float = 600, ready: int = 1) -> JobWait:
    """Return the wait for a Job whose last step began so long ago."""
    reported = {ANNOTATION_PROGRESS: "4/19 wait-for-rancher", ANNOTATION_PROGRESS_TIME: view.time(age)}
    metadata = {"name": "j", "namespace": "ns", "creationTimestamp": view.time(900), "annotations": reported}
    job = {"metadata": metadata, "status": {"startTime": view.time(900), "ready": ready}}
    (wait,) = job_wait(JobState.of(job), work=Component.CLUSTER_UPGRADE, controllers=("rancher",))
    assert isinstance(wait, JobWait)
    return wait


def stopped(view: FakeView, age: float, **spec: int) -> dict[str, Any]:
    """Return a Deployment without an available replica, which became so at that age."""
    condition = {"type": "Available", "status": "False", "lastTransitionTime": view.time(age)}
    return {"spec": spec, "status": {"conditions": [condition]}}


@pytest.mark.rule("blockers: a Rancher that does not run is named while the cluster upgrade waits, with its remedy")
def test_cluster_upgrade_without_rancher_names_it(view: FakeView) -> None:
    view.found["Deployment"] = [{"spec": {"replicas": 0}}]
    (found,), (silent,) = blockers(view, cluster_upgrade(view)), blockers(view, planner(view))
    assert found == replace(
        silent,
        message="Deployment cattle-system/rancher is scaled to 0 replicas; Job ns/j needs it",
        remedies=(SCALE,),
    )


@pytest.mark.parametrize(
    ("age", "ready", "outage", "count"),
    [
        row(599, 1, 900, 0, id="a step of nearly ten minutes"),
        row(600, 0, 900, 0, id="without a Pod"),
        row(600, 1, 599, 0, id="Rancher is restarted"),
        row(600, 1, 600, 1, id="Rancher does not start"),
    ],
)
def test_cluster_upgrade_waits_for_rancher_at_first(
    view: FakeView, age: float, ready: int, outage: float, count: int
) -> None:
    view.found["Deployment"] = [stopped(view, outage, replicas=1)]
    assert len(blockers(view, cluster_upgrade(view, age=age, ready=ready))) == count


def test_cluster_upgrade_with_rancher_has_no_blocker(view: FakeView) -> None:
    assert blockers(view, cluster_upgrade(view)) == []


@pytest.mark.rule("blockers: nodes that Rancher does not drain are one blocker, at once if Rancher has passed them")
@pytest.mark.parametrize(
    ("replicas", "reason", "kind"),
    [row(1, "HookLost", "Cluster", id="Rancher runs"), row(0, "RancherSilent", "Deployment", id="Rancher is down")],
)
def test_lost_hooks_are_rancher_s_outage_first(view: FakeView, replicas: int, reason: str, kind: str) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": replicas}}]
    wait = LostHookWait(
        namespace="fleet-local", name="local", since=view.ago(700), detail="n1: lost", remedies=(Remedy("raise it"),)
    )
    (found,) = blockers(view, wait)
    assert (found.reason, found.kind) == (reason, kind)
    assert (found.remedy == "raise it") is (reason == "HookLost")


@pytest.mark.rule("blockers: a Rancher that does nothing is named with its Deployment or its conditions")
@pytest.mark.parametrize(
    ("cluster", "machines", "words"),
    [
        row([], [], SILENT, id="no objects"),
        row([reports("local", "ok", status="True")], [reports("m", "ok", status="True")], SILENT, id="all is well"),
        row([{"metadata": {"name": "local"}, "status": [1]}], [{}], SILENT, id="wrong types"),
        row([reports("local", "probes")], [], "it reports Cluster local: C0: probes", id="cluster"),
        row(
            [reports("local", "a", "a")],
            [reports("y", "b", status="False"), reports("x", "a", "c", node="n2")],
            "it reports Cluster local: C0: a; Machine x: C1: c; Machine y: C0: b",
            id="the same words once",
        ),
        row(
            [],
            [reports(f"m{index}", f"w{index}") for index in range(5)],
            "it reports Machine m0: C0: w0; Machine m1: C0: w1; Machine m2: C0: w2; and 2 more conditions",
            id="some of many",
        ),
    ],
)
def test_planner_that_is_silent(view: FakeView, cluster: list[Any], machines: list[Any], words: str) -> None:
    view.found["Cluster"], view.found["Machine"] = cluster, machines
    assert blockers(view, planner(view, age=599)) == []
    (found,) = blockers(view, planner(view))
    assert (found.reason, found.kind, found.namespace, found.name, found.node) == (
        "RancherSilent",
        "Cluster",
        "fleet-local",
        "local",
        "",
    )
    assert (found.message, found.remedy) == (f"{NEXT_NODE}{' ' if words == SILENT else '; '}{words}", LOGS)
    assert found.since == view.ago(600)


@pytest.mark.parametrize(
    ("age", "count"), [row(599, 0, id="it has just started"), row(600, 1, id="it has had its time")]
)
def test_rancher_has_its_time_after_a_start(view: FakeView, age: float, count: int) -> None:
    available = {"type": "Available", "status": "True", "lastTransitionTime": view.time(age)}
    view.found["Deployment"] = [{"status": {"availableReplicas": 1, "conditions": [available]}}]
    assert len(blockers(view, planner(view, age=9000))) == count


def test_wait_without_words_is_described(view: FakeView) -> None:
    (found,) = blockers(view, planner(view, detail=""))
    assert found.message == f"{NEXT_NODE} {SILENT}"


def test_drain_names_the_machine_of_its_node(view: FakeView) -> None:
    view.found["Machine"] = [reports("m2", "other", node="n2"), reports("m1", "draining node")]
    (found,) = blockers(view, drain(view))
    assert (found.reason, found.kind, found.name, found.node) == ("RancherSilent", "Secret", "m-machine-plan", "n1")
    assert found.message == (
        "Secret fleet-local/m-machine-plan: Rancher has not continued with node n1 for over 10 min; it reports Machine "
        "m1: C0: draining node"
    )


@pytest.mark.parametrize(("disturbed", "age", "count"), [(0, 599, 0), (0, 600, 1), (900, 599, 0), (900, 600, 1)])
def test_drain_is_overdue_after_its_usual_time(view: FakeView, disturbed: float, age: float, count: int) -> None:
    assert len(blockers(view, drain(view, age=age, disturbed=disturbed))) == count


def test_rancher_is_not_blamed_for_a_drain_that_a_pod_holds_up(view: FakeView) -> None:
    deleted = {"name": "p", "namespace": "ns", "deletionTimestamp": view.time(400)}
    view.found["Pod"] = [{"metadata": deleted}]
    assert [one.reason for one in blockers(view, drain(view), ALL)] == ["DrainFailing"]
    view.found["Pod"] = []
    assert [one.reason for one in blockers(view, drain(view), ALL)] == ["RancherSilent"]


def test_drained_node_waits_for_rancher(view: FakeView) -> None:
    deleted = {"name": "p", "namespace": "ns", "deletionTimestamp": view.time(400)}
    view.found["Pod"] = [{"metadata": deleted}]
    assert [one.reason for one in blockers(view, replace(drain(view), is_drained=True), ALL)] == ["RancherSilent"]


def test_unreadable_pods_are_reported_once(view: FakeView) -> None:
    view.errors["Pod"] = "list pods: 403 Forbidden"
    (found,) = blockers(view, drain(view), ALL)
    assert (found.reason, found.message) == (
        "DrainFailing",
        (
            "Secret fleet-local/m-machine-plan: the upgrade waits for it too long, "
            "and the manager cannot read the reason: list pods: 403 Forbidden"
        ),
    )
