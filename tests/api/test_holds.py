"""Nodes that hold before a step, in a raw status."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.holds import (
    HoldPoint,
    continue_command,
    continued,
    entry_of,
    held_again,
    held_nodes,
    late_holds,
    next_point,
    read_entries,
    refusal,
    with_continued,
    with_holds,
)

STATUS: dict[str, Any] = {
    "nodeUpgradeStatuses": {
        "n1": {"state": "PreDraining", "holds": "Reboot", "continued": ["Drain"]},
        "n2": {"state": "UpgradePaused", "holds": "Drain"},
        "n3": {"state": "PostDrained", "holds": "", "continued": ["Drain", "Reboot"]},
    }
}
UNREADABLE = [
    pytest.param({}, id="no nodes"),
    pytest.param({"nodeUpgradeStatuses": None}, id="null"),
    pytest.param({"nodeUpgradeStatuses": ["n1"]}, id="not a mapping"),
    pytest.param({"nodeUpgradeStatuses": {"n1": None, "n2": "Drain", "n3": {"continued": "Drain"}}}, id="odd entries"),
]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(" , ,", [], id="only commas"),
        pytest.param("n1:Drain", ["n1:Drain"], id="one"),
        pytest.param(" n2:Reboot ,n1:Drain\n", ["n2:Reboot", "n1:Drain"], id="in their order"),
        pytest.param("n1:Drain,n2:Drain,n1:Drain", ["n1:Drain", "n2:Drain"], id="each once"),
    ],
)
def test_entries_of_the_annotation(text: str, entries: list[str]) -> None:
    assert read_entries(text) == entries


def test_command_names_the_plan_and_the_node_that_holds() -> None:
    assert continue_command("upgrade") == "upgrade-manager continue upgrade"
    assert continue_command("upgrade", "n1") == "upgrade-manager continue upgrade n1"


def test_nodes_that_hold_and_what_they_were_let_past() -> None:
    assert held_nodes(STATUS) == {"n1": "Reboot", "n2": "Drain"}
    assert continued(STATUS) == {"n1:Drain", "n3:Drain", "n3:Reboot"}


@pytest.mark.parametrize("status", UNREADABLE)
def test_unreadable_status_has_no_holds(status: dict[str, Any]) -> None:
    assert held_nodes(status) == {}
    assert continued(status) == frozenset()


def test_points_replace_those_of_before() -> None:
    nodes = {"n1": {"state": "a", "holds": "Drain"}, "n2": {"state": "b"}, "n3": {"holds": "Drain"}}
    found = with_holds(nodes, {"n1": "Reboot", "n2": "Drain", "n4": "Drain"})
    assert found == {"n1": {"state": "a", "holds": "Reboot"}, "n2": {"state": "b", "holds": "Drain"}, "n3": {}}
    assert nodes["n1"] == {"state": "a", "holds": "Drain"}


@pytest.mark.parametrize(
    ("node", "point", "expected"),
    [
        pytest.param("n2", HoldPoint.DRAIN, ["Drain"], id="its first point"),
        pytest.param("n1", HoldPoint.REBOOT, ["Drain", "Reboot"], id="its second point"),
        pytest.param("n1", HoldPoint.DRAIN, ["Drain"], id="each once"),
    ],
)
def test_node_that_was_let_past_holds_no_longer(node: str, point: str, expected: list[str]) -> None:
    nodes = STATUS["nodeUpgradeStatuses"]
    found = with_continued(nodes, node=node, point=point)
    assert found == {**nodes, node: {"state": nodes[node]["state"], "continued": expected}}
    assert entry_of(node, point) in continued({"nodeUpgradeStatuses": found})
    assert node not in held_nodes({"nodeUpgradeStatuses": found})


HELD = "; what holds is n1:Reboot, n2:Drain"


@pytest.mark.parametrize(
    ("status", "entry", "why"),
    [
        pytest.param(STATUS, "n1:Reboot", "", id="holds there"),
        pytest.param(STATUS, "n1:Drain", f"Node n1 does not hold before its drain{HELD}", id="holds elsewhere"),
        pytest.param(STATUS, "n9:Reboot", f"Node n9 does not hold before its reboot{HELD}", id="unknown node"),
        pytest.param(STATUS, "n1:drain", f"'n1:drain' is not NODE:Drain or NODE:Reboot{HELD}", id="unknown point"),
        pytest.param(STATUS, "n1", f"'n1' is not NODE:Drain or NODE:Reboot{HELD}", id="no point"),
        pytest.param({}, ":Drain", "':Drain' is not NODE:Drain or NODE:Reboot; no node holds", id="no node"),
        pytest.param({}, "n1:Drain", "Node n1 does not hold before its drain; no node holds", id="no node holds"),
        pytest.param(
            {**STATUS, "currentPhase": "Failed"},
            "n1:Reboot",
            "'n1:Reboot' has no effect, because the plan has failed. Continue the node in the next attempt",
            id="the plan has failed",
        ),
    ],
)
def test_refusal_of_an_entry_names_what_holds(status: dict[str, Any], entry: str, why: str) -> None:
    assert refusal(status, entry) == why


RUNNING = {
    "currentPhase": "NodeUpgrading",
    "nodeUpgradeStatuses": {
        "n1": {"state": "PostDraining"},
        "n2": {"state": "PreDraining"},
        "n3": {"state": "PreDrained"},
    },
}
HOLDS = {"holds": "before the drain of n3"}
LATE_REBOOT = (
    "Node n1 (PostDraining) is not held before its reboot once its Job has begun: "
    "pauseBefore Reboot holds Jobs that begin later only"
)
LATE_DRAIN = (
    "Node n2 (PreDraining) is not held before its drain once its Job has begun: "
    "pauseBefore Drain holds nodes that begin later only"
)


@pytest.mark.parametrize(
    ("status", "points", "expected"),
    [
        pytest.param(RUNNING, [HoldPoint.REBOOT], [LATE_REBOOT], id="before the reboot"),
        pytest.param(RUNNING, list(HoldPoint), [LATE_DRAIN, LATE_REBOOT], id="before both"),
        pytest.param(RUNNING, [], [], id="no new point"),
        pytest.param({**RUNNING, **HOLDS}, list(HoldPoint), [], id="nothing runs"),
        pytest.param(
            {**RUNNING, "currentPhase": "ClusterUpgrading"}, list(HoldPoint), [], id="before the node upgrade"
        ),
    ],
)
def test_hold_that_comes_too_late_names_its_nodes(
    status: dict[str, Any], points: list[str], expected: list[str]
) -> None:
    assert late_holds(status, points) == expected


LATE = [LATE_REBOOT]


@pytest.mark.rule("control: a hold that is added too late for a node is a warning of the webhook, which names the node")
@pytest.mark.parametrize(
    ("phase", "where", "warnings"),
    [
        pytest.param("NodeUpgrading", "before the drain of n2", [], id="nothing runs"),
        pytest.param("NodeUpgrading", "", LATE, id="the Job runs"),
        pytest.param("Failed", "before attempt 2", LATE, id="the next attempt is paused, and Jobs of the last one run"),
    ],
)
def test_paused_plan_has_late_holds_while_jobs_run(phase: str, where: str, warnings: list[str]) -> None:
    nodes = {"n1": {"state": "PostDraining"}}
    status = {"currentPhase": phase, "nodeUpgradeStatuses": nodes, **({"holds": where} if where else {})}
    assert late_holds(status, ["Reboot"]) == warnings


BOTH = ["Drain", "Reboot"]


@pytest.mark.parametrize(
    ("state", "left"),
    [
        pytest.param("ImagePreloaded", BOTH, id="its first Job has not begun"),
        pytest.param("PreDraining", ["Reboot"], id="its VMs leave"),
        pytest.param("PreDrained", BOTH, id="it is drained"),
        pytest.param("PostDraining", ["Drain"], id="its system is written"),
        pytest.param("SingleNodeUpgrading", None, id="the only node"),
        pytest.param("PostDrained", BOTH, id="it is done"),
        pytest.param("OfALaterVersion", BOTH, id="unknown state"),
    ],
)
def test_node_holds_again_before_the_step_that_is_repeated(state: str, left: list[str] | None) -> None:
    entry = {"state": state, "since": "then", "continued": BOTH}
    expected = {"state": state, "since": "then"} | ({"continued": left} if left else {})
    assert held_again(entry) == expected


@pytest.mark.parametrize("entry", [None, "odd", {}, {"state": "PreDraining"}, {"continued": "Drain"}], ids=str)
def test_entry_without_continuations_is_unchanged(entry: object) -> None:
    assert held_again(entry) is entry


@pytest.mark.parametrize(
    ("phase", "states", "point"),
    [
        pytest.param("", [], "before phase ISODownload", id="not accepted"),
        pytest.param("ImagePreloaded", ["ImagePreloaded"], "before phase ClusterUpgrade", id="between phases"),
        pytest.param("NodeUpgrading", [], "before the next node", id="no node recorded"),
        pytest.param(
            "NodeUpgrading", ["PostDrained", "PostDraining", "ImagePreloaded"], "before the next node", id="next"
        ),
        pytest.param(
            "NodeUpgrading", ["PostDraining", "UpgradePaused"], "before the next node", id="the next is paused"
        ),
        pytest.param("NodeUpgrading", ["PostDraining", "Later"], "before the next node", id="unknown state"),
        pytest.param("NodeUpgrading", ["ImagePreloaded", "PreDraining"], "before the drain of n1", id="VMs leave"),
        pytest.param("NodeUpgrading", ["PostDrained", "PreDrained"], "before phase ImageCleanup", id="the last node"),
        pytest.param("NodeUpgrading", ["SingleNodeUpgrading"], "before phase ImageCleanup", id="the only node"),
        pytest.param("NodeUpgraded", ["PostDrained"], "before phase ImageCleanup", id="all nodes are done"),
    ],
)
def test_next_point_is_where_a_pause_will_hold(phase: str, states: list[str], point: str) -> None:
    nodes = {f"n{number}": {"state": state} for number, state in enumerate(states)}
    assert next_point({"currentPhase": phase, "nodeUpgradeStatuses": nodes}) == point
