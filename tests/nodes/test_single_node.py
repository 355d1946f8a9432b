"""Decisions about a single node, then along every course of its upgrade."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.support.cluster.nodes import NEW, VIEW, job_state
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState, merge, state_of
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.machine_plan import Hook
from upgrade_manager.nodes.model import ClearPendingOS, Effect, NodeView, SetPendingOS, StartJob
from upgrade_manager.nodes.single_node import decide

row = pytest.param
JOB = JobType.SINGLE_NODE_UPGRADE
START = StartJob(node="n1", job_type=JOB)
EXPECT, FORGET = SetPendingOS(node="n1", os_image=NEW), ClearPendingOS(node="n1")
UPGRADING, REBOOTING = NodeState.SINGLE_NODE_UPGRADING, NodeState.WAITING_REBOOT
DONE, FAILED = NodeState.SINGLE_NODE_UPGRADED, NodeState.SINGLE_NODE_UPGRADE_FAILED


def view(
    progress: Progress | None = None, *, state: NodeState = NodeState.IMAGE_PRELOADED, **fields: str | bool
) -> NodeView:
    jobs = {} if progress is None else {JOB: job_state(progress)}
    return replace(VIEW, jobs=jobs, state=state, **fields)  # type: ignore[arg-type]


RUNNING, COMPLETE = Progress.RUNNING, Progress.COMPLETE
#: Its Job is complete, and it runs the release's OS.
BACK = view(COMPLETE, os_image=NEW, pending_os=NEW)


@pytest.mark.rule(
    "nodes: a single node is upgraded by one Job, single-node-upgrade",
    "nodes: while its Job runs a single node is SingleNodeUpgrading",
    "nodes: when its Job completes a single node is WaitingReboot and has pendingOSImage",
    "nodes: a Ready single node with the release's OS is SingleNodeUpgraded without pendingOSImage",
    "nodes: a single node that runs the release's OS already is not rebooted",
    "nodes: a single node with a failed Job is SingleNodeUpgradeFailed",
)
@pytest.mark.parametrize(
    ("seen", "state", "effects"),
    [
        row(view(), UPGRADING, [START], id="Job started"),
        row(view(state=UPGRADING), UPGRADING, [START], id="its Job is missing: started once more"),
        row(view(RUNNING), UPGRADING, [], id="its Job runs"),
        row(view(Progress.FAILED), FAILED, [], id="its Job failed"),
        row(view(COMPLETE), REBOOTING, [EXPECT], id="its Job is complete: waits for the reboot"),
        row(view(COMPLETE, pending_os=NEW), REBOOTING, [], id="pendingOSImage is set once; Ready with the old OS"),
        row(view(COMPLETE, pending_os="other"), REBOOTING, [EXPECT], id="another upgrade's pendingOSImage is replaced"),
        row(replace(BACK, ready=False), REBOOTING, [], id="back with the new OS but not Ready"),
        row(replace(BACK, state=REBOOTING), DONE, [FORGET], id="back: new OS, Ready"),
        row(view(COMPLETE, os_image=NEW), DONE, [], id="it ran that OS already: no reboot"),
        row(view(RUNNING, os_image=NEW, pending_os=NEW), UPGRADING, [], id="its Job is retried under the new OS"),
        row(view(state=REBOOTING), REBOOTING, [EXPECT], id="its Job was removed while it reboots: not made again"),
        row(view(state=REBOOTING, os_image=NEW), DONE, [], id="its Job was removed, and the node is back"),
        row(view(state=DONE, os_image=NEW, pending_os=NEW), DONE, [FORGET], id="a remaining annotation is removed"),
        row(
            replace(view(), pre_drain=Hook(requested="D"), post_drain=Hook(requested="D")),
            UPGRADING,
            [START],
            id="stale hooks",
        ),
    ],
)
def test_decision_follows_from_observation(seen: NodeView, state: NodeState, effects: list[Effect]) -> None:
    decision = decide(seen, release_os=NEW)
    assert (decision.state, decision.effects) == (state, tuple(effects))


def test_failure_has_the_jobs_message() -> None:
    failed = job_state(Progress.FAILED, reason="R", message="m")
    decision = decide(replace(VIEW, jobs={JOB: failed}), release_os=NEW)
    assert decision.failure == decision.message == "Job h/j failed: R: m"


@pytest.mark.rule("workloads: the node's message shows each failed attempt of a node Job that retries")
def test_failed_attempts_show_while_the_job_retries() -> None:
    decision = decide(replace(VIEW, jobs={JOB: job_state(failed_attempts=1)}), release_os=NEW)
    assert decision.message == "1 failed attempt"
    assert decision.progress == "n1: single-node-upgrade Job h/j, attempt 2 of 7"


@pytest.mark.rule("nodes: the manager resumes after it went down with the single node's reboot")
def test_states_move_forward_whatever_is_observed() -> None:
    """Each step of the way may be seen or not: the manager is away while its node is."""
    way = [
        view(RUNNING),
        view(COMPLETE),
        view(COMPLETE, ready=False, pending_os=NEW),
        view(COMPLETE, ready=True, pending_os=NEW),
        replace(BACK, ready=False),
        BACK,
    ]
    for seen in product([True, False], repeat=len(way) - 1):
        state: NodeState | None = NodeState.IMAGE_PRELOADED
        for step, is_seen in zip(way, (*seen, True), strict=True):
            if is_seen:
                decision = decide(replace(step, state=state), release_os=NEW)
                assert decision.state is not None
                assert merge(state, decision.state) == decision.state
                state = state_of(merge(state, decision.state))
        assert state is DONE
