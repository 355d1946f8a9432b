"""engine.py runs the phase; the phase's Jobs run toolkit/commands/image_cleanup.py.

../node_upgrade/phase.py has the nodes that Rancher drains again while the phase lasts.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from upgrade_manager.api.conditions import CLEANUP_FAILED, IMAGES_NOT_REMOVED
from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM, Component, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.blockers.job_failures import failure_words
from upgrade_manager.blockers.jobs import job_wait
from upgrade_manager.facts import old_images
from upgrade_manager.kube.resources import SECRETS, SUC_PLANS
from upgrade_manager.pipeline.blocker_report import resumed_wait
from upgrade_manager.pipeline.node_upgrade.managed_nodes import check_plan_nodes
from upgrade_manager.pipeline.node_upgrade.phase import finish_drains
from upgrade_manager.pipeline.node_upgrade.state import Handled
from upgrade_manager.pipeline.node_upgrade.vm_restore import report_failures, unfinished
from upgrade_manager.pipeline.outcome import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.phases.job_progress import describe
from upgrade_manager.pipeline.phases.plan_jobs import (
    NodeStates,
    PlanJob,
    Work,
    follow_plan,
    long_name_message,
    new_plan_wait,
    plan_progress,
    prepare_nodes,
)
from upgrade_manager.pipeline.phases.repository import unreachable, unserved
from upgrade_manager.pipeline.selections import MANAGED_NODES, suc_jobs, suc_plans
from upgrade_manager.release.errors import Unreachable
from upgrade_manager.release.image_lists import SIZE_LIMIT, pack, parse_list, removable
from upgrade_manager.release.repository_client import read_file, shown
from upgrade_manager.resources.image_list import ImageList
from upgrade_manager.resources.suc_plan import image_cleanup_plan

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult

ARCHIVE = "/harvester-iso/bundle/harvester/images-lists-archive"
LIST = "image_list_all.txt"
WORK = Work("image cleanup", done="Old images removed")
SKIPPED = "image cleanup skipped. The kubelet removes old images when it needs disk space"
_STATES = NodeStates(
    running=NodeState.IMAGE_CLEANING,
    done=NodeState.IMAGE_CLEANED,
    failed=NodeState.IMAGE_CLEAN_FAILED,
    adds_nodes=False,
)


class ImageCleanup(Phase):
    """Removes the images that only the previous release needed from every node."""

    name = PhaseName.IMAGE_CLEANUP
    activity = "Removing the previous release's images from the nodes"
    reads_repository = True

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Remove the images, and finish the nodes that Rancher drains again meanwhile."""
        draining = await _finish_drains(ctx)
        if isinstance(draining, Failed):
            return draining
        result = await _remove_images(ctx)
        if draining is None or isinstance(result, Failed):
            return result
        waits = result.waits if isinstance(result, Waiting) else ()
        return replace(draining, waits=(*draining.waits, *waits))

    async def exit(self, ctx: ReconcileContext) -> Waiting | Failed | None:
        """Wait for the restore-vm Jobs, which the clean-up removes, and for nodes that changed since their upgrade."""
        draining = await _finish_drains(ctx)
        await report_failures(ctx)
        restoring = await unfinished(ctx)
        if not restoring or isinstance(draining, Failed):
            return draining
        work = JobType.RESTORE_VM
        waits = tuple(
            wait for job in restoring for wait in resumed_wait(ctx, job, work=work) or job_wait(job, work=work)
        )
        if draining is not None:
            return replace(draining, waits=(*draining.waits, *waits))
        first, more = restoring[0], len(restoring) - 1
        named = f"Job {HARVESTER_SYSTEM}/{first.name}{f' and {more} more' if more else ''}"
        return Waiting(message=f"{named}: restarting VMs, {await describe(ctx, first)}", waits=waits)


async def _finish_drains(ctx: ReconcileContext) -> Waiting | Failed | None:
    """Acknowledge hooks, and wait for a node that is cordoned, not Ready or does not run the release.

    The upgrade has not succeeded yet, and a later hook would hold its node cordoned for ever.
    """
    return await finish_drains(ctx, Handled()) if ctx.status.known_nodes() else None


