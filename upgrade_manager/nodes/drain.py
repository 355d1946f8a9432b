"""The upgrade of a node in a multi-node cluster: a Job runs for each of Rancher's two hooks, the second one reboots.

    pre-drain hook pending  -> Job pre-drain   PreDraining  -> PreDrained
    post-drain hook pending -> Job post-drain  PostDraining -> WaitingReboot  -> node is back: PostDrained

A hook is acknowledged when the last state in its row is reached. A node that is done is observed until the phase ends:
while it is NotReady or runs another OS, it holds the phase, and its hooks are not acknowledged.

A failed upgrade may leave a post-drain hook pending. Rancher does not repeat the pre-drain hook of such a node: Rancher
upgrades the node's Kubernetes together with its tier, then waits for the post-drain hook. The manager does not touch
the node until Rancher waits; then the manager runs the pre-drain Job and the post-drain Job.

Decisions depend on observed objects alone, so they are the same after any crash.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.timestamps import clock_of
from upgrade_manager.facts import node_obstacles
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.nodes import repeated_drain
from upgrade_manager.nodes.expected_times import USUAL_REBOOT
from upgrade_manager.nodes.model import AcknowledgeHook, ClearPendingOS, Decision, RestoreVMs, SetPendingOS, StartJob
from upgrade_manager.nodes.sequencing import replace_job, start_or_pause

if TYPE_CHECKING:
    from upgrade_manager.facts.machine_plan import Hook
    from upgrade_manager.facts.node_obstacles import NodeObstacle
    from upgrade_manager.nodes.model import Effect, NodeView

#: The progress of a node that Rancher has not reached.
_WAITS = "waiting for Rancher to drain it"
#: The minutes after which a message gives advice, which is the deadline of the node's blocker.
_OVERDUE = round(USUAL_REBOOT / 60)


def decide(view: NodeView, *, release_os: str) -> Decision:
    """Decide about one node. Later steps are checked first, because Jobs outlive Rancher's hooks."""
    if view.is_upgraded:
        return lost(view, release_os, NodeState.POST_DRAINED) or repeated_drain.decide(view) or _done(view)
    if _is_undrained(view):
        return _undrained(view, release_os)
    if JobType.POST_DRAIN in view.jobs or _is_drained(view):
        return _post_drain(view, release_os)
    is_due = view.post_drain.pending and not view.kubernetes_outdated
    if is_due or view.pre_drain.pending or JobType.PRE_DRAIN in view.jobs:
        return _pre_drain(view)
    return _before_drain(view)


def _before_drain(view: NodeView) -> Decision:
    """Wait for Rancher to set the pre-drain hook; a hook may be acknowledged while its Job has been deleted."""
    if view.pre_drain.requested and not view.post_drain.requested:
        return Decision(state=None, progress=f"{view.name}: {_after_pre_drain(view)}", holds=True)
    if view.cordon_error:
        refused = f"{view.name}: {node_obstacles.cordon_refused(view.cordon_error).why}"
        return Decision(state=None, progress=refused, holds=True)
    others = view.pre_drain.others
    waits = node_obstacles.foreign_hooks(view.secret, others) if others else _WAITS
    return Decision(state=None, progress=f"{view.name}: {waits}", holds=bool(others))


def _is_undrained(view: NodeView) -> bool:
    """Return True for a node that has begun, or was reinstalled, and that Rancher does not drain (any more)."""
    if view.drains or not view.secret or JobType.POST_DRAIN in view.jobs:
        return False
    return view.reinstalled or view.state in {NodeState.PRE_DRAINING, NodeState.PRE_DRAINED}


def _undrained(view: NodeView, release_os: str) -> Decision:
    """Finish a node that runs the release without a drain, such as a reinstalled one; other nodes wait for no other."""
    if runs_release(view, release_os):
        return _done(view)
    has_begun = view.state in {NodeState.PRE_DRAINING, NodeState.PRE_DRAINED}
    progress = f"{view.name}: {node_obstacles.FORGOTTEN if has_begun else _WAITS}"
    return Decision(state=view.state if has_begun else None, progress=progress, is_forgotten=has_begun)


