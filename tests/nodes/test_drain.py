"""Decisions about one node of several, then along every course of the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK, JobType
from upgrade_manager.api.node_states import NodeState, merge, state_of
from upgrade_manager.nodes.drain import decide
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.nodes.model import AcknowledgeHook, ClearPendingOS, Effect, Hook, NodeView, SetPendingOS, StartJob

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import Decision

OLD, NEW = "Harvester v1.6.1", "Harvester v1.7.0"
PRE, POST = JobType.PRE_DRAIN, JobType.POST_DRAIN
PENDING, ACKNOWLEDGED = Hook(requested="D"), Hook(requested="D", acknowledged="D")
VIEW = NodeView(
    name="n1",
    state=NodeState.IMAGE_PRELOADED,
    os_image=OLD,
    ready=True,
    pending_os="",
    secret="s1",  # noqa: S106  # its name
    jobs={},
)
ACKNOWLEDGE_PRE = AcknowledgeHook(secret="s1", annotation=ANNOTATION_PRE_HOOK, value="D")  # noqa: S106
ACKNOWLEDGE_POST = AcknowledgeHook(secret="s1", annotation=ANNOTATION_POST_HOOK, value="D")  # noqa: S106


def job(progress: Progress, *, failed: int = 0) -> JobState:
    return JobState(namespace="h", name="j", progress=progress, failed_attempts=failed)


RUNNING, COMPLETE, FAILED = job(Progress.RUNNING), job(Progress.COMPLETE), job(Progress.FAILED)


@pytest.mark.rule(
    "nodes: while the pre-drain hook is pending the node has a pre-drain Job and is PreDraining",
    "nodes: a pre-drain hook that is acknowledged needs no action",
    "nodes: when the pre-drain Job completes the node is PreDrained and the hook is acknowledged verbatim",
    "nodes: a pre-drain value that changes while the Job runs is acknowledged in its latest form",
    "nodes: a pending post-drain hook creates a post-drain Job and the node is PostDraining",
    "nodes: when the post-drain Job completes the node is WaitingReboot and has pendingOSImage",
    "nodes: a pendingOSImage of an earlier upgrade is replaced",
    "nodes: a Ready node with the release's OS is PostDrained",
    "nodes: pendingOSImage is removed from a rebooted node",
    "nodes: a pending hook of an earlier upgrade runs this upgrade's Jobs first, in Rancher's order",
    "nodes: a node with the release's OS when its post-drain Job completes is PostDrained without reboot",
    "nodes: a node with the new OS that is not Ready is still WaitingReboot",
    "nodes: a Ready node with another OS is still WaitingReboot",
    "nodes: a node with a failed pre-drain Job is PreDrainFailed",
    "nodes: a node with a failed post-drain Job is PostDrainFailed",
)
@pytest.mark.parametrize(
    ("view", "state", "effects"),
    [
        pytest.param(VIEW, None, (), id="no hook"),
        pytest.param(
            replace(VIEW, pre_drain=PENDING),
            NodeState.PRE_DRAINING,
            (StartJob(node="n1", job_type=PRE),),
            id="pre-drain pending: Job started",
        ),
        pytest.param(
            replace(VIEW, pre_drain=PENDING, jobs={PRE: RUNNING}), NodeState.PRE_DRAINING, (), id="its Job runs"
        ),
        pytest.param(
            replace(VIEW, pre_drain=PENDING, jobs={PRE: COMPLETE}),
            NodeState.PRE_DRAINED,
            (ACKNOWLEDGE_PRE,),
            id="Job complete: acknowledged",
        ),
        pytest.param(
            replace(VIEW, pre_drain=ACKNOWLEDGED, jobs={PRE: COMPLETE}),
            NodeState.PRE_DRAINED,
            (),
            id="acknowledged once",
        ),
        pytest.param(
            replace(VIEW, pre_drain=Hook(requested="D2", acknowledged="D"), jobs={PRE: COMPLETE}),
            NodeState.PRE_DRAINED,
            (replace(ACKNOWLEDGE_PRE, value="D2"),),
            id="options changed: acknowledged again",
        ),
        pytest.param(
            replace(VIEW, pre_drain=PENDING, jobs={PRE: FAILED}), NodeState.PRE_DRAIN_FAILED, (), id="its Job failed"
        ),
        pytest.param(
            replace(VIEW, pre_drain=Hook(requested="D2"), jobs={PRE: RUNNING}),
            NodeState.PRE_DRAINING,
            (),
            id="options change while the Job runs: not acknowledged",
        ),
        pytest.param(
            replace(VIEW, jobs={PRE: COMPLETE}), NodeState.PRE_DRAINED, (), id="hook removed: nothing to acknowledge"
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, kubernetes_outdated=True),
            None,
            (),
            id="stale post-drain hook, Kubernetes outdated: nothing to do",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING),
            NodeState.PRE_DRAINING,
            (StartJob(node="n1", job_type=PRE),),
            id="stale post-drain hook, Kubernetes upgraded: pre-drain Job",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={PRE: RUNNING}), NodeState.PRE_DRAINING, (), id="and is waited for"
        ),
        pytest.param(
            replace(VIEW, pre_drain=PENDING, post_drain=PENDING, kubernetes_outdated=True),
            NodeState.PRE_DRAINING,
            (StartJob(node="n1", job_type=PRE),),
            id="both hooks stale: pre-drain Job",
        ),
        pytest.param(
            replace(VIEW, pre_drain=PENDING, post_drain=PENDING, jobs={PRE: COMPLETE}),
            NodeState.POST_DRAINING,
            (StartJob(node="n1", job_type=POST), ACKNOWLEDGE_PRE),
            id="both hooks stale, Job complete: post-drain Job",
        ),
        pytest.param(
            replace(VIEW, state=NodeState.PRE_DRAINED, post_drain=PENDING),
            NodeState.POST_DRAINING,
            (StartJob(node="n1", job_type=POST),),
            id="Job of a recorded pre-drained node deleted: not repeated",
        ),
        pytest.param(
            replace(VIEW, pre_drain=ACKNOWLEDGED, post_drain=PENDING, jobs={PRE: COMPLETE}),
            NodeState.POST_DRAINING,
            (StartJob(node="n1", job_type=POST),),
            id="post-drain pending: Job started",
        ),
        pytest.param(
            replace(VIEW, pre_drain=ACKNOWLEDGED, post_drain=PENDING, jobs={PRE: COMPLETE, POST: RUNNING}),
            NodeState.POST_DRAINING,
            (),
            id="that Job runs",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={PRE: COMPLETE, POST: FAILED}),
            NodeState.POST_DRAIN_FAILED,
            (),
            id="that Job failed",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}),
            NodeState.WAITING_REBOOT,
            (SetPendingOS(node="n1", os_image=NEW),),
            id="post-drain Job complete: pendingOSImage set",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, pending_os=NEW),
            NodeState.WAITING_REBOOT,
            (),
            id="pendingOSImage set once",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, pending_os="Harvester v1.5.0"),
            NodeState.WAITING_REBOOT,
            (SetPendingOS(node="n1", os_image=NEW),),
            id="an earlier upgrade's pendingOSImage is replaced",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, pending_os=NEW, os_image=NEW, ready=False),
            NodeState.WAITING_REBOOT,
            (),
            id="the new OS, but not Ready",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, pending_os=NEW, os_image=NEW),
            NodeState.POST_DRAINED,
            (ClearPendingOS(node="n1"), ACKNOWLEDGE_POST),
            id="back with the new OS: cleared and acknowledged",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, os_image=NEW),
            NodeState.POST_DRAINED,
            (ACKNOWLEDGE_POST,),
            id="release OS already: no reboot",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, pending_os=NEW, os_image=OLD, ready=True),
            NodeState.WAITING_REBOOT,
            (),
            id="Ready with the old OS",
        ),
        pytest.param(
            replace(VIEW, post_drain=PENDING, jobs={POST: COMPLETE}, pending_os=NEW, os_image=NEW + " "),
            NodeState.WAITING_REBOOT,
            (),
            id="OS name differs by a space",
        ),
        pytest.param(
            replace(VIEW, state=NodeState.POST_DRAINED, post_drain=PENDING, pending_os=NEW),
            NodeState.POST_DRAINED,
            (ClearPendingOS(node="n1"), ACKNOWLEDGE_POST),
            id="PostDrained without Jobs",
        ),
        pytest.param(
            replace(VIEW, state=NodeState.POST_DRAINED, jobs={POST: COMPLETE}, os_image=OLD),
            NodeState.POST_DRAINED,
            (),
            id="PostDrained with the old OS",
        ),
        pytest.param(
            replace(VIEW, state=NodeState.WAITING_REBOOT, post_drain=PENDING, pending_os=NEW),
            NodeState.WAITING_REBOOT,
            (),
            id="Job of a rebooting node deleted: not repeated",
        ),
        pytest.param(
            replace(VIEW, state=NodeState.WAITING_REBOOT, post_drain=PENDING, pending_os=NEW, os_image=NEW),
            NodeState.POST_DRAINED,
            (ClearPendingOS(node="n1"), ACKNOWLEDGE_POST),
            id="the same, back with the new OS",
        ),
        pytest.param(
            replace(VIEW, jobs={PRE: COMPLETE, POST: RUNNING}),
            NodeState.POST_DRAINING,
            (),
            id="hook removed while the Job runs",
        ),
    ],
)
def test_decision_follows_from_observation(
    view: NodeView, state: NodeState | None, effects: tuple[Effect, ...]
) -> None:
    decision = decide(view, release_os=NEW)
    assert (decision.state, decision.effects) == (state, effects)


@pytest.mark.parametrize("hook", ["pre", "post"])
def test_failure_names_the_job(hook: str) -> None:
    view = replace(VIEW, pre_drain=PENDING, jobs={PRE if hook == "pre" else POST: FAILED})
    decision = decide(view, release_os=NEW)
    assert decision.failure == decision.message == "Job h/j failed"


@pytest.mark.rule("workloads: the node's message shows each failed attempt of a node Job that retries")
def test_failed_attempts_are_in_message_and_progress() -> None:
    view = replace(VIEW, pre_drain=PENDING, jobs={PRE: job(Progress.RUNNING, failed=1)})
    decision = decide(view, release_os=NEW)
    assert decision.message == "1 failed attempt"
    assert decision.progress == "n1: pre-drain Job h/j, attempt 2 of 7"


@dataclass
class Protocol:
    """Rancher, Jobs, kubelet, and a manager whose state is the plan, the Node and the Secret."""

    recorded: NodeState | None = NodeState.IMAGE_PRELOADED
    pre: Hook = field(default_factory=Hook)
    post: Hook = field(default_factory=Hook)
    jobs: dict[JobType, JobState] = field(default_factory=dict)
    os_image: str = OLD
    ready: bool = True
    pending: str = ""
    cleared: bool = False
    started: list[JobType] = field(default_factory=list)
    path: list[NodeState] = field(default_factory=list)

    def view(self) -> NodeView:
        return replace(
            VIEW,
            state=self.recorded,
            os_image=self.os_image,
            ready=self.ready,
            pending_os=self.pending,
            pre_drain=self.pre,
            post_drain=self.post,
            jobs=dict(self.jobs),
        )

    def reconcile(self, *, effects: int, record: bool) -> Decision:
        """Reconcile, and crash after so many effects or before the status is written."""
        decision = decide(self.view(), release_os=NEW)
        for effect in decision.effects[:effects]:
            self.apply(effect)
        if record and effects >= len(decision.effects) and decision.state is not None:
            self.recorded = state_of(merge(self.recorded, decision.state))
            assert self.recorded is not None
            self.path.append(self.recorded)
        return decision

    def apply(self, effect: Effect) -> None:
        match effect:
            case StartJob(job_type=kind):
                if kind not in self.jobs:
                    self.jobs[kind] = RUNNING
                    self.started.append(kind)
            case AcknowledgeHook(annotation=annotation, value=value):
                kind = PRE if annotation == ANNOTATION_PRE_HOOK else POST
                assert self.jobs[kind].progress is Progress.COMPLETE
                if kind is PRE:
                    self.pre = replace(self.pre, acknowledged=value)
                else:
                    assert self.os_image == NEW
                    assert self.pending == ""
                    self.post = replace(self.post, acknowledged=value)
            case SetPendingOS(os_image=os_image):
                self.pending = os_image
            case ClearPendingOS():
                self.pending = ""

    def step(self, event: str) -> None:
        """Let Rancher, the Jobs or the node take a step, if it applies."""
        match event:
            case "request" if not self.pre.requested and not self.cleared:
                self.pre = replace(self.pre, requested="D")
            case "request" if self.pre.acknowledged == "D" and not self.post.requested and not self.cleared:
                self.post = replace(self.post, requested="D")
            case "clear" if self.post.requested and self.post.acknowledged == self.post.requested:
                self.pre, self.post, self.cleared = Hook(), Hook(), True
            case "complete":
                self.jobs = {
                    kind: COMPLETE if state.progress is Progress.RUNNING else state for kind, state in self.jobs.items()
                }
            case "reboot" if self.jobs.get(POST) == COMPLETE and self.ready:
                self.os_image, self.ready = NEW, False
            case "ready":
                self.ready = True


EVENTS = st.sampled_from(["request", "clear", "complete", "reboot", "ready"])
STEPS = st.lists(st.one_of(EVENTS, st.tuples(st.integers(0, 2), st.booleans())), max_size=60)


@pytest.mark.rule(
    "nodes: pendingOSImage is removed from a rebooted node",
    "nodes: the post-drain hook is acknowledged only when the node is PostDrained",
)
@given(STEPS)
def test_node_is_upgraded_once_whatever_crashes(steps: list[str | tuple[int, bool]]) -> None:
    protocol = Protocol()
    for step in steps:
        if isinstance(step, str):
            protocol.step(step)
        else:
            protocol.reconcile(effects=step[0], record=step[1])
    for _ in range(12):
        for event in ("request", "complete", "reboot", "ready", "clear"):
            protocol.reconcile(effects=9, record=True)
            protocol.step(event)
    assert protocol.recorded is NodeState.POST_DRAINED
    assert protocol.started == [PRE, POST]
    assert protocol.cleared
    assert protocol.pending == ""
    groups = [state.group for state in protocol.path]
    assert groups == sorted(groups)


@given(STEPS)
def test_applied_decision_has_no_more_effects(steps: list[str | tuple[int, bool]]) -> None:
    protocol = Protocol()
    for step in steps:
        if isinstance(step, str):
            protocol.step(step)
        else:
            protocol.reconcile(effects=step[0], record=step[1])
    protocol.reconcile(effects=9, record=True)
    again = protocol.reconcile(effects=9, record=True)
    assert again.effects == ()
