from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.nodes import COMPLETE, FAILED, NEW, OLD, RUNNING, VIEW
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.machine_plan import Hook
from upgrade_manager.nodes import drain, single_node
from upgrade_manager.nodes.model import AcknowledgeHook, NodeView, RestoreVMs

if TYPE_CHECKING:
    from upgrade_manager.facts.job_state import JobState

REBOOTED = replace(VIEW, state=NodeState.WAITING_REBOOT, os_image=NEW, pending_os=NEW, restore_vms=True)
DRAINED = {JobType.PRE_DRAIN: COMPLETE, JobType.POST_DRAIN: COMPLETE}
BACK = replace(REBOOTED, post_drain=Hook(requested="D"), jobs=DRAINED)
ONLY = replace(REBOOTED, jobs={JobType.SINGLE_NODE_UPGRADE: COMPLETE})


@pytest.mark.rule(
    "nodes: with restoreVM a rebooted node gets a restore-vm Job", "nodes: VMs are restored only after the node is back"
)
@pytest.mark.parametrize("single", [False, True], ids=["multi-node", "single-node"])
@pytest.mark.parametrize(
    ("change", "restores"),
    [
        pytest.param({}, True, id="the node is back"),
        pytest.param({"restore_vms": False}, False, id="not requested, or a witness"),
        pytest.param({"ready": False}, False, id="it has the OS, but is not Ready"),
        pytest.param({"os_image": OLD}, False, id="it is Ready, with the old OS"),
    ],
)
def test_vms_are_restored_once_the_node_is_back(*, change: dict[str, object], restores: bool, single: bool) -> None:
    view = replace(ONLY if single else BACK, **change)  # type: ignore[arg-type]  # a table
    decide = single_node.decide if single else drain.decide
    assert (RestoreVMs(node="n1") in decide(view, release_os=NEW).effects) is restores


@pytest.mark.parametrize(
    ("view", "state"),
    [
        pytest.param(BACK, NodeState.POST_DRAINED, id="multi-node"),
        pytest.param(ONLY, NodeState.SINGLE_NODE_UPGRADED, id="single-node"),
    ],
)
def test_no_job_once_the_node_is_recorded_as_done(view: NodeView, state: NodeState) -> None:
    decide = single_node.decide if view is ONLY else drain.decide
    assert RestoreVMs(node="n1") not in decide(replace(view, state=state), release_os=NEW).effects


@pytest.mark.parametrize("view", [BACK, ONLY], ids=["multi-node", "single-node"])
def test_existing_job_of_the_request_is_not_created_again(view: NodeView) -> None:
    decide = single_node.decide if view is ONLY else drain.decide
    started = replace(view, jobs={**view.jobs, JobType.RESTORE_VM: RUNNING})
    assert RestoreVMs(node="n1") not in decide(started, release_os=NEW).effects


def test_hook_is_acknowledged_before_vms_are_restored() -> None:
    effects = drain.decide(BACK, release_os=NEW).effects
    assert isinstance(effects[-2], AcknowledgeHook)
    assert effects[-1] == RestoreVMs(node="n1")


@pytest.mark.rule("nodes: a failed restore-vm Job fails neither node nor upgrade")
@pytest.mark.parametrize("job", [COMPLETE, FAILED, replace(RUNNING, reason="DeadlineExceeded")])
def test_restore_failure_does_not_fail_the_node(job: JobState) -> None:
    view = replace(BACK, state=NodeState.POST_DRAINED, jobs={JobType.RESTORE_VM: job})
    decision = drain.decide(view, release_os=NEW)
    assert (decision.state, decision.failure) == (NodeState.POST_DRAINED, "")
