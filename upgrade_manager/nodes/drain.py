"""The upgrade of one node of several: Rancher asks twice, a Job answers each time, the node reboots in between.

    asked pre-drain  -> Job pre-drain   PreDraining  -> PreDrained     -> answer
    asked post-drain -> Job post-drain  PostDraining -> WaitingReboot  -> node is back: PostDrained -> answer

A second question before ours was asked is one that an earlier upgrade has left open. Rancher repeats neither: it takes
the node as it is, drained, to the release as soon as its turn comes, and then waits for our answer to the old question,
which it gets after both Jobs of this upgrade. Until its turn has come there is nothing to do on such a node.

Nothing here does anything: the decision follows from what is observed, so it is the same after any crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.decision import Decision
from upgrade_manager.nodes.effects import AnswerHook, ExpectOS, ForgetOS, StartJob
from upgrade_manager.nodes.job_state import JobState, Progress
from upgrade_manager.nodes.pause import first_step
from upgrade_manager.nodes.restoration import complaint, restoration

if TYPE_CHECKING:
    from upgrade_manager.nodes.effects import Effect
    from upgrade_manager.nodes.model import Hook, NodeView


def decide(view: NodeView, *, release_os: str) -> Decision:
    """Judge one node. A later step's evidence wins over an earlier one's: Jobs outlive Rancher's questions."""
    if view.state is NodeState.POST_DRAINED:
        return _finished(view)
    if JobType.POST_DRAIN in view.jobs or view.state is NodeState.WAITING_REBOOT:
        return _post_drain(view, release_os)
    if view.post_drain.open and _is_pre_drained(view):
        return _post_drain(view, release_os)
    if view.pre_drain.open or JobType.PRE_DRAIN in view.jobs:
        return _pre_drain(view)
    if view.post_drain.open and not view.behind:
        return _pre_drain(view)
    return Decision(state=None, waits_for=f"Rancher to drain node {view.name}")


def _is_pre_drained(view: NodeView) -> bool:
    job = view.jobs.get(JobType.PRE_DRAIN)
    if job is not None:
        return job.progress is Progress.COMPLETE
    # Somebody has removed the Job; what it has done is on record.
    return view.state is not None and view.state.group >= NodeState.PRE_DRAINED.group


def _pre_drain(view: NodeView) -> Decision:
    first = first_step(view, JobType.PRE_DRAIN, begun=NodeState.PRE_DRAINING)
    if first is not None:
        return first
    job = view.jobs[JobType.PRE_DRAIN]
    unfinished = not_complete(view, job, running=NodeState.PRE_DRAINING, failed=NodeState.PRE_DRAIN_FAILED)
    if unfinished is not None:
        return unfinished
    return Decision(
        state=NodeState.PRE_DRAINED,
        waits_for=f"Rancher to drain node {view.name} and upgrade its Kubernetes",
        effects=_answer(view, view.pre_drain, ANNOTATION_PRE_HOOK),
    )


def _post_drain(view: NodeView, release_os: str) -> Decision:
    job = view.jobs.get(JobType.POST_DRAIN)
    if job is None and view.state is NodeState.WAITING_REBOOT:
        # Its Job has done its work, and somebody has removed it: it must not be done once more.
        return _back(view, release_os)
    if job is None:
        start = StartJob(node=view.name, job_type=JobType.POST_DRAIN)
        effects = (start, *_answer(view, view.pre_drain, ANNOTATION_PRE_HOOK))
        return Decision(state=NodeState.POST_DRAINING, waits_for=f"node {view.name}: post-drain", effects=effects)
    unfinished = not_complete(view, job, running=NodeState.POST_DRAINING, failed=NodeState.POST_DRAIN_FAILED)
    if unfinished is not None:
        return unfinished
    return _back(view, release_os)


def _back(view: NodeView, release_os: str) -> Decision:
    """The Job is done: what is left is the reboot, unless there was nothing to reboot for."""
    return _finished(view) if is_back(view, release_os) else reboot(view, release_os)


def is_back(view: NodeView, release_os: str) -> bool:
    """Whether the node runs the release and may be used; one that ran it before its Job did gets no reboot."""
    return view.os_image == release_os and view.ready


def reboot(view: NodeView, release_os: str) -> Decision:
    """Wait for the node to come back, having noted on it as what."""
    expected = () if view.pending_os == release_os else (ExpectOS(node=view.name, os_image=release_os),)
    missing = "to be Ready" if view.os_image == release_os else f'to come back with "{release_os}"'
    return Decision(state=NodeState.WAITING_REBOOT, waits_for=f"node {view.name} {missing}", effects=expected)


def _finished(view: NodeView) -> Decision:
    """Nothing is left to do, so Rancher need not wait for anything: should it ask once more, it may go on."""
    forget = (ForgetOS(node=view.name),) if view.pending_os else ()
    again = _answer(view, view.pre_drain, ANNOTATION_PRE_HOOK)
    answer = _answer(view, view.post_drain, ANNOTATION_POST_HOOK)
    effects = forget + again + answer + restoration(view)
    return Decision(state=NodeState.POST_DRAINED, effects=effects, note=complaint(view))


def _answer(view: NodeView, hook: Hook, annotation: str) -> tuple[Effect, ...]:
    return (AnswerHook(secret=view.secret, annotation=annotation, value=hook.asked),) if hook.open else ()


def not_complete(view: NodeView, job: JobState, *, running: NodeState, failed: NodeState) -> Decision | None:
    """The decision about a node whose Job runs or has failed; None where it is complete."""
    if job.progress is Progress.FAILED:
        return Decision(state=failed, note=job.cause, failure=job.cause)
    if job.progress is Progress.COMPLETE:
        return None
    trouble = f" ({job.trouble})" if job.trouble else ""
    waits_for = f"node {view.name}: Job {job.namespace}/{job.name}{trouble}"
    return Decision(state=running, waits_for=waits_for, note=job.trouble)
