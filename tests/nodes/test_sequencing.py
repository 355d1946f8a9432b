from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.support.cluster.nodes import COMPLETE, RUNNING, VIEW
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.machine_plan import NO_HOOK, Hook
from upgrade_manager.nodes.model import AcknowledgeHook, Decided, Decision, Decisions, NodeView, ResumeJob, StartJob
from upgrade_manager.nodes.sequencing import IN_PROGRESS, one_at_a_time, paused_message


def node(name: str, state: NodeState | None = NodeState.IMAGE_PRELOADED, **more: Any) -> NodeView:
    return replace(VIEW, name=name, state=state, **more)


def start(name: str, job_type: JobType = JobType.PRE_DRAIN) -> Decision:
    return Decision(state=NodeState.PRE_DRAINING, effects=(StartJob(node=name, job_type=job_type),))


row = pytest.param
IDLE = Decision(state=None)


def in_order(pairs: Sequence[Decided]) -> Sequence[Decided]:
    return one_at_a_time(Decisions(active=pairs)).active


def started(pairs: Sequence[Decided]) -> list[str]:
    return [view.name for view, decision in pairs if decision.effects]


@pytest.mark.parametrize("state", sorted(IN_PROGRESS))
def test_no_node_starts_while_another_is_in_progress(state: NodeState) -> None:
    pairs = in_order([(node("a"), start("a")), (node("b", state), IDLE)])
    assert started(pairs) == []
    held = pairs[0][1]
    assert held.state is None
    assert held.progress == "a: waiting until node b is upgraded and Ready"


def test_node_in_progress_starts_its_next_job() -> None:
    pairs = in_order([(node("a", NodeState.PRE_DRAINED), start("a", JobType.POST_DRAIN)), (node("b"), IDLE)])
    assert started(pairs) == ["a"]


def test_first_of_two_pending_nodes_starts() -> None:
    assert started(in_order([(node("a"), start("a")), (node("b"), start("b", JobType.POST_DRAIN))])) == ["a"]


@pytest.mark.parametrize("state", [None, NodeState.IMAGE_PRELOADED, NodeState.POST_DRAINED])
def test_unstarted_and_finished_nodes_block_no_other(state: NodeState | None) -> None:
    assert started(in_order([(node("a"), start("a")), (node("b", state), IDLE)])) == ["a"]


def test_observed_return_counts_before_the_recorded_state() -> None:
    back = Decision(state=NodeState.POST_DRAINED)
    assert started(in_order([(node("a", NodeState.WAITING_REBOOT), back), (node("b"), start("b"))])) == ["b"]


def left(tier: int | None) -> tuple[NodeView, Decision]:
    """Return a node with a stale hook that would start."""
    return node("a", stale_hook=True, tier=tier), start("a")


ETCD = node("b", tier=0)
PRE_DRAINED = node("a", NodeState.PRE_DRAINED, stale_hook=True, tier=3)


@pytest.mark.rule("nodes: a pending hook of an earlier upgrade runs this upgrade's Jobs first, in Rancher's order")
@pytest.mark.parametrize(
    ("pairs", "begun"),
    [
        row([left(3), (ETCD, IDLE)], [], id="a worker before etcd"),
        row([left(3), (ETCD, start("b"))], ["b"], id="a worker before etcd with a pending hook"),
        row([left(3), (ETCD, Decision(state=NodeState.POST_DRAINED))], ["a"], id="etcd is done"),
        row([left(1), (node("b", tier=1), IDLE)], ["a"], id="the same tier"),
        row([left(1), (node("b", tier=3), IDLE)], ["a"], id="a later tier waits"),
        row([left(None), (ETCD, IDLE)], ["a"], id="no role is known"),
        row([left(3), (node("b"), IDLE)], ["a"], id="nothing is known of the other"),
        row([(node("a", tier=3), start("a")), (ETCD, IDLE)], ["a"], id="no stale hook: Rancher's order"),
        row([(PRE_DRAINED, start("a", JobType.POST_DRAIN)), (ETCD, IDLE)], ["a"], id="one that is under way goes on"),
    ],
)
def test_node_with_a_stale_hook_waits_for_earlier_tiers(
    pairs: list[tuple[NodeView, Decision]], begun: list[str]
) -> None:
    assert started(in_order(pairs)) == begun


def hold(name: str) -> Decision:
    return Decision(
        state=NodeState.UPGRADE_PAUSED, effects=(StartJob(node=name, job_type=JobType.PRE_DRAIN, suspended=True),)
    )


def resume(name: str) -> Decision:
    return Decision(state=NodeState.PRE_DRAINING, effects=(ResumeJob(node=name, job_type=JobType.PRE_DRAIN),))


PAUSED = NodeState.UPGRADE_PAUSED
RESUMED = (node("a", PAUSED), resume("a"))


@pytest.mark.rule("nodes: a listed node without pending hook is not paused yet")
@pytest.mark.parametrize(
    ("pairs", "acting"),
    [
        row([(node("a"), hold("a")), (node("b"), start("b"))], ["a", "b"], id="paused, another starts"),
        row([(node("a", PAUSED), Decision(state=PAUSED)), (node("b"), start("b"))], ["b"], id="paused and recorded"),
        row([RESUMED, (node("b", NodeState.PRE_DRAINED), IDLE)], [], id="resumed, another in progress"),
        row([RESUMED, (node("b"), IDLE)], ["a"], id="resumed, no other in progress"),
        row([RESUMED, (node("b", PAUSED), resume("b"))], ["a"], id="of two the first begins"),
        row([(node("a"), hold("a")), (node("b", NodeState.POST_DRAINING), IDLE)], [], id="another in progress"),
        row([(node("a", NodeState.PRE_DRAINING), resume("a")), (node("b"), IDLE)], ["a"], id="begun before a crash"),
    ],
)
def test_paused_nodes_block_no_other(pairs: list[tuple[NodeView, Decision]], acting: list[str]) -> None:
    assert started(in_order(pairs)) == acting


