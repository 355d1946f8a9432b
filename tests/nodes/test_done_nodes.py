"""Nodes that were upgraded, and are not Ready or run another OS before the phase ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.cluster.nodes import COMPLETE, NEW, OLD, VIEW, job_state
from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.machine_plan import Hook
from upgrade_manager.nodes import drain, single_node
from upgrade_manager.nodes.model import AcknowledgeHook, Decision, Decisions, NodeView, RemoveTaint, StartJob
from upgrade_manager.nodes.sequencing import one_at_a_time

PENDING = Hook(requested="D")
DONE = replace(VIEW, state=NodeState.POST_DRAINED, os_image=NEW, jobs={JobType.PRE_DRAIN: COMPLETE})
ONLY = replace(VIEW, state=NodeState.SINGLE_NODE_UPGRADED, os_image=NEW, secret="")
AGAIN = replace(DONE, jobs={JobType.PRE_DRAIN: job_state(repeated=True)})
CONSOLE = "Check the console of node n1, and start it"
FALLBACK = "Find out on node n1 why it booted the fallback: journalctl -b -1 --no-pager -n 100"
LOST = [
    pytest.param({"ready": False}, f"it is not Ready; it last reported {NEW}", CONSOLE, id="NotReady"),
    pytest.param({"os_image": OLD}, f"it runs {OLD} instead of {NEW}", FALLBACK, id="another OS"),
    pytest.param(
        {"os_image": "", "ready": False},
        "it is not Ready",
        CONSOLE,
        id="nothing reported",
    ),
]


def decide(view: NodeView) -> Decision:
    chosen = single_node.decide if view.state is NodeState.SINGLE_NODE_UPGRADED else drain.decide
    return chosen(view, release_os=NEW)


@pytest.mark.rule(
    "nodes: a done node that is NotReady or runs another OS holds the phase, and is named",
    "nodes: a hook of a done node is acknowledged only while the node is Ready with the release's OS",
)
@pytest.mark.parametrize(
    "view",
    [
        pytest.param(DONE, id="multi-node"),
        pytest.param(replace(DONE, post_drain=PENDING, pending_os=NEW), id="not acknowledged yet"),
        pytest.param(replace(DONE, pre_drain=PENDING), id="drained again"),
        pytest.param(replace(AGAIN, pre_drain=PENDING), id="drained again, its Job runs"),
        pytest.param(replace(AGAIN, post_drain=PENDING), id="drained again, and upgraded"),
        pytest.param(ONLY, id="single node"),
    ],
)
@pytest.mark.parametrize(("change", "problem", "remedy"), LOST)
def test_lost_node_holds_the_phase(view: NodeView, change: dict[str, object], problem: str, remedy: str) -> None:
    decision = decide(replace(view, **change))  # type: ignore[arg-type]  # a table
    assert (decision.state, decision.effects, decision.holds, decision.failure) == (view.state, (), True, "")
    assert decision.progress == f"n1: {decision.message}"
    assert decision.message == f"it was upgraded, and the upgrade waits for it, because {problem}. {remedy}"


@pytest.mark.parametrize("view", [DONE, ONLY, replace(DONE, cordoned=True)], ids=["multi", "single", "cordoned"])
def test_node_that_is_back_holds_nothing(view: NodeView) -> None:
    assert decide(view) == Decision(state=view.state)


def test_hook_is_acknowledged_when_the_node_is_back() -> None:
    acknowledge = AcknowledgeHook(secret="s1", annotation=ANNOTATION_POST_HOOK, value="D")  # noqa: S106  # its name
    assert decide(replace(DONE, post_drain=PENDING)).effects == (acknowledge,)


@pytest.mark.rule("nodes: a hook of another controller beside the manager's is reported with its name")
@pytest.mark.parametrize("state", [NodeState.WAITING_REBOOT, NodeState.POST_DRAINED])
def test_post_drain_hook_of_others_holds_the_phase(state: NodeState) -> None:
    hook = Hook(requested="D", acknowledged="D", others=("example.com/hook",))
    decision = decide(replace(DONE, state=state, post_drain=hook))
    text = "n1: other controllers have not acknowledged their hooks: example.com/hook (Secret fleet-local/s1)"
    assert decision == Decision(state=NodeState.POST_DRAINED, progress=text, holds=True)


@pytest.mark.rule("nodes: the taint of a repeated pre-drain Job is removed before the node is uncordoned")
@pytest.mark.parametrize(
    ("change", "effects"),
    [
        pytest.param({"pre_drain": Hook(requested="D", acknowledged="D")}, (), id="drained"),
        pytest.param({"post_drain": PENDING}, (RemoveTaint(node="n1"),), id="Kubernetes upgraded"),
        pytest.param({}, (RemoveTaint(node="n1"),), id="drain ended by Rancher"),
    ],
)
def test_taint_of_a_repeated_drain_is_removed(change: dict[str, Hook], effects: tuple[RemoveTaint, ...]) -> None:
    view = replace(AGAIN, jobs={JobType.PRE_DRAIN: replace(COMPLETE, repeated=True)}, tainted=True, **change)  # type: ignore[arg-type]  # a table
    decision = decide(view)
    assert (decision.effects, decision.holds) == (effects, True)


@pytest.mark.rule("nodes: a node that Rancher cannot cordon is named at once, with the node to uncordon")
@pytest.mark.parametrize(("drains", "holds"), [(True, True), (False, False)], ids=["begun", "left over"])
def test_refused_cordon_of_a_done_node_holds_the_phase(*, drains: bool, holds: bool) -> None:
    decision = decide(replace(DONE, cordon_error="last node", drains=drains))
    progress = "n1: Rancher cannot cordon it (last node)" if holds else ""
    assert decision == Decision(state=NodeState.POST_DRAINED, progress=progress, holds=holds)


def start(name: str, *, kind: JobType = JobType.PRE_DRAIN, repeated: bool = False) -> Decision:
    effects = (StartJob(node=name, job_type=kind, repeated=repeated),)
    return Decision(
        state=NodeState.POST_DRAINED if repeated else NodeState.PRE_DRAINING, effects=effects, holds=repeated
    )


def started(*pairs: tuple[NodeView, Decision]) -> list[str]:
    return [view.name for view, decision in one_at_a_time(Decisions(active=pairs)).active if decision.effects]


@pytest.mark.rule("nodes: no node starts while a done node is NotReady, runs another OS or is missing")
@pytest.mark.parametrize(
    ("second", "begins"),
    [
        pytest.param(start("n2"), False, id="its pre-drain Job"),
        pytest.param(start("n2", kind=JobType.POST_DRAIN), False, id="its post-drain Job, which reboots it"),
        pytest.param(start("n2", repeated=True), False, id="a repeated drain"),
        pytest.param(Decision(state=NodeState.PRE_DRAINING), True, id="its Job runs: not stopped"),
    ],
)
@pytest.mark.parametrize("change", [{"ready": False}, {"os_image": OLD}], ids=["NotReady", "another OS"])
def test_no_node_starts_while_a_done_node_is_lost(change: dict[str, object], second: Decision, *, begins: bool) -> None:
    lost = replace(DONE, **change)  # type: ignore[arg-type]  # a table
    other = replace(VIEW, name="n2")
    ((_, first), (_, found)) = one_at_a_time(Decisions(active=[(lost, decide(lost)), (other, second)])).active
    assert first == decide(lost)
    assert (found == second) is begins


def test_missing_done_node_blocks_others() -> None:
    missing = Decision(state=NodeState.POST_DRAINED, holds=True)
    assert started((DONE, missing), (replace(VIEW, name="n2"), start("n2"))) == []


@pytest.mark.rule("nodes: a done node that is cordoned holds the end of the phase, and blocks no other node")
def test_cordoned_done_node_blocks_no_other() -> None:
    cordoned = replace(DONE, cordoned=True)
    assert started((cordoned, decide(cordoned)), (replace(VIEW, name="n2"), start("n2"))) == ["n2"]


def test_of_two_nodes_drained_again_the_first_starts() -> None:
    views = [replace(DONE, name=name) for name in ("n1", "n2")]
    assert started(*((view, start(view.name, repeated=True)) for view in views)) == ["n1"]
