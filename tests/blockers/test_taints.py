from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK
from upgrade_manager.blockers.object_view import NotSynced
from upgrade_manager.blockers.taints import taint_words, untaint_steps
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from tests.blockers.conftest import FakeView

row = pytest.param
TAINT = {"key": "a/b", "value": "v", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
DOWN = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
REMOVE = "Remove the taint of node n1: kubectl taint node n1 a/b:NoSchedule-"


def node(name: str, *taints: object, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [*taints]}}


def pod(*tolerations: object, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"tolerations": [*tolerations], **spec}}


def affinity(*terms: object) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return {"affinity": {"nodeAffinity": required}}


def term(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        row([node("n1", TAINT)], [REMOVE], id="one node"),
        row([node("n1"), {"metadata": {"name": "n2"}}], [], id="no taints"),
        row([node("n1", None, {"key": "x"}, {"key": "y", "effect": "PreferNoSchedule"})], [], id="keeps no Pod"),
        row([node("n1", CORDON)], ["Uncordon node n1: kubectl uncordon n1"], id="cordoned"),
        row(
            [node("n1", DOWN)],
            ["Remove the cause of taint node.kubernetes.io/unreachable of node n1: kubectl describe node n1"],
            id="by Kubernetes itself",
        ),
        row(
            [node("n2", CORDON, TAINT), node("n1", TAINT), node("n3", DOWN)],
            [
                "Remove the taint of 2 nodes: kubectl taint node n1 n2 a/b:NoSchedule-",
                "Remove the cause of taint node.kubernetes.io/unreachable of node n3: kubectl describe node n3",
            ],
            id="the most frequent first",
        ),
        row(
            [node(f"n{number}", TAINT) for number in range(6)],
            ["Remove the taint of 6 nodes: kubectl taint node --all a/b:NoSchedule-"],
            id="many nodes",
        ),
    ],
)
def test_taints_are_removed(view: FakeView, nodes: list[Any], found: list[str]) -> None:
    view.found["Node"] = nodes
    assert [*map(str, untaint_steps(view, pod()))] == found


@pytest.mark.parametrize(
    ("taint", "undo"),
    [
        row(TAINT, "kubectl taint node n1 a/b=v:NoSchedule", id="taint"),
        row({"key": "a/b", "effect": "NoExecute"}, "kubectl taint node n1 a/b:NoExecute", id="without a value"),
        row(CORDON, "kubectl cordon n1", id="cordon"),
        row(DOWN, "", id="by Kubernetes itself"),
    ],
)
def test_removed_taint_is_given_back(view: FakeView, taint: dict[str, str], undo: str) -> None:
    view.found["Node"] = [node("n1", taint)]
    (step,) = untaint_steps(view, pod())
    assert step.undo == undo


DRAIN = {"key": "kubevirt.io/drain", "effect": "NoSchedule"}
OPTIONS = json.dumps({"preDrainHooks": [{"annotation": ANNOTATION_PRE_HOOK}]})
STAYS = "Do not uncordon n1: its drain has begun, and the end of its upgrade uncordons it"


def drained(view: FakeView, *nodes: str) -> None:
    """Let Rancher wait for a manager at these nodes, perhaps since an earlier plan."""
    for node in nodes:
        reference = {"kind": "Node", "name": node}
        view.found["Machine"] += [{"metadata": {"name": node}, "status": {"nodeRef": reference}}]
        labels = {"rke.cattle.io/machine-name": node}
        annotations = dict.fromkeys(("rke.cattle.io/drain-options", "rke.cattle.io/pre-drain"), OPTIONS)
        metadata = {"name": f"{node}-plan", "namespace": "fleet-local", "labels": labels, "annotations": annotations}
        view.found["Secret"] += [{"metadata": metadata}]


@pytest.mark.rule("blockers: no remedy uncordons a node whose drain has begun")
@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        row([node("n1", CORDON)], [STAYS], id="cordoned"),
        row([node("n1", CORDON, DRAIN)], [STAYS], id="KubeVirt's taint"),
        row([node("n1", CORDON, TAINT)], [STAYS, REMOVE], id="another taint"),
        row(
            [node("n1", CORDON), node("n2", CORDON)],
            [STAYS, "Uncordon node n2: kubectl uncordon n2"],
            id="another node",
        ),
        row(
            [node(f"n{number}", DRAIN) for number in range(1, 8)],
            [STAYS, "Remove the taint of 6 nodes: kubectl taint node n2 n3 n4 n5 n6 n7 kubevirt.io/drain:NoSchedule-"],
            id="many nodes",
        ),
    ],
)
def test_node_with_a_drain_keeps_its_taints(view: FakeView, nodes: list[Any], found: list[str]) -> None:
    view.found["Node"] = nodes
    drained(view, "n1")
    assert [*map(str, untaint_steps(view, pod()))] == found


