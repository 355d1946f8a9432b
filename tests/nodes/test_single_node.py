"""Decisions about a single node, then along every course of its upgrade."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState, merge, state_of
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.nodes.model import ClearPendingOS, Effect, Hook, NodeView, SetPendingOS, StartJob
from upgrade_manager.nodes.single_node import decide

OLD, NEW = "Harvester v1.6.1", "Harvester v1.7.0"
JOB = JobType.SINGLE_NODE_UPGRADE
VIEW = NodeView(name="n1", state=NodeState.IMAGE_PRELOADED, os_image=OLD, ready=True, pending_os="", jobs={})
START = StartJob(node="n1", job_type=JOB)
EXPECT, FORGET = SetPendingOS(node="n1", os_image=NEW), ClearPendingOS(node="n1")
UPGRADING, REBOOTING = NodeState.SINGLE_NODE_UPGRADING, NodeState.WAITING_REBOOT
DONE, FAILED = NodeState.SINGLE_NODE_UPGRADED, NodeState.SINGLE_NODE_UPGRADE_FAILED


def view(
    progress: Progress | None = None, *, state: NodeState = NodeState.IMAGE_PRELOADED, **fields: str | bool
) -> NodeView:
    jobs = {} if progress is None else {JOB: JobState(namespace="h", name="j", progress=progress)}
    return replace(VIEW, jobs=jobs, state=state, **fields)  # type: ignore[arg-type]


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
        pytest.param(view(), UPGRADING, (START,), id="Job started"),
        pytest.param(view(state=UPGRADING), UPGRADING, (START,), id="its Job is missing: started once more"),
        pytest.param(view(Progress.RUNNING), UPGRADING, (), id="its Job runs"),
        pytest.param(view(Progress.FAILED), FAILED, (), id="its Job failed"),
        pytest.param(view(Progress.COMPLETE), REBOOTING, (EXPECT,), id="its Job is complete: waits for the reboot"),
        pytest.param(view(Progress.COMPLETE, pending_os=NEW), REBOOTING, (), id="pendingOSImage is set once"),
        pytest.param(
            view(Progress.COMPLETE, pending_os="other"),
            REBOOTING,
            (EXPECT,),
            id="another upgrade's pendingOSImage is replaced",
        ),
        pytest.param(
            view(Progress.COMPLETE, os_image=NEW, ready=False, pending_os=NEW),
            REBOOTING,
            (),
            id="back with the new OS but not Ready",
        ),
        pytest.param(view(Progress.COMPLETE, pending_os=NEW), REBOOTING, (), id="Ready with the old OS"),
        pytest.param(
            view(Progress.COMPLETE, os_image=NEW, pending_os=NEW, state=REBOOTING),
            DONE,
            (FORGET,),
            id="back: new OS, Ready",
        ),
        pytest.param(view(Progress.COMPLETE, os_image=NEW), DONE, (), id="it ran that OS already: no reboot"),
        pytest.param(
            view(Progress.RUNNING, os_image=NEW, pending_os=NEW),
            UPGRADING,
            (),
            id="its Job was killed by the reboot and is tried again under the new OS",
        ),
        pytest.param(
            view(state=REBOOTING), REBOOTING, (EXPECT,), id="its Job was removed while it reboots: not made again"
        ),
        pytest.param(view(state=REBOOTING, os_image=NEW), DONE, (), id="its Job was removed, and the node is back"),
        pytest.param(view(state=DONE, os_image=NEW, ready=False), DONE, (), id="once done it stays done"),
        pytest.param(
            view(state=DONE, os_image=NEW, pending_os=NEW), DONE, (FORGET,), id="a note that was left is removed"
        ),
        pytest.param(
            replace(view(), pre_drain=Hook(requested="D"), post_drain=Hook(requested="D")),
            UPGRADING,
            (START,),
            id="stale hooks",
        ),
    ],
)
def test_decision_follows_from_observation(seen: NodeView, state: NodeState, effects: tuple[Effect, ...]) -> None:
    decision = decide(seen, release_os=NEW)
    assert (decision.state, decision.effects) == (state, effects)


def test_failure_has_the_jobs_message() -> None:
    failed = JobState(namespace="h", name="j", progress=Progress.FAILED, reason="R", message="m")
    decision = decide(replace(VIEW, jobs={JOB: failed}), release_os=NEW)
    assert decision.failure == decision.message == "Job h/j failed: R: m"


@pytest.mark.rule("workloads: the node's message shows each failed attempt of a node Job that retries")
def test_failed_attempts_show_while_the_job_retries() -> None:
    running = JobState(namespace="h", name="j", progress=Progress.RUNNING, failed_attempts=1)
    decision = decide(replace(VIEW, jobs={JOB: running}), release_os=NEW)
    assert decision.message == "1 failed attempt"
    assert decision.progress == "n1: single-node-upgrade Job h/j, attempt 2 of 7"


@pytest.mark.rule("nodes: the manager resumes after it went down with the single node's reboot")
def test_states_move_forward_whatever_is_observed() -> None:
    """Each step of the way may be seen or not: the manager is away while its node is."""
    way = [
        view(Progress.RUNNING),
        view(Progress.COMPLETE),
        view(Progress.COMPLETE, ready=False, pending_os=NEW),
        view(Progress.COMPLETE, ready=True, pending_os=NEW),
        view(Progress.COMPLETE, os_image=NEW, ready=False, pending_os=NEW),
        view(Progress.COMPLETE, os_image=NEW, ready=True, pending_os=NEW),
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
