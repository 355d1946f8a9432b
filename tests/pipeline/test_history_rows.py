"""The bound of a history: what gives way, at 1,000 nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.managers.displayed import START, at, plan
from upgrade_manager.api.history import Row, rows_of
from upgrade_manager.nodes.milestones import MilestoneReason
from upgrade_manager.pipeline.history_rows import MAX_BYTES, data_of, derived, fitting, versions_of

STEPS = ("NodeDraining", "NodeUpgrading", "NodeRebooting", "NodeUpgraded")


def row(reason: str, second: int, *, message: str = "", node: str = "", type_: str = "Normal") -> Row:
    time = START + timedelta(seconds=second)
    text = message or f"Node {node}: upgraded in 31 min 40 s; its reboot took 5 min 10 s"
    id_ = f"13.n20-{second:016}"
    return Row(id=id_, first=time, last=time, count=1, type=type_, reason=reason, message=text, node=node)


def rows(nodes: int, *, warnings: int = 0, length: int = 6) -> dict[str, Row]:
    """Return the rows of an upgrade of so many nodes, with as many warnings in between."""
    phases = [row("PhaseTransition", 0, message="Entering phase NodeUpgrade")]
    phases.append(row("UpgradeFailed", 4 * nodes + warnings, message="Upgrade failed", type_="Warning"))
    steps = [
        row(reason, 4 * number + step, node=f"node-{number:0{length}}")
        for number in range(nodes)
        for step, reason in enumerate(STEPS)
    ]
    texts = [f"error {one} {'x' * 400}" for one in range(warnings)]
    warned = [row("ReconcileError", 3 * one, message=text, type_="Warning") for one, text in enumerate(texts)]
    return {f"{one.reason}/{one.id}": one for one in (*phases, *steps, *warned)}


def size(found: dict[str, Row], blockers: list[Any]) -> int:
    return sum(len(key) + len(text.encode()) for key, text in data_of(found.values(), blockers).items())


def counted(found: dict[str, Row]) -> dict[str, int]:
    reasons = [one.reason for one in found.values()]
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def test_small_history_is_kept_whole() -> None:
    found = rows(50, warnings=20)
    assert fitting(found, [{"reason": "A"}]) == (found, [{"reason": "A"}])


@pytest.mark.rule("pipeline: the history has at most 256 kB at 1,000 nodes: texts of milestones give way first")
def test_texts_of_the_earliest_milestones_give_way_first() -> None:
    found, _ = fitting(rows(1000), [])
    steps = [one for one in found.values() if one.node]
    assert len(steps) == 4000
    short = [one for one in steps if not one.id]
    assert short == steps[: len(short)]
    assert 0 < len(short) < 4000
    assert size(found, []) <= MAX_BYTES
    # A row without text is read as it is, and needs no more to give way.
    again = rows_of(data_of(found.values(), []))
    assert len(again) == len(found)
    assert fitting(found, [])[0] == found


def test_warnings_give_way_before_times_of_nodes() -> None:
    found, _ = fitting(rows(1000, warnings=300), [])
    assert counted(found) | {"ReconcileError": 0} == {
        "PhaseTransition": 1,
        "UpgradeFailed": 1,
        **dict.fromkeys(STEPS, 1000),
        "ReconcileError": 0,
    }
    left = [one for one in found.values() if one.reason == "ReconcileError"]
    assert 0 < len(left) < 300
    # The newest ones are left.
    assert left == [*rows(1000, warnings=300).values()][-len(left) :]
    assert size(found, []) <= MAX_BYTES


def test_reboots_give_way_before_other_milestones() -> None:
    found, _ = fitting(rows(2000, warnings=10), [])
    kept = counted(found)
    assert "ReconcileError" not in kept
    assert kept["NodeUpgraded"] == 2000 > kept["NodeDraining"] > kept.get("NodeRebooting", 0)
    assert kept["UpgradeFailed"] == kept["PhaseTransition"] == 1
    assert size(found, []) <= MAX_BYTES


@pytest.mark.parametrize("nodes", [1000, 5000])
def test_bound_holds_with_long_names(nodes: int) -> None:
    found, blockers = fitting(rows(nodes, length=200), [])
    assert size(found, blockers) <= MAX_BYTES


def test_shortest_blockers_give_way() -> None:
    blockers = [{"reason": "A", "message": "m" * 150, "since": at(0), "until": at(one)} for one in range(500)]
    _, kept = fitting({}, blockers)
    assert kept == blockers[-len(kept) :]
    assert 0 < size({}, kept) <= 40_100


def test_end_of_a_blocker_is_derived_from_the_status() -> None:
    past = {"kind": "Pod", "namespace": "a", "name": "b", "reason": "JobSlow", "message": "Pod a/b: slow"}
    status = {"pastBlockers": [past | {"since": at(10), "until": at(20)}], "attempts": [{"attempt": 2, "begin": at(5)}]}
    found = list(derived(plan(**status), []))
    assert [(one.reason, one.first, one.message) for one in found] == [
        ("AttemptBegan", START + timedelta(seconds=5), "Attempt 2 begins"),
        ("JobSlow", START + timedelta(seconds=10), "Pod a/b: slow"),
        ("BlockerCleared", START + timedelta(seconds=20), "Pod a/b: JobSlow is cleared"),
    ]
    assert [one.reason for one in derived(plan(**status), found)] == ["AttemptBegan"]


def test_pause_of_a_node_adds_no_row() -> None:
    past = {"kind": "Node", "name": "a", "reason": "NodePaused", "message": "paused", "since": at(10), "until": at(20)}
    assert list(derived(plan(pastBlockers=[past]), [])) == []


def test_only_nodes_that_are_not_done_have_versions() -> None:
    states = {"a": {"state": "PostDrained"}, "b": {"state": "ImagePreloaded"}, "c": {"state": "PreDrainFailed"}}
    info = {"status": {"nodeInfo": {"osImage": "Harvester v1.7.1", "kubeletVersion": "v1.34"}}}
    nodes = [{"metadata": {"name": name}, **info} for name in ("a", "b", "c", "other")]
    text = versions_of(plan(nodeUpgradeStatuses=states), nodes)
    assert text == '{"kubernetes":"v1.34","nodes":["b","c"],"os":"Harvester v1.7.1"}\n'


def test_reasons_are_those_of_milestones() -> None:
    assert set(STEPS) <= set(map(str, MilestoneReason))