REPEATED = Decision(state=None, effects=(StartJob(node="a", job_type=JobType.PRE_DRAIN, repeated=True),))


def drained(tier: int | None) -> tuple[NodeView, Decision]:
    """Return a node that waits for Rancher to upgrade its Kubernetes."""
    return node("b", NodeState.PRE_DRAINED, tier=tier), Decision(state=NodeState.PRE_DRAINED)


def unready(pair: tuple[NodeView, Decision]) -> tuple[NodeView, Decision]:
    return replace(pair[0], ready=False), pair[1]


@pytest.mark.parametrize(
    ("tier", "decision", "other", "begun"),
    [
        row(1, REPEATED, drained(3), ["a"], id="it is of a later tier"),
        row(1, REPEATED, drained(1), [], id="it is of the same tier"),
        row(1, REPEATED, drained(None), [], id="its tier is unknown"),
        row(None, REPEATED, drained(3), [], id="the node's tier is unknown"),
        row(1, start("a"), drained(3), ["a"], id="it is of a later tier, and this is the node's first drain"),
        row(1, REPEATED, unready(drained(3)), [], id="it is of a later tier, and not Ready"),
        row(1, REPEATED, (node("b", NodeState.POST_DRAINING, tier=3), IDLE), [], id="its Job runs"),
    ],
)
def test_repeated_drain_waits_for_a_drained_node_unless(
    tier: int | None, decision: Decision, other: tuple[NodeView, Decision], begun: list[str]
) -> None:
    pairs = [(node("a", NodeState.POST_DRAINED, tier=tier), decision), other]
    assert started(in_order(pairs)) == begun


HOOK = Hook(requested="D")
AGAIN: dict[str, Any] = {"state": NodeState.POST_DRAINED, "drains": True, "pre_drain": HOOK, "tier": 1}
PREPARED: dict[str, Any] = {
    "state": NodeState.PRE_DRAINING,
    "pre_drain": HOOK,
    "tier": 3,
    "jobs": {JobType.PRE_DRAIN: COMPLETE},
}
HELD = Decision(state=NodeState.POST_DRAINED, holds=True)


def acknowledge(view: NodeView) -> Decision:
    return Decision(state=NodeState.PRE_DRAINED, effects=(AcknowledgeHook.of_drain(view),))


@pytest.mark.rule("nodes: a node is not drained before a node of an earlier tier that Rancher drains again")
@pytest.mark.parametrize(
    ("done", "prepared", "acting"),
    [
        row({}, {}, [], id="its hook is pending"),
        row({"pre_drain": NO_HOOK, "cordon_error": "refused"}, {}, [], id="it cannot be cordoned"),
        row({"pre_drain": NO_HOOK}, {}, ["b"], id="no hook is pending"),
        row({"drains": False, "pre_drain": NO_HOOK, "cordon_error": "refused"}, {}, ["b"], id="its drain has ended"),
        row({"tier": 3}, {}, ["b"], id="it is of the same tier"),
        row({}, {"post_drain": HOOK}, ["b"], id="the node was drained before"),
    ],
)
def test_drain_waits_for_a_repeated_drain_of_an_earlier_tier(
    done: dict[str, Any], prepared: dict[str, Any], acting: list[str]
) -> None:
    later = node("b", **{**PREPARED, **prepared})
    assert started(in_order([(node("a", **{**AGAIN, **done}), HELD), (later, acknowledge(later))])) == acting


@pytest.mark.rule("nodes: a node is not drained before a node of an earlier tier that Rancher drains again")
@pytest.mark.parametrize(
    ("change", "begun"),
    [
        row({}, ["a"], id="its Job is complete"),
        row({"jobs": {}}, ["a"], id="its Job was removed"),
        row({"jobs": {JobType.PRE_DRAIN: RUNNING}}, [], id="its Job runs"),
        row({"old_jobs": {JobType.PRE_DRAIN: RUNNING}}, [], id="an earlier Job runs"),
        row({"ready": False}, [], id="it is not Ready"),
        row({"tier": 1}, [], id="it is of the same tier"),
    ],
)
def test_repeated_drain_waits_for_a_prepared_node_unless(change: dict[str, Any], begun: list[str]) -> None:
    waiting = Decision(state=NodeState.PRE_DRAINING, holds=True)
    pairs = [(node("a", **AGAIN), REPEATED), (node("b", **{**PREPARED, **change}), waiting)]
    assert started(in_order(pairs)) == begun


def test_one_of_two_nodes_starts_of_which_one_is_drained_again() -> None:
    pairs = [(node("a", **AGAIN), REPEATED), (node("b", **{**PREPARED, "jobs": {}}), start("b"))]
    assert started(in_order(pairs)) == ["b"]


@pytest.mark.parametrize(
    ("names", "cordoned", "text"),
    [
        pytest.param("", True, "", id="none"),
        pytest.param("b", True, "b is paused (cordoned); remove it from", id="one, which Rancher has cordoned"),
        pytest.param("ab", True, "a, b are paused (cordoned); remove them from", id="two"),
        pytest.param("b", False, "b is paused; remove it from", id="a single node, which stays schedulable"),
    ],
)
def test_message_names_paused_nodes(names: str, text: str, *, cordoned: bool) -> None:
    pairs = [(node(name, cordoned=cordoned), Decision(state=NodeState.UPGRADE_PAUSED)) for name in names]
    message = paused_message([*pairs, (node("z"), IDLE)])
    assert message == (f"{text} spec.nodeUpgradeOption.pauseNodes to continue" if text else "")
