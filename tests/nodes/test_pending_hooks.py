"""Why the node upgrade does not end although every node is done: which of Rancher's questions is still there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from upgrade_manager.nodes.pending_hooks import still_there

ASKED, ANSWER = "rke.cattle.io/post-drain", "management.harvesterhci.io/post-hook"
QUESTION = json.dumps({"postDrainHooks": [{"annotation": ANSWER}]})
GONE_ON = ", answered: Rancher to remove it when it has uncordoned the node"
OLD = ", left by an earlier upgrade and not answered: to be removed by hand"
FOREIGN = f" that does not ask for {ANSWER}: whoever set it has to answer or to remove it"
UNMANAGED = ", not answered because the node is gone or lacks harvesterhci.io/managed=true: to be removed by hand"


def secret(name: str, machine: str, **annotations: str) -> dict[str, Any]:
    labels = {"rke.cattle.io/machine-name": machine} if machine else {}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}}


def machine(node: str) -> dict[str, Any]:
    return {"metadata": {}, "status": {"nodeRef": {"name": node}} if node else {}}


MACHINES = {f"m-{node}": machine(node) for node in ("n1", "n2", "n3")} | {"unborn": machine("")}


@pytest.mark.rule(
    "nodes: the phase waits until no Secret has a post-drain hook",
    "nodes: a post-drain hook that delays the phase is reported with node, Secret, state and next step",
)
@pytest.mark.parametrize(
    ("annotations", "machine_name", "is_driven", "awaited"),
    [
        pytest.param({ASKED: QUESTION, ANSWER: QUESTION}, "m-n1", True, GONE_ON, id="answered: Rancher's turn"),
        pytest.param({ASKED: QUESTION}, "m-n1", True, GONE_ON, id="answered in this very look"),
        pytest.param({ASKED: QUESTION, ANSWER: QUESTION}, "m-n3", True, GONE_ON, id="answered, and its node has left"),
        pytest.param({ASKED: QUESTION, ANSWER: QUESTION}, "m-n1", False, GONE_ON, id="answered by an earlier upgrade"),
        pytest.param({ASKED: QUESTION}, "m-n1", False, OLD, id="stale, on an only node"),
        pytest.param({ASKED: QUESTION, ANSWER: "{}"}, "m-n1", False, OLD, id="stale, with a staler answer"),
        pytest.param({ASKED: QUESTION}, "m-n3", True, UNMANAGED, id="of a node that has left"),
        pytest.param({ASKED: "{}"}, "m-n1", True, FOREIGN, id="somebody else is asked"),
        pytest.param({ASKED: ""}, "m-n1", True, FOREIGN, id="empty, as good as asked"),
        pytest.param({ASKED: "x", ANSWER: "x"}, "m-n1", False, FOREIGN, id="our answer to somebody else's"),
    ],
)
def test_a_question_is_told_with_its_node_its_state_and_who_has_to_act(
    annotations: dict[str, str], machine_name: str, awaited: str, *, is_driven: bool
) -> None:
    secrets = [secret("s", machine_name, **annotations)]
    node = machine_name.removeprefix("m-")
    found = still_there(secrets, MACHINES, managed={"n1", "n2"}, is_driven=is_driven)
    assert found == [f"node {node}: Secret fleet-local/s with {ASKED}{awaited}"]


@pytest.mark.rule("nodes: a Machine without Node is logged and not fatal")
@pytest.mark.parametrize(
    "one",
    [
        pytest.param(secret("s", "m-n1"), id="cleared"),
        pytest.param(secret("s", "m-n1", **{"rke.cattle.io/pre-drain": QUESTION, ANSWER: QUESTION}), id="another one"),
        pytest.param(secret("s", "gone", **{ASKED: QUESTION}), id="of a Machine that is gone"),
        pytest.param(secret("s", "", **{ASKED: QUESTION}), id="of no Machine"),
        pytest.param(secret("s", "unborn", **{ASKED: QUESTION}), id="of a Machine without a node"),
        pytest.param({"metadata": {"name": "s"}}, id="a bare Secret"),
    ],
)
def test_nobody_waits_for_a_question_that_is(one: dict[str, Any]) -> None:
    assert still_there([one], MACHINES, managed={"n1"}, is_driven=True) == []


@pytest.mark.rule("nodes: a post-drain hook that delays the phase is reported with node, Secret, state and next step")
def test_each_node_is_told_in_order() -> None:
    names = {"a": "m-n2", "b": "m-n1", "c": "m-n2"}
    secrets = [secret(name, machine_name, **{ASKED: QUESTION}) for name, machine_name in names.items()]
    found = still_there(secrets, MACHINES, managed={"n1", "n2"}, is_driven=True)
    assert [told.partition(" with ")[0] for told in found] == [
        "node n1: Secret fleet-local/b",
        "node n2: Secret fleet-local/a",
        "node n2: Secret fleet-local/c",
    ]
