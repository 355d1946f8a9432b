"""engine.py runs the phase; the Job runs toolkit/commands/cluster_upgrade.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.blockers.job_failures import job_failure
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.facts.rancher_cluster import RANCHER
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.pipeline import pause
from upgrade_manager.pipeline.ending import orphaned_jobs
from upgrade_manager.pipeline.host_changes import HOLD
from upgrade_manager.pipeline.outcome import Completed, Failed, Phase
from upgrade_manager.pipeline.phases import host_plans, vm_updates
from upgrade_manager.pipeline.phases.job_progress import job_progress, new_job_progress
from upgrade_manager.pipeline.selections import UPGRADE_JOBS
from upgrade_manager.resources.jobs import BACKOFF_LIMIT, cluster_upgrade_job

if TYPE_CHECKING:
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult


class ClusterUpgrade(Phase):
    """Upgrades Rancher, Harvester and the other components of the cluster, in one Job."""

    name = PhaseName.CLUSTER_UPGRADE
    activity = "Upgrading the cluster's components"
    reads_repository = True

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Record what the phase changes beside its Job."""
        await vm_updates.record(ctx)
        return None

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Suspend updates of VMs, hold the system agents, create the Job once, then wait until it finishes."""
        name = ctx.owner.name_of(Component.CLUSTER_UPGRADE)
        jobs = await ctx.watch(UPGRADE_JOBS)
        job = jobs.get(name, HARVESTER_SYSTEM)
        if job is None or not ctx.owner.owns(job):
            return await self._begin(ctx, jobs, name)
        vm_updates.report(ctx)
        if HOLD.entry(ctx) is not None:
            await host_plans.discard(ctx, HOLD)
        state = JobState.of(job)
        if state.progress is Progress.COMPLETE:
            return Completed()
        if state.progress is Progress.FAILED:
            failure = await job_failure(ctx.client, state)
            return Failed(cause=f"The upgrade of the components {failure.cause}", log=failure.log)
        # Rancher upgrades the charts that the Job waits for, and its cluster has to be ready.
        return await job_progress(ctx, job, work=Component.CLUSTER_UPGRADE, controllers=(RANCHER,))

    async def _begin(self, ctx: ReconcileContext, jobs: Store, name: str) -> PhaseResult:
        """Prepare the cluster and create the Job; a paused plan finishes the changes of hosts that have begun."""
        paused = pause.before(ctx, self.name) if ctx.plan.spec.paused else None
        if paused is not None and HOLD.entry(ctx) is None:
            return paused
        waiting = await orphaned_jobs.wait(ctx, jobs) or await vm_updates.suspend(ctx)
        if waiting is not None:
            return waiting
        if is_own(ctx.status["toolkitImage"]):
            # Harvester's toolkit holds the agents back in its Job.
            held = await host_plans.apply(ctx, HOLD)
            if not isinstance(held, Completed):
                return held
        if paused is not None:
            return paused
        await ctx.ensure(JOBS, cluster_upgrade_job(ctx.owner, ctx.job_settings))
        return new_job_progress(ctx, name, backoff_limit=BACKOFF_LIMIT, work=Component.CLUSTER_UPGRADE)