@pytest.mark.rule("blockers: no remedy uncordons a node whose drain has begun")
def test_several_nodes_with_drains_are_named(view: FakeView) -> None:
    view.found["Node"] = [node("n1", CORDON), node("n2", CORDON)]
    drained(view, "n1", "n2")
    (step,) = untaint_steps(view, pod())
    assert step.text == "Do not uncordon n1, n2: their drain has begun, and the end of their upgrade uncordons them"
    assert (step.command, step.changes) == ("", ())


@pytest.mark.rule("blockers: no remedy uncordons a node whose drain has begun")
def test_unknown_drains_leave_a_cordon(view: FakeView) -> None:
    view.found["Node"] = [node("n1", CORDON)]
    view.errors[SECRETS.kind] = "no rights"
    assert untaint_steps(view, pod()) == []


def test_only_nodes_that_the_pod_may_have_are_untainted(view: FakeView) -> None:
    view.found["Node"] = [node("n9", TAINT)] + [node(f"n{number}", TAINT, a="b") for number in range(6)]
    (step,) = untaint_steps(view, pod(nodeSelector={"a": "b"}))
    assert str(step) == "Remove the taint of 6 nodes: kubectl taint node n0 n1 n2 n3 n4 n5 a/b:NoSchedule-"


@pytest.mark.parametrize(
    ("toleration", "found"),
    [
        row({"operator": "Exists"}, [], id="everything"),
        row({"operator": "Exists", "effect": "NoSchedule"}, [], id="the effect"),
        row({"operator": "Exists", "effect": "NoExecute"}, [REMOVE], id="another effect"),
        row({"key": "a/b", "operator": "Exists"}, [], id="the key"),
        row({"key": "c", "operator": "Exists"}, [REMOVE], id="another key"),
        row({"key": "a/b", "value": "v"}, [], id="the value"),
        row({"key": "a/b", "operator": "Equal", "value": "w"}, [REMOVE], id="another value"),
        row({"value": "v"}, [REMOVE], id="no key"),
        row("x", [REMOVE], id="wrong type"),
    ],
)
def test_tolerated_taints_do_not_matter(view: FakeView, toleration: object, found: list[str]) -> None:
    view.found["Node"] = [node("n1", TAINT)]
    assert [*map(str, untaint_steps(view, pod(toleration)))] == found


@pytest.mark.parametrize(
    ("spec", "field_selector", "found"),
    [
        row({"nodeSelector": {"a": "b"}}, "", [REMOVE], id="selector"),
        row({"nodeSelector": {"a": "c"}}, "", [], id="another selector"),
        row(affinity(term("a", "c"), term("a", "b")), "", [REMOVE], id="one of two terms"),
        row(affinity(term("a", "b", operator="NotIn")), "", [], id="another term"),
        row({"affinity": {"nodeAffinity": 1}}, "", [REMOVE], id="wrong type"),
        row({"nodeSelector": {"kubernetes.io/hostname": "n1"}}, "metadata.name=n1", [REMOVE], id="hostname"),
        row(affinity(term("kubernetes.io/hostname", "n1")), "metadata.name=n1", [REMOVE], id="hostname of a term"),
        row(affinity(term("kubernetes.io/hostname", "n1", "n2")), "", [REMOVE], id="several hostnames"),
        row(affinity(term("kubernetes.io/hostname", "n2", operator="NotIn")), "", [REMOVE], id="not on a hostname"),
    ],
)
def test_only_nodes_that_the_pod_may_have(
    view: FakeView, spec: dict[str, Any], field_selector: str, found: list[str]
) -> None:
    view.found["Node"] = [node("n1", TAINT, a="b", **{"kubernetes.io/hostname": "n1"})]
    assert [*map(str, untaint_steps(view, pod(**spec)))] == found
    assert [one.field_selector for one in view.read] == [field_selector]


def test_nodes_that_cannot_be_read_are_left_out(view: FakeView) -> None:
    view.errors["Node"] = "no rights"
    assert untaint_steps(view, pod()) == []
    view.errors["Node"] = ""
    with pytest.raises(NotSynced):
        untaint_steps(view, pod())


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        row([node("n1", TAINT), node("n2", TAINT)], "taint a/b", id="one"),
        row([node("n1", TAINT), node("n2", DOWN)], "taints a/b, node.kubernetes.io/unreachable", id="several"),
        row([node("n1", TAINT), node("n2")], "", id="a node without taints"),
        row([], "", id="no node"),
    ],
)
def test_taints_are_the_reason_only_on_all_nodes(view: FakeView, nodes: list[dict[str, Any]], words: str) -> None:
    view.found["Node"] = nodes
    assert taint_words(view, pod()) == words
