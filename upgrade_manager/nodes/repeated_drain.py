"""A drain that Rancher repeats on an upgraded node, for instance after a change of the registries setting.

    pre-drain hook pending  -> the first Job pre-drain is removed, a repeated one runs, then the hook is acknowledged
    post-drain hook pending -> the taint of the repeated Job is removed, then the Job; the hook is acknowledged

The manager removes the taint itself and runs no post-drain Job, because the node already runs the release's OS. The
node is Ready (`drain.lost`), and its state stays PostDrained. A label marks the repeated Job, because Rancher sets
equal hooks for each drain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import TAINT_KUBEVIRT_DRAIN, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.node_obstacles import cordon_refused, foreign_hooks
from upgrade_manager.nodes.model import AcknowledgeHook, Decision, RemoveJob, RemoveTaint, RestoreVMs, StartJob

if TYPE_CHECKING:
    from upgrade_manager.facts.job_state import JobState
    from upgrade_manager.nodes.model import Effect, NodeView


def decide(view: NodeView) -> Decision | None:
    """Decide about an upgraded node that Rancher drains again; None if it does not."""
    job = view.jobs.get(JobType.PRE_DRAIN)
    is_repeated = job is not None and job.repeated
    if view.pre_drain.pending:
        return _pre_drain(view, job)
    if not is_repeated:
        return _begun(view)
    if view.pre_drain.requested and not view.post_drain.pending:
        others = view.pre_drain.others
        return _hold(view, foreign_hooks(view.secret, others) if others else "Rancher drains it again")
    if view.tainted:
        return _hold(view, f"removing its taint {TAINT_KUBEVIRT_DRAIN}", RemoveTaint(node=view.name))
    if view.post_drain.pending:
        return _post_drain(view)
    # Rancher has ended the drain without a post-drain hook.
    return _hold(view, "removing its repeated pre-drain Job", RemoveJob(node=view.name, job_type=JobType.PRE_DRAIN))


def _begun(view: NodeView) -> Decision | None:
    """Hold the phase while Rancher cannot cordon the node, with which each drain begins."""
    is_refused = view.drains and view.cordon_error
    return _hold(view, cordon_refused(view.cordon_error).why) if is_refused else None


def _pre_drain(view: NodeView, job: JobState | None) -> Decision:
    if JobType.PRE_DRAIN in view.old_jobs or (job is not None and not job.repeated):
        return _hold(view, "replacing its pre-drain Job", RemoveJob(node=view.name, job_type=JobType.PRE_DRAIN))
    if job is None:
        start = StartJob(node=view.name, job_type=JobType.PRE_DRAIN, repeated=True, request=view.request)
        return _hold(view, "Rancher drains it again", start)
    if job.progress is Progress.FAILED:
        return Decision(state=NodeState.POST_DRAINED, message=job.cause, failure=job.cause, holds=True)
    if job.progress is Progress.RUNNING:
        return _hold(view, f"{JobType.PRE_DRAIN} Job {job.namespace}/{job.name} runs again, {job.describe()}")
    return _hold(view, "Rancher drains it again", AcknowledgeHook.of_drain(view))


def _post_drain(view: NodeView) -> Decision:
    # The Job is removed before the acknowledgement, so that Rancher's next hook starts another Job.
    remove = RemoveJob(node=view.name, job_type=JobType.PRE_DRAIN)
    acknowledge = AcknowledgeHook.of_return(view)
    if view.restore_vms and JobType.RESTORE_VM in view.old_jobs:
        return _hold(view, "replacing its restore-vm Job", RemoveJob(node=view.name, job_type=JobType.RESTORE_VM))
    # The VMs are started before the acknowledgement, after which no object shows that they are owed.
    restore = (RestoreVMs(node=view.name),) if view.restore_vms else ()
    return _hold(view, "Rancher uncordons it", *restore, remove, acknowledge)


def _hold(view: NodeView, progress: str, *effects: Effect) -> Decision:
    return Decision(state=NodeState.POST_DRAINED, progress=f"{view.name}: {progress}", effects=effects, holds=True)
