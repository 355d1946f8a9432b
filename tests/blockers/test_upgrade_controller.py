from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.upgrade_controller import FINDERS
from upgrade_manager.blockers.wait import PlanWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
DEPLOYMENT = "Deployment cattle-system/system-upgrade-controller"
LOGS = "kubectl -n cattle-system logs deploy/system-upgrade-controller --tail=100 --timestamps"
STATUS = (
    "(1) Watch it: kubectl -n cattle-system rollout status deploy/system-upgrade-controller --timeout=30s "
    "(2) Show the events of its Pods: kubectl describe pods -n cattle-system "
    "(3) If they run but are not ready, restart them: "
    "kubectl -n cattle-system rollout restart deploy/system-upgrade-controller"
)
RESTART = "kubectl -n cattle-system rollout restart deploy/system-upgrade-controller"
INSTALL = "Install it again: kubectl -n cattle-system get deploy"
_SCALE = "kubectl -n cattle-system scale deploy/system-upgrade-controller --replicas"
SCALE = f"Start it: {_SCALE}=1"
AGAIN = f"Restart it: {RESTART}"
HANGS = f"(1) Show its log: {LOGS} (2) If its last line is older than a minute, it hangs: {RESTART}"
REFUSED = "the API server refuses its Jobs"
TRIAL = (
    "(1) Let the API server report the reason (this creates no Job): "
    "kubectl create job -n cattle-system trial --image=trial --dry-run=server "
    "(2) Repair the component that refuses the Job; list the webhooks: kubectl get validatingwebhookconfigurations,"
    "mutatingwebhookconfigurations -o 'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'"
)
LABEL = "plan.upgrade.cattle.io/p"
CORRECT = "Correct the label: kubectl label --overwrite node n1 kubernetes.io/hostname=n1"
MANAGED = {"matchLabels": {"harvesterhci.io/managed": "true"}}
EVENT = {"involvedObject": {"name": "p"}, "message": "jobs.batch is forbidden"}


def node(name: str, **labels: str) -> dict[str, Any]:
    head = {"harvesterhci.io/managed": "true", "kubernetes.io/hostname": name}
    return {"metadata": {"name": name, "labels": {**head, **labels}}}


def plan(*, selector: object = MANAGED, **status: Any) -> dict[str, Any]:
    resolved = [{"type": "Complete", "status": "False", "reason": "Resolved"}]
    return {"spec": {"nodeSelector": selector}, "status": {"conditions": resolved, "latestHash": "abc", **status}}


def repeated(**fields: Any) -> dict[str, Any]:
    return {"involvedObject": {"name": "p"}, "reason": "SyncJob", "type": "Normal", "count": 2, **fields}


def labelled(name: str, value: str = "abc", **labels: str) -> dict[str, Any]:
    return node(name, **{LABEL: value}, **labels)


def blockers(view: FakeView, *, age: float = 60, detail: str = "") -> Sequence[Blocker]:
    since = view.ago(age)
    wait = PlanWait(namespace="cattle-system", name="p", since=since, detail=detail)
    return find_blockers(FINDERS, view, [wait], []).blockers


@pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
@pytest.mark.parametrize(
    ("deployment", "detail", "events", "message", "remedy"),
    [
        row([], "", [EVENT], f"{DEPLOYMENT} does not exist; Plan p is not processed", INSTALL, id="no controller"),
        row([{}], "", [], f"{DEPLOYMENT} is not available; Plan p is not processed", STATUS, id="without status"),
        row([0], "", [], f"{DEPLOYMENT} is not available; Plan p is not processed", STATUS, id="not available"),
        row([None], "", [], f"{DEPLOYMENT} is scaled to 0 replicas; Plan p is not processed", SCALE, id="scaled down"),
        row(
            [1],
            "plan is not valid",
            [EVENT],
            "Plan cattle-system/p is not processed (plan is not valid)",
            f"Show its log: {LOGS}",
            id="says why",
        ),
        row(
            [1],
            "",
            [EVENT],
            "Plan cattle-system/p is not processed (jobs.batch is forbidden)",
            f"Show its log: {LOGS}",
            id="event",
        ),
        row(
            [1],
            "",
            [],
            "Plan cattle-system/p is not processed (the controller does not report why)",
            HANGS,
            id="silent",
        ),
    ],
)
def test_silent_controller(
    view: FakeView, deployment: list[Any], detail: str, events: list[Any], message: str, remedy: str
) -> None:
    view.found["Deployment"] = [
        {"spec": {"replicas": 0}} if one is None else {"status": {"availableReplicas": one} if one != {} else one}
        for one in deployment
    ]
    view.found["Event"], view.found["Plan"], view.found["Node"] = events, [plan()], [node("n1")]
    assert blockers(view, age=59) == []
    (found,) = blockers(view, detail=detail)
    assert (found.reason, found.message, found.remedy) == ("UpgradeControllerSilent", message, remedy)
    about = "Plan cattle-system/p" if message.startswith("Plan") else DEPLOYMENT
    assert f"{found.kind} {found.namespace}/{found.name}" == about


@pytest.mark.rule(
    "blockers: a system-upgrade-controller that does nothing is named with the cause that it does not report"
)
@pytest.mark.parametrize(
    ("plans", "nodes", "words", "remedy"),
    [
        row([], [node("n1")], "the controller has set no condition", AGAIN, id="no Plan"),
        row(
            [{"status": {}}],
            [node("n1")],
            "the controller has set no condition",
            f"Restart it: {RESTART}",
            id="without status",
        ),
        row(
            [plan(selector={"matchLabels": {"x": "y"}})],
            [node("n3"), node("n1", x="y"), node("n2")],
            "its nodeSelector does not match n2, n3",
            "Delete the Plan, which is created again: kubectl delete plans.upgrade.cattle.io -n cattle-system p",
            id="selector",
        ),
        row(
            [plan(selector=None)],
            [node("n1")],
            "its nodeSelector does not match n1",
            "Delete the Plan, which is created again: kubectl delete plans.upgrade.cattle.io -n cattle-system p",
            id="no selector",
        ),
        row(
            [plan()],
            [labelled("n1"), labelled("n2")],
            f"all nodes have its label {LABEL} already, perhaps of an earlier Plan of its name",
            f"Remove the label: kubectl label nodes -l harvesterhci.io/managed=true {LABEL}-",
            id="stale labels",
        ),
        row([plan()], [labelled("n1"), node("n2")], "the controller does not report why", HANGS, id="one is done"),
        row(
            [plan()],
            [labelled("n1", "other")],
            "the controller does not report why",
            HANGS,
            id="label of another version",
        ),
    ],
)
def test_controller_that_reports_nothing(
    view: FakeView, plans: list[Any], nodes: list[Any], words: str, remedy: str
) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": 1}}]
    view.found["Plan"], view.found["Node"] = plans, nodes
    (found,) = blockers(view)
    assert (found.kind, found.name, found.node) == ("Plan", "p", "")
    assert (found.message, found.remedy) == (f"Plan cattle-system/p is not processed ({words})", remedy)


@pytest.mark.rule(
    "blockers: a system-upgrade-controller that does nothing is named with the cause that it does not report"
)
@pytest.mark.parametrize(
    ("owner", "count"),
    [row("u1", 0, id="a watch of the manager is behind"), row("u0", 1, id="Jobs of an earlier Plan")],
)
def test_controller_whose_jobs_exist_is_not_silent(view: FakeView, owner: str, count: int) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": 1}}]
    view.found["Plan"], view.found["Node"] = [{**plan(), "metadata": {"uid": "u1"}}], [labelled("n1"), labelled("n2")]
    view.found["Job"] = [{"metadata": {"ownerReferences": [{"uid": owner, "controller": True}]}}]
    assert len(blockers(view)) == count
    assert "upgrade.cattle.io/plan=p" in {one.label_selector for one in view.read if one.resource.kind == "Job"}


