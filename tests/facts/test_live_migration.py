"""Harvester's rule for VMs that cannot be live-migrated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import named, node
from tests.support.cluster.instances import GPU, WITNESS, affinity, instance, zone
from upgrade_manager.facts.live_migration import MigrationTargets

SELECTOR = "it has a node selector"
DEVICES = "it uses host devices"
NO_NODE = "no other node is schedulable"
NO_MATCH = "no other schedulable node matches its node affinity"
SINGLE = "the cluster has no second node for VMs"
NO_WITNESS: dict[str, Any] = dict.fromkeys(WITNESS, "false")
TWO = [node("n1", zone="a"), node("n2", zone="b")]


@pytest.mark.parametrize(
    ("nodes", "one", "problem"),
    [
        pytest.param(TWO, instance(), "", id="no constraint"),
        pytest.param(TWO, instance({"nodeSelector": {"zone": "b"}}), SELECTOR, id="node selector"),
        pytest.param(TWO, instance({"nodeSelector": {}}), SELECTOR, id="empty node selector"),
        pytest.param(TWO, instance({"nodeSelector": None}), "", id="null node selector"),
        pytest.param(TWO, instance(hostDevices=[GPU]), DEVICES, id="host device"),
        pytest.param(TWO, instance(hostDevices=[]), DEVICES, id="empty host devices"),
        pytest.param(TWO, instance(hostDevices=None, gpus=[GPU]), "", id="virtual GPU"),
        pytest.param(TWO, instance({"nodeSelector": {}}, hostDevices=[]), SELECTOR, id="selector before devices"),
        pytest.param(TWO, instance(affinity(zone("b"))), "", id="affinity to another node"),
        pytest.param(TWO, instance(affinity(zone("a"))), NO_MATCH, id="affinity to its node"),
        pytest.param(TWO, instance(affinity(zone("a")), on="n2"), "", id="affinity to a node it is not on"),
        pytest.param(TWO, instance(affinity(zone("a"), zone("b"))), "", id="one of two terms"),
        pytest.param(TWO, instance(affinity()), NO_MATCH, id="affinity without terms"),
        pytest.param(TWO, instance(affinity(None, {"matchExpressions": None})), NO_MATCH, id="null terms"),
        pytest.param([TWO[0], node("n2", cordoned=True)], instance(), NO_NODE, id="other node is cordoned"),
        pytest.param([TWO[0], node("n2", cordoned=True)], instance(on=""), "", id="not scheduled"),
        pytest.param(
            [TWO[0], node("n2", zone="b", cordoned=True), node("n3", zone="a")],
            instance(affinity(zone("b"))),
            NO_MATCH,
            id="matching node is cordoned",
        ),
        pytest.param(
            [TWO[0], node("n2", zone="a", **WITNESS), node("n3", zone="b")],
            instance(affinity(zone("a"))),
            NO_MATCH,
            id="matching node is a witness",
        ),
        pytest.param([TWO[0], node("n2", **WITNESS)], instance(), SINGLE, id="one node and a witness"),
        pytest.param([TWO[0], node("n2", **NO_WITNESS)], instance(), SINGLE, id="witness label of any value"),
        pytest.param([TWO[0]], instance(), SINGLE, id="one node"),
        pytest.param(TWO, named("db", "default"), "", id="no fields"),
        pytest.param(TWO, named("db", "default", spec=None, status=None), "", id="null fields"),
        pytest.param(TWO, named("db", "default", spec=[], status="Running"), "", id="wrong types"),
        pytest.param(TWO, instance({"affinity": []}), "", id="affinity of a wrong type"),
        pytest.param(TWO, instance({"nodeSelector": "a=b"}), "", id="node selector of a wrong type"),
        pytest.param([named("n1", labels=None), named("n2", spec=None)], instance(), "", id="nodes without fields"),
    ],
)
def test_problem(nodes: list[Any], one: Any, problem: str) -> None:
    assert MigrationTargets(nodes).problem(one) == problem


def test_equal_affinities_of_instances_on_different_nodes() -> None:
    targets = MigrationTargets(TWO)
    found = [targets.problem(instance(affinity(zone("b")), on=name)) for name in ("n1", "n2", "n1")]
    assert found == ["", NO_MATCH, ""]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running", "Pending", "", "Unknown"])
def test_ended_instances_are_left_out(phase: str) -> None:
    one = instance(hostDevices=[GPU], phase=phase)
    ended = phase in {"Succeeded", "Failed"}
    assert list(MigrationTargets(TWO).problems([instance(), one])) == ([] if ended else [(one, DEVICES)])
