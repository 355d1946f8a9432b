"""Decisions about one node of several, then along every course of the protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster.nodes import COMPLETE, FAILED, NEW, OLD, RUNNING, VIEW, job_state
from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK, JobType
from upgrade_manager.api.node_states import NodeState, merge, state_of
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.facts.machine_plan import Hook
from upgrade_manager.nodes.drain import await_reboot, decide
from upgrade_manager.nodes.model import AcknowledgeHook, ClearPendingOS, Effect, NodeView, SetPendingOS, StartJob

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import Decision, NodeView

row = pytest.param
PRE, POST = JobType.PRE_DRAIN, JobType.POST_DRAIN
PENDING, ACKNOWLEDGED, CHANGED = Hook(requested="D"), Hook(requested="D", acknowledged="D"), Hook(requested="D2")
PRE_DRAINING, PRE_DRAINED, POST_DRAINING = NodeState.PRE_DRAINING, NodeState.PRE_DRAINED, NodeState.POST_DRAINING
REBOOTING, POST_DRAINED = NodeState.WAITING_REBOOT, NodeState.POST_DRAINED
START_PRE, START_POST = (StartJob(node="n1", job_type=kind) for kind in (PRE, POST))
ACK_PRE = AcknowledgeHook(secret="s1", annotation=ANNOTATION_PRE_HOOK, value="D", number=1)  # noqa: S106  # its name
ACK_POST = replace(ACK_PRE, annotation=ANNOTATION_POST_HOOK, number=0)
SET, CLEAR = SetPendingOS(node="n1", os_image=NEW), ClearPendingOS(node="n1")
#: By the pending hooks: pre-drain, post-drain, both.
BEFORE, AFTER = replace(VIEW, pre_drain=PENDING), replace(VIEW, post_drain=PENDING)
BOTH = replace(BEFORE, post_drain=PENDING)
#: Pre-drained, and its post-drain Job is complete.
ACKED = replace(VIEW, pre_drain=ACKNOWLEDGED, jobs={PRE: COMPLETE})
DONE = replace(AFTER, jobs={POST: COMPLETE})


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
        row(VIEW, None, [], id="no hook"),
        row(BEFORE, PRE_DRAINING, [START_PRE], id="pre-drain pending: Job started"),
        row(replace(BEFORE, jobs={PRE: RUNNING}), PRE_DRAINING, [], id="its Job runs"),
        row(replace(BEFORE, jobs={PRE: COMPLETE}), PRE_DRAINED, [ACK_PRE], id="Job complete: acknowledged"),
        row(ACKED, PRE_DRAINED, [], id="acknowledged once"),
        row(
            replace(ACKED, pre_drain=Hook(requested="D2", acknowledged="D")),
            PRE_DRAINED,
            [replace(ACK_PRE, value="D2", acknowledged="D")],
            id="options changed, Job complete for them: acknowledged",
        ),
        row(replace(BEFORE, jobs={PRE: FAILED}), NodeState.PRE_DRAIN_FAILED, [], id="its Job failed"),
        row(replace(VIEW, pre_drain=CHANGED, jobs={PRE: RUNNING}), PRE_DRAINING, [], id="options change, Job runs"),
        row(replace(VIEW, jobs={PRE: COMPLETE}), PRE_DRAINED, [], id="hook removed: nothing to acknowledge"),
        row(replace(AFTER, kubernetes_wanted="v1.33.5"), None, [], id="stale post-drain hook, Kubernetes outdated"),
        row(AFTER, PRE_DRAINING, [START_PRE], id="stale post-drain hook, Kubernetes upgraded: pre-drain Job"),
        row(replace(AFTER, state=None), PRE_DRAINING, [START_PRE], id="and without a recorded state"),
        row(replace(AFTER, jobs={PRE: RUNNING}), PRE_DRAINING, [], id="and is waited for"),
        row(
            replace(BOTH, kubernetes_wanted="v1.33.5"), PRE_DRAINING, [START_PRE], id="both hooks stale: pre-drain Job"
        ),
        row(replace(BOTH, jobs={PRE: COMPLETE}), PRE_DRAINED, [ACK_PRE], id="both stale: the first is acknowledged"),
        row(
            replace(AFTER, state=PRE_DRAINED), POST_DRAINING, [START_POST], id="pre-drained, Job deleted: not repeated"
        ),
        row(replace(ACKED, post_drain=PENDING), POST_DRAINING, [START_POST], id="post-drain pending: Job started"),
        row(
            replace(BOTH, pre_drain=ACKNOWLEDGED, jobs={PRE: COMPLETE, POST: RUNNING}), POST_DRAINING, [], id="it runs"
        ),
        row(
            replace(BOTH, jobs={PRE: COMPLETE, POST: RUNNING}), POST_DRAINING, [ACK_PRE], id="acknowledgement repeated"
        ),
        row(replace(DONE, pre_drain=PENDING, os_image=NEW), POST_DRAINED, [ACK_POST, ACK_PRE], id="both at its end"),
        row(replace(AFTER, jobs={POST: FAILED}), NodeState.POST_DRAIN_FAILED, [], id="that Job failed"),
        row(DONE, REBOOTING, [SET], id="post-drain Job complete: pendingOSImage set"),
        row(replace(DONE, pending_os=NEW), REBOOTING, [], id="pendingOSImage set once, Ready with the old OS"),
        row(replace(DONE, pending_os="Harvester v1.5.0"), REBOOTING, [SET], id="earlier pendingOSImage replaced"),
        row(replace(DONE, pending_os=NEW, os_image=NEW, ready=False), REBOOTING, [], id="the new OS, but not Ready"),
        row(replace(DONE, pending_os=NEW, os_image=NEW), POST_DRAINED, [CLEAR, ACK_POST], id="back with the new OS"),
        row(replace(DONE, os_image=NEW), POST_DRAINED, [ACK_POST], id="release OS already: no reboot"),
        row(replace(DONE, pending_os=NEW, os_image=NEW + " "), REBOOTING, [], id="OS name differs by a space"),
        row(
            replace(AFTER, state=POST_DRAINED, os_image=NEW, pending_os=NEW),
            POST_DRAINED,
            [CLEAR, ACK_POST],
            id="PostDrained without Jobs",
        ),
        row(replace(AFTER, state=REBOOTING, pending_os=NEW), REBOOTING, [], id="rebooting, Job deleted: not repeated"),
        row(
            replace(AFTER, state=REBOOTING, pending_os=NEW, os_image=NEW),
            POST_DRAINED,
            [CLEAR, ACK_POST],
            id="rebooted, Job deleted",
        ),
        row(replace(VIEW, jobs={PRE: COMPLETE, POST: RUNNING}), POST_DRAINING, [], id="hook removed, Job runs"),
    ],
)
def test_decision_follows_from_observation(view: NodeView, state: NodeState | None, effects: list[Effect]) -> None:
    decision = decide(view, release_os=NEW)
    assert (decision.state, decision.effects) == (state, tuple(effects))


@pytest.mark.parametrize("kind", [PRE, POST])
def test_failure_names_the_job(kind: JobType) -> None:
    decision = decide(replace(BEFORE, jobs={kind: FAILED}), release_os=NEW)
    assert decision.failure == decision.message == "Job h/j failed"


@pytest.mark.rule("workloads: the node's message shows each failed attempt of a node Job that retries")
def test_failed_attempts_are_in_message_and_progress() -> None:
    decision = decide(replace(BEFORE, jobs={PRE: job_state(failed_attempts=1)}), release_os=NEW)
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


def after(steps: list[str | tuple[int, bool]]) -> Protocol:
    protocol = Protocol()
    for step in steps:
        if isinstance(step, str):
            protocol.step(step)
        else:
            protocol.reconcile(effects=step[0], record=step[1])
    return protocol


@pytest.mark.rule(
    "nodes: pendingOSImage is removed from a rebooted node",
    "nodes: the post-drain hook is acknowledged only when the node is PostDrained",
)
@given(STEPS)
def test_node_is_upgraded_once_whatever_crashes(steps: list[str | tuple[int, bool]]) -> None:
    protocol = after(steps)
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
    protocol = after(steps)
    protocol.reconcile(effects=9, record=True)
    assert protocol.reconcile(effects=9, record=True).effects == ()


RESET = "; if it does not boot, reset it once, so that its fallback starts"


@pytest.mark.parametrize(
    ("os_image", "runs"),
    [
        pytest.param(
            OLD,
            f"it last reported {OLD}",
            id="not back",
        ),
        pytest.param(
            NEW,
            f"it last reported {NEW}",
            id="back and not Ready",
        ),
    ],
)
def test_reboot_is_reported_with_its_time(os_image: str, runs: str) -> None:
    job = job_state(Progress.COMPLETE, completed="2026-01-01T00:00:11Z")
    view = replace(
        VIEW, os_image=os_image, ready=False, ready_since="2026-01-01T00:05:00Z", jobs={JobType.POST_DRAIN: job}
    )
    assert await_reboot(view, NEW).progress == (
        f"n1: rebooting since 00:00 UTC on 1 January; it has not been Ready since 00:05 UTC on 1 January; {runs}. "
        f"If it takes over 30 min: Check the console of node n1, and start it{RESET if os_image != NEW else ''}"
    )


FELL_BACK = (
    f"n1: it rebooted at 00:05 UTC on 1 January into the old system, {OLD} (boot fallback). Find out on node n1 why it "
    "booted the fallback: journalctl -b -1 --no-pager -n 100"
)
REBOOTS = (
    "n1: rebooting since 00:00 UTC on 1 January. If it takes over 30 min: Find out on node n1 whether it has rebooted: "
    "journalctl --list-boots --no-pager"
)


@pytest.mark.rule("nodes: a node fell back only once it is Ready in another boot with the old OS")
@pytest.mark.parametrize(
    ("recorded", "reported", "since", "progress"),
    [
        pytest.param("a", "b", "2026-01-01T00:05:00Z", FELL_BACK, id="another boot"),
        pytest.param("a", "a", "2025-12-31T20:00:00Z", REBOOTS, id="begins to shut down"),
        pytest.param("a", "a", "2026-01-01T00:00:20Z", REBOOTS, id="Ready after its Job, in the same boot"),
        pytest.param("a", "b", "2026-01-01T00:00:00Z", REBOOTS, id="rebooted during its Job"),
        pytest.param("", "b", "2026-01-01T00:05:00Z", REBOOTS, id="Job of an earlier version"),
        pytest.param("a", "", "2026-01-01T00:05:00Z", REBOOTS, id="boot is not reported"),
    ],
)
def test_node_fell_back_only_in_another_boot(recorded: str, reported: str, since: str, progress: str) -> None:
    job = job_state(Progress.COMPLETE, completed="2026-01-01T00:00:11Z", boot_id=recorded)
    view = replace(VIEW, os_image=OLD, ready=True, ready_since=since, boot_id=reported, jobs={JobType.POST_DRAIN: job})
    assert await_reboot(view, NEW).progress == progress


def test_node_that_is_back_is_not_rebooting() -> None:
    view = replace(VIEW, os_image=NEW, ready=True, kubernetes_wanted="v2", kubelet="v1")
    assert await_reboot(view, NEW).progress == (
        "n1: it runs Kubernetes v1 instead of v2. Show the agent's log on node n1: journalctl -u rancher-system-agent "
        "--no-pager -n 100"
    )


OTHERS = "n1: other controllers have not acknowledged their hooks: example.com/a (Secret fleet-local/s1)"


@pytest.mark.parametrize(
    ("view", "progress", "holds"),
    [
        pytest.param(VIEW, "n1: waiting for Rancher to drain it", False, id="not drained yet"),
        pytest.param(
            replace(VIEW, pre_drain=Hook(others=("example.com/a",))), OTHERS, True, id="hook of another controller"
        ),
        pytest.param(ACKED, "n1: waiting for Rancher to drain it and upgrade its Kubernetes", False, id="acknowledged"),
        pytest.param(
            replace(ACKED, pre_drain=Hook(requested="D", acknowledged="D", others=("example.com/a",))),
            OTHERS,
            False,
            id="acknowledged, another controller has not",
        ),
    ],
)
def test_node_that_rancher_has_not_drained_says_why(view: NodeView, progress: str, *, holds: bool) -> None:
    found = decide(view, release_os=NEW)
    assert (found.progress, found.holds) == (progress, holds)
