"""Where a paused upgrade holds, by the decisions about its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.cluster.nodes import COMPLETE, VIEW, job_state
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.model import Decided, Decision, Decisions, Effect, NodeView, RestoreVMs, ResumeJob, StartJob
from upgrade_manager.nodes.pauses import node_pause, plan_pause, where_held

ROW = plan_pause("up", after=None)
DONE = Decision(state=NodeState.POST_DRAINED)
FIRST = StartJob(node="n1", job_type=JobType.PRE_DRAIN)


def node(name: str, state: NodeState = NodeState.IMAGE_PRELOADED, **more: Any) -> NodeView:
    return replace(VIEW, name=name, state=state, **more)


def where(*decided: Decided, held: dict[str, str] | None = None) -> str:
    held = held or {}
    closed = {name: node_pause(name, point, plan="up") for name, point in held.items()}
    return where_held(Decisions(active=decided), held=held, closed=closed, single=False, is_paused=False)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param({"n1": "Drain"}, "before the drain of n1", id="one"),
        pytest.param({"n1": "Drain", "n2": "Drain"}, "before the drain of n1, n2", id="two"),
        pytest.param({"n1": "Reboot", "n2": "Drain"}, "before the drain of n2 and before the reboot of n1", id="both"),
    ],
)
def test_all_nodes_that_hold_are_named(held: dict[str, str], expected: str) -> None:
    job = job_state(running=True, step="16/17 hold-before-reboot")
    views = [
        node(name, NodeState.POST_DRAINING, jobs={JobType.POST_DRAIN: job}) if point == "Reboot" else node(name)
        for name, point in held.items()
    ]
    assert where(*((view, Decision(state=None, holds=True)) for view in views), held=held) == expected


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        pytest.param(FIRST, "", id="its first Job begins"),
        pytest.param(ResumeJob(node="n1", job_type=JobType.PRE_DRAIN), "", id="its first Job is resumed"),
        pytest.param(StartJob(node="n1", job_type=JobType.POST_DRAIN), "", id="its second Job begins"),
        pytest.param(RestoreVMs(node="n1"), "", id="its VMs are started again"),
        pytest.param(replace(FIRST, suspended=True), "before the drain of n2", id="it is paused by pauseNodes"),
    ],
)
def test_upgrade_does_not_hold_while_a_job_begins(effect: Effect, expected: str) -> None:
    state = NodeState.POST_DRAINED if isinstance(effect, RestoreVMs) else None
    beside = node("n1", jobs={JobType.POST_DRAIN: COMPLETE} if state else {})
    held = node("n2"), Decision(state=None, holds=True)
    assert where((beside, Decision(state=state, effects=(effect,))), held, held={"n2": "Drain"}) == expected


def test_plan_holds_before_a_node_that_rancher_has_not_reached() -> None:
    decided = [(node("n1", NodeState.POST_DRAINED), DONE), (node("n2"), Decision(state=None))]
    found = where_held(Decisions(active=decided), held={}, closed={}, single=False, is_paused=True)
    assert found == "before the drain of the next node"
    assert where_held(Decisions(active=decided[:1]), held={}, closed={"n1": ROW}, single=False, is_paused=True) == ""
