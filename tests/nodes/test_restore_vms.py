from __future__ import annotations

from dataclasses import replace

import pytest

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes import drain, single_node
from upgrade_manager.nodes.drain import restore_vms_failure
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.nodes.model import AcknowledgeHook, Hook, NodeView, RestoreVMs

OLD, NEW = "Harvester v1.6.1", "Harvester v1.7.0"
DONE = JobState(namespace="h", name="j", progress=Progress.COMPLETE)
BACK = NodeView(
    name="n1",
    state=NodeState.WAITING_REBOOT,
    os_image=NEW,
    ready=True,
    pending_os=NEW,
    secret="s1",  # noqa: S106  # its name
    post_drain=Hook(requested="D"),
    jobs={JobType.PRE_DRAIN: DONE, JobType.POST_DRAIN: DONE},
    restore_vms=True,
)
ONLY = replace(BACK, post_drain=Hook(), jobs={JobType.SINGLE_NODE_UPGRADE: DONE})


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


def test_hook_is_acknowledged_before_vms_are_restored() -> None:
    effects = drain.decide(BACK, release_os=NEW).effects
    assert isinstance(effects[-2], AcknowledgeHook)
    assert effects[-1] == RestoreVMs(node="n1")


@pytest.mark.rule("nodes: a failed restore-vm Job fails neither node nor upgrade")
@pytest.mark.parametrize(
    ("job", "said"),
    [
        pytest.param(None, "", id="no Job"),
        pytest.param(DONE, "", id="it is complete"),
        pytest.param(replace(DONE, progress=Progress.RUNNING, failed_attempts=2), "", id="it retries"),
        pytest.param(
            replace(DONE, progress=Progress.FAILED, reason="R", message="m"),
            "its VMs were not all started again: Job h/j failed: R: m",
            id="it has failed",
        ),
        pytest.param(
            replace(DONE, progress=Progress.RUNNING, reason="DeadlineExceeded"),
            "its VMs were not all started again: Job h/j failed: DeadlineExceeded",
            id="it has failed on a dead node, and is not said to",
        ),
    ],
)
def test_restore_failure_is_the_nodes_message(job: JobState | None, said: str) -> None:
    view = replace(BACK, state=NodeState.POST_DRAINED, jobs={JobType.RESTORE_VM: job} if job else {})
    assert restore_vms_failure(view) == said
    decision = drain.decide(view, release_os=NEW)
    assert (decision.state, decision.message, decision.failure) == (NodeState.POST_DRAINED, said, "")