@pytest.mark.parametrize(
    ("events", "applying", "words"),
    [
        row([repeated()], None, REFUSED, id="repeated"),
        row([repeated(count=1)], None, "the controller does not report why", id="once"),
        row([repeated(involvedObject={"name": "q"})], None, "the controller does not report why", id="another Plan"),
        row([repeated(count="2", message=None)], None, "the controller does not report why", id="wrong types"),
        row([repeated()], ["n1"], "the controller does not report why", id="its Jobs exist"),
    ],
)
def test_refused_jobs_show_in_repeated_events(view: FakeView, events: list[Any], applying: object, words: str) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": 1}}]
    view.found["Plan"], view.found["Node"] = [plan(applying=applying)], [node("n1")]
    # The view does not select.
    view.found["Event"] = [{**event, "reason": ""} for event in events]
    (found,) = blockers(view)
    assert found.message == f"Plan cattle-system/p is not processed ({words})"
    assert found.remedy == (TRIAL if words == REFUSED else HANGS)
    read = {(one.resource.kind, one.namespace, one.field_selector) for one in view.read if one.namespace}
    assert read - {("Deployment", "cattle-system", "metadata.name=system-upgrade-controller")} == {
        ("Plan", "cattle-system", "metadata.name=p"),
        ("Event", "cattle-system", "involvedObject.kind=Plan,type=Warning"),
        *([] if applying else [("Event", "cattle-system", "involvedObject.kind=Plan,reason=SyncJob")]),
    }


@pytest.mark.rule(
    "blockers: a system-upgrade-controller that does nothing is named with the cause that it does not report"
)
@pytest.mark.parametrize(
    ("found", "message", "remedy"),
    [
        row(
            node("n1", **{"kubernetes.io/hostname": "other"}),
            'label kubernetes.io/hostname is "other", but the system-upgrade-controller requires the node\'s name',
            CORRECT,
            id="hostname",
        ),
        row(
            {"metadata": {"name": "n1"}},
            'label kubernetes.io/hostname is "", but the system-upgrade-controller requires the node\'s name',
            CORRECT,
            id="no labels",
        ),
        row(
            labelled("n1", "disabled"),
            f"label {LABEL}=disabled excludes it from Plan cattle-system/p",
            f"(1) Remove the label: kubectl label node n1 {LABEL}- "
            f"(2) Undo it after the upgrade: kubectl label node n1 {LABEL}=disabled",
            id="disabled",
        ),
    ],
)
def test_node_that_the_controller_ignores_is_named(
    view: FakeView, found: dict[str, Any], message: str, remedy: str
) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": 1}}]
    view.found["Plan"], view.found["Node"] = [plan()], [found, node("n2")]
    (blocker,) = blockers(view)
    assert (blocker.kind, blocker.namespace, blocker.name, blocker.node) == ("Node", "", "n1", "n1")
    assert (blocker.message, blocker.remedy) == (f"Node n1: {message}", remedy)


@pytest.mark.parametrize(("age", "count"), [row(59, 0, id="it has just started"), row(60, 1, id="it has had its time")])
def test_controller_has_its_time_after_a_start(view: FakeView, age: float, count: int) -> None:
    available = {"type": "Available", "status": "True", "lastTransitionTime": view.time(age)}
    view.found["Deployment"] = [{"status": {"availableReplicas": 1, "conditions": [available]}}]
    assert len(blockers(view, age=9000)) == count


def test_hostile_words_become_one_short_line(view: FakeView) -> None:
    view.found["Deployment"], view.found["Node"] = [{"status": {"availableReplicas": 1}}], [node("n1")]
    (found,) = blockers(view, detail="a\x1b\n" + "b" * 1_000_000)
    assert len(found.message) < 400
    assert found.message.isprintable()
