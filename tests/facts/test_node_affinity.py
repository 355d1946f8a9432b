"""Node affinity, as kube-scheduler evaluates it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.actors.placement import fits_node
from tests.support.cluster.cluster_reader import named
from upgrade_manager.facts.node_affinity import NodeSet
from upgrade_manager.kube.objects import Object

NODES = [
    named("n1", labels={"zone": "a", "cores": "8"}),
    named("n2", labels={"zone": "b", "cores": "16"}),
    named("n3", labels={"zone": "b", "cores": "many", "gpu": ""}),
]
ALL = {"n1", "n2", "n3"}


def names(found: int) -> set[str]:
    return {node["metadata"]["name"] for index, node in enumerate(NODES) if found >> index & 1}


def matching(*terms: Any) -> set[str]:
    return names(NodeSet(NODES).matching({"nodeSelectorTerms": list(terms)}))


def by(operator: Any, key: Any, *values: Any) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*expressions: Any) -> Object:
    return {"matchExpressions": list(expressions)}


def field(*expressions: Any) -> Object:
    return {"matchFields": list(expressions)}


@pytest.mark.rule("admission: node affinity is evaluated as by kube-scheduler")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(by("In", "zone", "b", "c"), {"n2", "n3"}, id="In"),
        pytest.param(by("In", "zone"), set(), id="In nothing"),
        pytest.param(by("In", "absent", "a"), set(), id="In of an absent label"),
        pytest.param(by("NotIn", "zone", "b"), {"n1"}, id="NotIn"),
        pytest.param(by("NotIn", "gpu", "x"), ALL, id="NotIn of an absent label"),
        pytest.param(by("NotIn", "zone"), set(), id="NotIn nothing"),
        pytest.param(by("Exists", "gpu"), {"n3"}, id="Exists"),
        pytest.param(by("Exists", "gpu", "x"), set(), id="Exists with a value"),
        pytest.param(by("DoesNotExist", "gpu"), {"n1", "n2"}, id="DoesNotExist"),
        pytest.param(by("DoesNotExist", "gpu", "x"), set(), id="DoesNotExist with a value"),
        pytest.param(by("Gt", "cores", "8"), {"n2"}, id="Gt"),
        pytest.param(by("Lt", "cores", "16"), {"n1"}, id="Lt"),
        pytest.param(by("Lt", "cores", "1_6"), set(), id="Lt of a number that Go does not read"),
        pytest.param(by("Gt", "cores", "-9223372036854775809"), set(), id="Gt of more than 64 bits"),
        pytest.param(by("Gt", "cores", "1", "2"), set(), id="Gt of two values"),
        pytest.param(by("Gt", "cores", "+8"), {"n2"}, id="Gt with a sign"),
        pytest.param(by("in", "zone", "a"), set(), id="unknown operator"),
        pytest.param(by(None, None), set(), id="null"),
        pytest.param(by("In", "zone", None, ["a"], 1), set(), id="values of wrong types"),
        pytest.param({"key": "gpu", "operator": "Exists", "values": None}, {"n3"}, id="null values"),
        pytest.param("zone", set(), id="not an object"),
    ],
)
def test_expressions(expression: Any, expected: set[str]) -> None:
    assert matching(labels(expression)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(by("In", "metadata.name", "n2"), {"n2"}, id="In"),
        pytest.param(by("In", "metadata.name", "x"), set(), id="In of an absent node"),
        pytest.param(by("NotIn", "metadata.name", "n2"), {"n1", "n3"}, id="NotIn"),
        pytest.param(by("In", "metadata.name", "n1", "n2"), set(), id="two names"),
        pytest.param(by("Exists", "metadata.name"), set(), id="Exists"),
        pytest.param(by("In", "metadata.uid", "n2"), set(), id="another field"),
        pytest.param(by("NotIn", "metadata.uid", "n2"), ALL, id="not another field"),
    ],
)
def test_fields(expression: Any, expected: set[str]) -> None:
    assert matching(field(expression)) == expected


def test_terms_are_ored_and_requirements_anded() -> None:
    b, gpu, n1 = by("In", "zone", "b"), by("Exists", "gpu"), by("In", "metadata.name", "n1")
    assert matching(labels(b, gpu)) == {"n3"}
    assert matching(labels(b, gpu), field(n1)) == {"n1", "n3"}
    assert matching({**labels(b), **field(n1)}) == set()
    assert matching() == matching({}) == matching(labels(), None) == set()
    assert matching({}, labels(gpu)) == {"n3"}


def test_nodes_without_one() -> None:
    nodes = NodeSet(NODES)
    assert names(nodes.without("n2")) == {"n1", "n3"}
    assert names(nodes.without("x")) == ALL
    assert NodeSet([]).without("x") == 0


WORDS = st.sampled_from(["a", "b", "c", "gpu", "zone"])
EXPRESSIONS = st.builds(by, st.sampled_from(["In", "NotIn"]), WORDS, WORDS, WORDS) | st.builds(
    by, st.sampled_from(["Exists", "DoesNotExist"]), WORDS
)
TERMS = st.lists(st.builds(lambda expressions: labels(*expressions), st.lists(EXPRESSIONS, max_size=3)), max_size=3)


@pytest.mark.rule("admission: node affinity is evaluated as by kube-scheduler")
@given(TERMS, st.lists(st.dictionaries(WORDS, WORDS), max_size=5))
def test_result_equals_that_of_the_simulated_scheduler(terms: list[Object], given_labels: list[dict[str, str]]) -> None:
    nodes = [named(f"n{index}", labels=one) for index, one in enumerate(given_labels)]
    required = {"nodeSelectorTerms": terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    expected = [fits_node({"spec": {"affinity": affinity}}, node) for node in nodes]
    found = NodeSet(nodes).matching(required)
    assert [bool(found >> index & 1) for index in range(len(nodes))] == expected
