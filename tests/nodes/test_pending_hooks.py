"""The hooks and the cordoned nodes that hold up the end of the node upgrade although every node is done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.nodes import OPTIONS, PRE, PRE_DRAIN, machine, node, secret, store_of
from tests.support.cluster.nodes import POST as HOOK
from tests.support.cluster.nodes import POST_DRAIN as REQUEST
from upgrade_manager.api.keys import ANNOTATION_MACHINE
from upgrade_manager.facts.drain_hooks import leftover_hook
from upgrade_manager.facts.missing_nodes import unlabelled
from upgrade_manager.nodes.node_view import Observed
from upgrade_manager.nodes.pending_hooks import delays, describe_delays

if TYPE_CHECKING:
    from collections.abc import Sequence

ACKNOWLEDGED = "is acknowledged; waiting for Rancher to uncordon the node"
ACKNOWLEDGE = f"(acknowledge it: {leftover_hook('s', REQUEST)})"
STALE = f"is pending since an earlier upgrade {ACKNOWLEDGE}"
#: Drain options with the hook of another controller, too.
SHARED = json.dumps({"postDrainHooks": [{"annotation": HOOK}, {"annotation": "example.com/a"}]})
#: Drain options with the hook of another controller alone.
FOREIGN = json.dumps({"postDrainHooks": [{"annotation": "example.com/a"}]})
EARLIER = "is pending, but the Node names another Machine than old"
OPTIONS_BEFORE = json.dumps({"preDrainHooks": [{"annotation": PRE}]})
OTHERS = "other controllers have not acknowledged their hooks: example.com/a (Secret fleet-local/s)"
UNMANAGED = f"is pending, but the node takes no part: {unlabelled('n3').why} {ACKNOWLEDGE}"
#: A node without the managed label.
MISSING = {"n3": unlabelled("n3")}


def remaining(*secrets: dict[str, Any], cordoned: Sequence[str] = (), multi_node: bool = True, limit: int = 3) -> str:
    """Return what is reported of the Secrets, with Machines of three nodes of which two are managed."""
    observed = Observed(
        nodes=store_of([node("n1"), node("n2")]),
        secrets=store_of(secrets),
        machines=store_of([machine("new"), *(machine(f"m-{name}", name) for name in ("n1", "n2", "n3"))]),
        jobs=store_of([]),
    )
    found = delays(observed, cordoned=cordoned, multi_node=multi_node, missing=MISSING)
    return describe_delays(found, limit=limit)


@pytest.mark.rule(
    "nodes: the phase waits until no Secret has a post-drain hook",
    "nodes: a post-drain hook that delays the phase is reported with node, Secret, state and next step",
)
@pytest.mark.parametrize(
    ("annotations", "machine_name", "multi_node", "state"),
    [
        pytest.param({REQUEST: OPTIONS, HOOK: OPTIONS}, "m-n1", True, ACKNOWLEDGED, id="acknowledged"),
        pytest.param({REQUEST: OPTIONS}, "m-n1", True, ACKNOWLEDGED, id="acknowledged by this reconcile"),
        pytest.param({REQUEST: OPTIONS, HOOK: OPTIONS}, "m-n3", True, ACKNOWLEDGED, id="acknowledged, node left"),
        pytest.param({REQUEST: OPTIONS, HOOK: OPTIONS}, "m-n1", False, ACKNOWLEDGED, id="by an earlier upgrade"),
        pytest.param({REQUEST: OPTIONS}, "m-n1", False, STALE, id="stale on a single node"),
        pytest.param({REQUEST: OPTIONS, HOOK: "{}"}, "m-n1", False, STALE, id="stale with an older value"),
        pytest.param({REQUEST: OPTIONS}, "m-n3", True, UNMANAGED, id="of a node that has left"),
        pytest.param({REQUEST: "{}"}, "m-n1", True, ACKNOWLEDGED, id="without hooks"),
        pytest.param({REQUEST: ""}, "m-n1", True, ACKNOWLEDGED, id="empty"),
        pytest.param({REQUEST: "x", HOOK: "x"}, "m-n1", False, ACKNOWLEDGED, id="without valid options"),
        pytest.param({REQUEST: FOREIGN, "example.com/a": FOREIGN}, "m-n1", True, ACKNOWLEDGED, id="acknowledged alone"),
    ],
)
def test_hook_is_described_with_node_and_state(
    annotations: dict[str, str], machine_name: str, state: str, *, multi_node: bool
) -> None:
    found = remaining(secret("s", machine_name, **annotations), multi_node=multi_node)
    assert found == f"{machine_name.removeprefix('m-')}: {REQUEST} of Secret fleet-local/s {state}"


@pytest.mark.rule("nodes: a hook of another controller beside the manager's is reported with its name")
@pytest.mark.parametrize("multi_node", [True, False])
@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({REQUEST: SHARED, HOOK: SHARED}, id="the manager's is acknowledged"),
        pytest.param({REQUEST: FOREIGN}, id="alone"),
    ],
)
def test_hook_of_another_controller_is_named(annotations: dict[str, str], *, multi_node: bool) -> None:
    assert remaining(secret("s", "m-n1", **annotations), multi_node=multi_node) == f"n1: {OTHERS}"


@pytest.mark.rule("nodes: a Machine without Node is logged and not fatal")
@pytest.mark.parametrize(
    "one",
    [
        pytest.param(secret("s", "m-n1"), id="cleared"),
        pytest.param(secret("s", "m-n1", **{PRE_DRAIN: OPTIONS, HOOK: OPTIONS}), id="another one"),
        pytest.param(secret("s", "deleted", **{REQUEST: OPTIONS}), id="of a deleted Machine"),
        pytest.param(secret("s", "", **{REQUEST: OPTIONS}), id="of no Machine"),
        pytest.param(secret("s", "new", **{REQUEST: OPTIONS}), id="of a Machine without a node"),
        pytest.param({"metadata": {"name": "s"}}, id="a bare Secret"),
    ],
)
def test_hook_is_not_waited_for(one: dict[str, Any]) -> None:
    assert remaining(one) == ""


@pytest.mark.rule("nodes: a post-drain hook that delays the phase is reported with node, Secret, state and next step")
def test_hooks_are_sorted_by_node_and_limited() -> None:
    names = {"a": "m-n2", "b": "m-n1", "c": "m-n2"}
    secrets = [secret(name, machine_name, **{REQUEST: OPTIONS}) for name, machine_name in names.items()]
    places = ["n1: {} of Secret fleet-local/b", "n2: {} of Secret fleet-local/a", "n2: {} of Secret fleet-local/c"]
    expected = [f"{place.format(REQUEST)} {ACKNOWLEDGED}" for place in places]
    assert remaining(*secrets) == "; ".join(expected)
    assert remaining(*secrets, limit=1) == f"{expected[0]}; 2 more"


@pytest.mark.rule("nodes: a done node that is cordoned holds the end of the phase, and blocks no other node")
def test_cordoned_nodes_are_named_after_the_hooks() -> None:
    hook = secret("s", "m-n1", **{REQUEST: OPTIONS})
    uncordon = "n2: it is cordoned after its upgrade. Uncordon it: kubectl uncordon n2"
    # Rancher uncordons n1 itself.
    assert remaining(hook, cordoned=["n1", "n2"]) == f"n1: {REQUEST} of Secret fleet-local/s {ACKNOWLEDGED}; {uncordon}"
    assert remaining(cordoned=["n2"]) == uncordon
    assert remaining(cordoned=["n2"], multi_node=False) == uncordon
    assert remaining(cordoned=["n2", "n3"], limit=1) == f"{uncordon}; 1 more"


@pytest.mark.rule("nodes: a hook of an earlier Machine of the node is reported, and acknowledged by its user")
@pytest.mark.parametrize(
    ("named", "annotations", "state"),
    [
        pytest.param("m-n1", {REQUEST: OPTIONS}, EARLIER, id="post-drain"),
        pytest.param("m-n1", {PRE_DRAIN: OPTIONS_BEFORE}, EARLIER, id="pre-drain"),
        pytest.param("m-n1", {REQUEST: OPTIONS, HOOK: OPTIONS}, ACKNOWLEDGED, id="acknowledged"),
        pytest.param("old", {REQUEST: OPTIONS}, ACKNOWLEDGED, id="the Machine that the Node names"),
        pytest.param("", {REQUEST: OPTIONS}, ACKNOWLEDGED, id="no Machine named"),
    ],
)
def test_hook_of_an_earlier_machine_is_named(named: str, annotations: dict[str, str], state: str) -> None:
    observed = Observed(
        nodes=store_of([node("n1", annotations={ANNOTATION_MACHINE: named})]),
        secrets=store_of([secret("s", "old", **annotations), secret("new", "m-n1")]),
        machines=store_of([machine("old", "n1"), machine("m-n1", "n1")]),
        jobs=store_of([]),
    )
    (key,) = annotations.keys() - {HOOK}
    found = describe_delays(delays(observed, cordoned=[], multi_node=True, missing={}), limit=3)
    remedy = f" (acknowledge it: {leftover_hook('s', key)})" if state == EARLIER else ""
    assert found == f"n1: {key} of Secret fleet-local/s {state}{remedy}"