async def _remove_images(ctx: ReconcileContext) -> PhaseResult:
    """Create the Plan with the list of images once, then follow it."""
    name = ctx.owner.name_of(Component.IMAGE_CLEANUP)
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    plans = await ctx.watch(suc_plans(ctx.owner))
    plan = plans.get(name, CATTLE_SYSTEM)
    if plan is None or not ctx.owner.owns(plan):
        await check_plan_nodes(ctx, nodes)
        long_name = long_name_message(nodes)
        if long_name:
            ctx.events.warning(ctx.raw, "ImageCleanupSkipped", f"{long_name}; {SKIPPED}")
            return Completed()
        # After a single node's reboot the repository's Pods may still be starting.
        not_serving = await unserved(ctx)
        if not_serving is not None:
            return not_serving
        try:
            images = await _images(ctx)
        except Unreachable as error:
            # Until the kubelet reports after a reboot, an earlier endpoint still counts as ready.
            return unreachable(ctx, error)
        if not images:
            return Completed()
        if plan is None:
            await prepare_nodes(ctx, nodes, name)
        await _create_plan(ctx, ImageList(owner=ctx.owner, packed=await asyncio.to_thread(pack, images)))
        return Waiting(message=WORK.on(0, len(nodes)), waits=new_plan_wait(ctx, name))
    jobs = await ctx.watch(suc_jobs(ctx.owner))
    result = await follow_plan(ctx, plan, jobs, states=_STATES, work=WORK)
    return await _give_up(ctx, plan, jobs) if isinstance(result, Failed) else result


async def _give_up(ctx: ReconcileContext, plan: Object, jobs: Store) -> Completed:
    """Name the nodes that keep old images: the upgrade of a cluster whose nodes are done has not failed.

    The system-upgrade-controller creates no Job for the nodes after a failed one.
    """
    progress = plan_progress(plan, jobs.derive(PlanJob.of))
    if progress.failed is not None:
        cause = await failure_words(ctx.client, progress.failed.state)
        failed = f"the clean-up failed on node {progress.failed.node}: {cause}"
        ctx.status.move_node(progress.failed.node, NodeState.IMAGE_CLEAN_FAILED, message=cause)
    else:
        # The controller's message names the Job, which has expired.
        failed = f"the clean-up failed: {progress.failure.partition(': ')[2] or 'its Job has expired'}"
    known = sorted(ctx.status.known_nodes())
    nodes = [name for name in known if ctx.status.node_state(name) is not NodeState.IMAGE_CLEANED]
    text = old_images.not_removed(nodes, previous=ctx.status["previousVersion"] or "the previous release", cause=failed)
    ctx.status.mark(IMAGES_NOT_REMOVED, CLEANUP_FAILED, text)
    ctx.events.warning(ctx.raw, IMAGES_NOT_REMOVED, text)
    return Completed()


async def _create_plan(ctx: ReconcileContext, images: ImageList) -> None:
    """Create the Plan after the Secrets that it mounts."""
    for secret in images.secrets():
        await ctx.ensure_unread(SECRETS, secret)
    await ctx.ensure(SUC_PLANS, image_cleanup_plan(ctx.owner, ctx.plan_settings, secrets=images.names()))


async def _images(ctx: ReconcileContext) -> list[str]:
    """Return the images to remove; none if a list is missing. Raises BadRepository."""
    previous = await _list(ctx, ctx.status["previousVersion"] or "")
    current = await _list(ctx, "current")
    if not previous or not current:
        return []
    return await asyncio.to_thread(removable, previous, current)


async def _list(ctx: ReconcileContext, version: str) -> list[str]:
    """Return one release's images. An empty list counts as missing: otherwise every image would be removed."""
    url = f"{ctx.repo_url}{ARCHIVE}/{quote(version, safe='')}/{LIST}"
    body = await read_file(ctx.repository, url, limit=SIZE_LIMIT)
    # A thread parses the list, because a long list would block the event loop for 0.1 s.
    images = await asyncio.to_thread(parse_list, body or b"")
    if not images:
        problem = "does not exist" if body is None else "is empty"
        ctx.events.warning(ctx.raw, "ImageCleanupSkipped", f"Image list {shown(url)} {problem}; {SKIPPED}")
    return images