def _is_drained(view: NodeView) -> bool:
    """Return True for a node that Rancher has drained for the present request.

    A pre-drain hook that is pending is a new request, unless the node's drain has not ended: then another client has
    removed the acknowledgement.
    """
    if view.pre_drain.pending:
        return view.state is NodeState.WAITING_REBOOT and bool(view.post_drain.requested)
    return _is_rebooting(view) or (view.post_drain.pending and _is_pre_drained(view))


def _is_rebooting(view: NodeView) -> bool:
    """Return True if the post-drain Job of the present request is complete; earlier versions recorded no request."""
    return view.state is NodeState.WAITING_REBOOT and view.requests.rebooted in {0, view.request_number}


def _is_pre_drained(view: NodeView) -> bool:
    job = view.jobs.get(JobType.PRE_DRAIN)
    if job is not None:
        return job.progress is Progress.COMPLETE
    if view.request_number and view.requests.uncordoned == view.request_number:
        return False
    # The Job may have been deleted, but its completion is recorded.
    return view.state is not None and view.state.group >= NodeState.PRE_DRAINED.group


def _pre_drain(view: NodeView) -> Decision:
    first = start_or_pause(view, JobType.PRE_DRAIN, running=NodeState.PRE_DRAINING)
    if first is not None:
        return first
    unfinished = unfinished_job(
        view, JobType.PRE_DRAIN, running=NodeState.PRE_DRAINING, failed=NodeState.PRE_DRAIN_FAILED
    )
    return unfinished or Decision(
        state=NodeState.PRE_DRAINED,
        progress=f"{view.name}: {_after_pre_drain(view)}",
        effects=_acknowledge(view, view.pre_drain, ANNOTATION_PRE_HOOK),
    )


def _after_pre_drain(view: NodeView) -> str:
    if view.pre_drain.others:
        return node_obstacles.foreign_hooks(view.secret, view.pre_drain.others)
    return node_obstacles.AWAITS_DRAIN.format("it")


def _post_drain(view: NodeView, release_os: str) -> Decision:
    """Decide about a drained node; an earlier version may have started its Job before it acknowledged the hook."""
    decision, job = _after_drain(view, release_os), view.jobs.get(JobType.POST_DRAIN)
    if job is None or job.request not in {"", view.request} or not view.post_drain.requested:
        return decision
    acknowledgement = _acknowledge(view, view.pre_drain, ANNOTATION_PRE_HOOK)
    return replace(decision, effects=(*decision.effects, *acknowledgement))


def _after_drain(view: NodeView, release_os: str) -> Decision:
    if JobType.POST_DRAIN in view.jobs:
        unfinished = unfinished_job(
            view, JobType.POST_DRAIN, running=NodeState.POST_DRAINING, failed=NodeState.POST_DRAIN_FAILED
        )
        return unfinished or _reboot(view, release_os)
    if view.pre_drain.pending or _is_rebooting(view):
        # The Job has completed and was deleted: it must not run again.
        return _reboot(view, release_os)
    if JobType.POST_DRAIN in view.old_jobs:
        # The recorded state may be that of the earlier request.
        return replace_job(view, JobType.POST_DRAIN, state=None)
    start = StartJob(node=view.name, job_type=JobType.POST_DRAIN, request=view.request)
    return Decision(state=NodeState.POST_DRAINING, effects=(start,))


def _reboot(view: NodeView, release_os: str) -> Decision:
    return _done(view) if runs_release(view, release_os) else await_reboot(view, release_os)


def _done(view: NodeView) -> Decision:
    """Finish the node, and acknowledge the post-drain hook; hooks of other controllers beside it hold the phase."""
    effects = (
        *clear_pending_os(view),
        *_acknowledge(view, view.post_drain, ANNOTATION_POST_HOOK),
        *restore_vms(view),
    )
    others = view.post_drain.others
    waits = f"{view.name}: {node_obstacles.foreign_hooks(view.secret, others)}" if others else ""
    return Decision(state=NodeState.POST_DRAINED, progress=waits, effects=effects, holds=bool(others))


