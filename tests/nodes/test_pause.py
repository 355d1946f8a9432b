"""Which nodes are paused, started and resumed, for both kinds of cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.cluster.nodes import COMPLETE, FAILED, NEW, RUNNING, job_state
from tests.support.cluster.nodes import VIEW as UNREQUESTED
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState, merge
from upgrade_manager.facts.machine_plan import Hook
from upgrade_manager.nodes import drain, single_node
from upgrade_manager.nodes.model import (
    AcknowledgeHook,
    ClearPendingOS,
    Decision,
    Effect,
    RemoveJob,
    RestoreVMs,
    ResumeJob,
    SetPendingOS,
    StartJob,
)
from upgrade_manager.nodes.pauses import with_new_job
from upgrade_manager.nodes.sequencing import start_or_pause, starts_upgrade

VIEW = replace(UNREQUESTED, pre_drain=Hook(requested="D"))
JOBS = {"suspended": job_state(suspended=True), "running": RUNNING, "complete": COMPLETE, "failed": FAILED}
KINDS = [
    pytest.param(JobType.PRE_DRAIN, NodeState.PRE_DRAINING, id="multi-node"),
    pytest.param(JobType.SINGLE_NODE_UPGRADE, NodeState.SINGLE_NODE_UPGRADING, id="single-node"),
]


@pytest.mark.rule(
    "nodes: a listed node becomes UpgradePaused with a suspended Job when its hook is pending",
    "nodes: removing the name from the list resumes the node within a second",
    "nodes: listing a node that has started does not stop it",
)
@pytest.mark.parametrize(("job_type", "begun"), KINDS)
@pytest.mark.parametrize(
    ("listed", "state", "there", "stands", "does"),
    [
        pytest.param(False, None, None, "begun", "start", id="not listed: its Job is started"),
        pytest.param(True, None, None, "paused", "start suspended", id="listed: its Job exists, suspended"),
        pytest.param(True, "ImagePreloaded", "suspended", "paused", "", id="made and not recorded: it stays so"),
        pytest.param(True, "UpgradePaused", "suspended", "paused", "", id="listed as before: nothing to do"),
        pytest.param(False, "UpgradePaused", "suspended", "begun", "resume", id="taken off: resumed"),
        pytest.param(False, "ImagePreloaded", "suspended", "begun", "resume", id="taken off, not recorded"),
        pytest.param(True, "UpgradePaused", "running", None, "", id="it runs: listing it does not stop it"),
        pytest.param(True, "ImagePreloaded", "running", None, "", id="started and not recorded: not stopped"),
        pytest.param(True, "begun", "running", None, "", id="begun and listed: not stopped"),
        pytest.param(True, "begun", "suspended", "begun", "resume", id="recorded as begun, not resumed yet: resumed"),
        pytest.param(True, "begun", None, "begun", "start", id="recorded as begun, not started yet: started"),
        pytest.param(False, "begun", None, "begun", "start", id="Job of a started node deleted: started again"),
        pytest.param(True, "UpgradePaused", None, "paused", "start suspended", id="suspended Job deleted"),
        pytest.param(True, "UpgradePaused", "complete", None, "", id="its end counts, listed or not"),
        pytest.param(True, "UpgradePaused", "failed", None, "", id="its failure counts, listed or not"),
    ],
)
def test_first_job_is_started_paused_or_resumed(
    job_type: JobType, begun: NodeState, *, listed: bool, state: str | None, there: str | None, stands: str, does: str
) -> None:
    recorded = begun if state == "begun" else NodeState(state) if state else None
    view = replace(VIEW, paused=listed, state=recorded, jobs={job_type: JOBS[there]} if there else {})
    step = start_or_pause(view, job_type, running=begun)
    if not stands:
        assert step is None
        return
    assert step is not None
    assert step.state is (begun if stands == "begun" else NodeState.UPGRADE_PAUSED)
    effects: dict[str, tuple[Effect, ...]] = {
        "": (),
        "start": (StartJob(node="n1", job_type=job_type),),
        "start suspended": (StartJob(node="n1", job_type=job_type, suspended=True),),
        "resume": (ResumeJob(node="n1", job_type=job_type),),
    }
    assert step.effects == effects[does]
    # Each decision may be recorded: a record swallows none of them.
    assert merge(recorded, step.state) == step.state


@pytest.mark.rule("nodes: a listed node without pending hook is not paused yet")
def test_node_without_a_pending_hook_is_not_paused() -> None:
    decision = drain.decide(replace(VIEW, paused=True, pre_drain=Hook()), release_os=NEW)
    assert (decision.state, decision.effects) == (None, ())


@pytest.mark.rule("api: nodes in pauseNodes are held in UpgradePaused before they are drained")
def test_both_kinds_of_cluster_pause() -> None:
    view = replace(VIEW, paused=True)
    for decide, job_type in ((drain.decide, JobType.PRE_DRAIN), (single_node.decide, JobType.SINGLE_NODE_UPGRADE)):
        decision = decide(view, release_os=NEW)
        assert decision.state is NodeState.UPGRADE_PAUSED
        assert decision.effects == (StartJob(node="n1", job_type=job_type, suspended=True),)


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (StartJob(node="n", job_type=JobType.PRE_DRAIN), True),
        (StartJob(node="n", job_type=JobType.SINGLE_NODE_UPGRADE), True),
        (ResumeJob(node="n", job_type=JobType.PRE_DRAIN), True),
        (StartJob(node="n", job_type=JobType.PRE_DRAIN, suspended=True), False),
        (StartJob(node="n", job_type=JobType.POST_DRAIN), False),
        (AcknowledgeHook(secret="s", annotation="a", value="v"), False),  # noqa: S106  # its name
        (SetPendingOS(node="n", os_image=NEW), False),
        (ClearPendingOS(node="n"), False),
        (RestoreVMs(node="n"), False),
    ],
    ids=str,
)
def test_effects_that_start_a_node(effect: Effect, *, expected: bool) -> None:
    assert starts_upgrade(effect) is expected


@pytest.mark.parametrize(
    ("state", "effect"),
    [
        pytest.param(NodeState.UPGRADE_PAUSED, RemoveJob, id="it has not begun"),
        pytest.param(NodeState.SINGLE_NODE_UPGRADING, ResumeJob, id="it has begun, which a late cache hides"),
    ],
)
def test_suspended_job_is_replaced_only_before_the_node_begins(state: NodeState, effect: type[Effect]) -> None:
    job_type = JobType.SINGLE_NODE_UPGRADE
    view = replace(VIEW, state=state, jobs={job_type: JOBS["suspended"]})
    resumed = Decision(state=None, effects=(ResumeJob(node=view.name, job_type=job_type),))
    assert [type(one) for one in with_new_job(view, resumed).effects] == [effect]