def _acknowledge(view: NodeView, hook: Hook, annotation: str) -> tuple[Effect, ...]:
    if not hook.pending:
        return ()
    is_drain = annotation == ANNOTATION_PRE_HOOK
    return (AcknowledgeHook.of_drain(view) if is_drain else AcknowledgeHook.of_return(view),)


def unfinished_job(view: NodeView, job_type: JobType, *, running: NodeState, failed: NodeState) -> Decision | None:
    """Return the decision about a node whose Job of that type runs or failed; None once it is complete."""
    job = view.jobs[job_type]
    if job.progress is Progress.FAILED:
        return Decision(state=failed, message=job.cause, failure=job.cause)
    if job.progress is Progress.COMPLETE:
        return None
    return Decision(state=running, progress=job_message(view.name, job_type, job), message=job.warning)


def job_message(node: str, job_type: JobType, job: JobState) -> str:
    """Return the progress of a node's running Job, for the Progressing condition."""
    return f"{node}: {job_type} Job {job.namespace}/{job.name}, {job.describe()}"


def runs_release(view: NodeView, release_os: str) -> bool:
    """Return True if the node runs the release's OS and Kubernetes, and is Ready."""
    return view.os_image == release_os and view.ready and not view.kubernetes_outdated


def not_back(view: NodeView, release_os: str, *, reboots: bool = False) -> NodeObstacle:
    """Return why a node that has to run the release does not run it, or is not Ready."""
    found = node_obstacles.not_back(
        view.name,
        os_image=view.os_image,
        release_os=release_os,
        kubelet=view.kubelet,
        release_kubernetes=view.kubernetes_wanted,
        is_ready=view.ready,
        since=view.ready_since,
        reboot=node_obstacles.Reboot.of(is_awaited=reboots, is_done=view.has_rebooted),
    )
    if found is None:
        raise ValueError(f"node {view.name} runs the release")
    return found


def await_reboot(view: NodeView, release_os: str) -> Decision:
    """Wait until the node is back, with the expected OS in its annotation."""
    expected = () if view.pending_os == release_os else (SetPendingOS(node=view.name, os_image=release_os),)
    obstacle = not_back(view, release_os, reboots=True)
    if view.ready and (view.has_rebooted or view.os_image == release_os):
        progress = f"{view.name}: {obstacle.why}. {obstacle.ways_out[0]}"
    else:
        began = view.os_upgrade.completed if view.os_upgrade else ""
        # Unlike a duration, the begin does not change the message.
        since = f"{view.name}: rebooting{f' since {clock_of(began)}' if began else ''}"
        reboots = since if view.ready else f"{since}; {obstacle.why}"
        progress = f"{reboots}. If it takes over {_OVERDUE} min: {obstacle.ways_out[0]}"
    return Decision(state=NodeState.WAITING_REBOOT, progress=progress, effects=expected)


def lost(view: NodeView, release_os: str, state: NodeState) -> Decision | None:
    """Hold the phase while a node that was recorded as done is NotReady or runs another OS; None otherwise."""
    if runs_release(view, release_os):
        return None
    obstacle = not_back(view, release_os)
    message = f"it was upgraded, and the upgrade waits for it, because {obstacle.why}. {obstacle.ways_out[0]}"
    return Decision(state=state, progress=f"{view.name}: {message}", message=message, holds=True)


def clear_pending_os(view: NodeView) -> tuple[Effect, ...]:
    """Remove the annotation of a node that is back."""
    return (ClearPendingOS(node=view.name),) if view.pending_os else ()


def restore_vms(view: NodeView) -> tuple[Effect, ...]:
    """Restart the VMs of a node that is back, unless the Job exists: the node is recorded as done some time later."""
    owed = view.restore_vms and not view.is_upgraded and JobType.RESTORE_VM not in view.jobs
    return (RestoreVMs(node=view.name),) if owed else ()
