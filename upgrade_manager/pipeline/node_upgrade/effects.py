"""Applies the effects of decisions about nodes: creates Jobs, acknowledges hooks, marks nodes.

phase.py calls it with the decisions of `nodes`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.holds import HoldPoint
from upgrade_manager.api.keys import (
    ANNOTATION_ACKNOWLEDGED,
    ANNOTATION_PENDING_OS_IMAGE,
    ANNOTATION_PRE_HOOK,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    TAINT_KUBEVIRT_DRAIN,
    JobType,
)
from upgrade_manager.api.toolkit_image import is_own
from upgrade_manager.facts import holders as facts
from upgrade_manager.facts import machine_plan
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Invalid, NotFound
from upgrade_manager.kube.patch import JsonPatch, MergePatch, annotation_path
from upgrade_manager.kube.resources import JOBS, NODES, SECRETS
from upgrade_manager.nodes.model import (
    AcknowledgeHook,
    ClearPendingOS,
    RemoveJob,
    RemoveTaint,
    ResumeJob,
    SetPendingOS,
    StartJob,
)
from upgrade_manager.pipeline import holders
from upgrade_manager.pipeline.holders import Place
from upgrade_manager.pipeline.selections import BUILT_IN_UPGRADES, HARVESTER_ADDONS, LOCAL_MACHINES, MANAGED_NODES
from upgrade_manager.resources.jobs import node_job, node_job_name
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.facts.holders import Holder
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.model import Decision, Effect, NodeView
    from upgrade_manager.pipeline.context import ReconcileContext

log = structlog.get_logger(__name__)


async def apply_effect(ctx: ReconcileContext, view: NodeView, effect: Effect) -> bool:
    """Apply the effect, and return False if the hook to acknowledge has changed.

    `RestoreVMs` is applied last, by the phase.
    """
    if isinstance(effect, AcknowledgeHook):
        return not await _is_removed(ctx, view, effect) and await _acknowledge(ctx, effect)
    await _apply(ctx, view, effect)
    return True


def record_acknowledgement(ctx: ReconcileContext, view: NodeView, decision: Decision) -> None:
    """Record the number before the acknowledgement, with the version that the Secret has without it."""
    for effect in decision.effects:
        if isinstance(effect, AcknowledgeHook) and effect.number:
            record = ctx.status.node_requests(view.name)
            acknowledged = replace(record, acknowledged=effect.number, secret_version=view.secret_version)
            ctx.status.record_requests(view.name, acknowledged)


async def _apply(ctx: ReconcileContext, view: NodeView, effect: Effect) -> None:
    match effect:
        case StartJob(node=node, job_type=job_type, request=request):
            job = node_job(
                ctx.owner,
                replace(ctx.job_settings, holds=_holds_itself(ctx)),
                node=node,
                job_type=job_type,
                suspended=effect.suspended,
                repeated=effect.repeated,
                request=request,
                boot_id=view.boot_id,
            )
            await ctx.ensure(JOBS, job)
        case RemoveJob(job_type=job_type):
            old = view.old_jobs.get(job_type) or view.jobs[job_type]
            # After a crash, milestones of the node are read from its Jobs.
            await ctx.events.sent(ctx.raw)
            await ctx.remove(JOBS, old.name, namespace=old.namespace, uid=old.uid)
        case ResumeJob(node=node, job_type=job_type):
            await _resume(ctx, node_job_name(ctx.owner, node=node, job_type=job_type))
        case SetPendingOS(node=node, os_image=os_image):
            await ctx.mark(NODES, node, {"annotations": {ANNOTATION_PENDING_OS_IMAGE: os_image}})
        case ClearPendingOS(node=node):
            await ctx.mark(NODES, node, {"annotations": {ANNOTATION_PENDING_OS_IMAGE: None}})
        case RemoveTaint(node=node):
            await remove_taint(ctx, node)


def _holds_itself(ctx: ReconcileContext) -> bool:
    """Return True if the Jobs that reboot a node hold before; Harvester's toolkit cannot."""
    return HoldPoint.REBOOT in ctx.plan.spec.node_upgrade_option.pause_before and is_own(ctx.status["toolkitImage"])


async def remove_taint(ctx: ReconcileContext, name: str) -> None:
    """Remove the pre-drain Job's taint. Raises Conflict if the Node has changed, because its taints are one list."""
    node = (await ctx.watch(MANAGED_NODES)).get(name) or {}
    left = [taint for taint in objects.spec(node).get("taints") or () if taint.get("key") != TAINT_KUBEVIRT_DRAIN]
    patch = MergePatch({"spec": {"taints": left or None}}).at(objects.resource_version(node))
    await ctx.patch(NODES, name, patch, metadata_only=True, event="taint of a drain removed")


async def _is_removed(ctx: ReconcileContext, view: NodeView, hook: AcknowledgeHook) -> bool:
    """Return True for a pre-drain hook whose repeated Job was removed; a stale cache may still show that Job."""
    job = view.jobs.get(JobType.PRE_DRAIN)
    if hook.annotation != ANNOTATION_PRE_HOOK or job is None or not job.repeated:
        return False
    found = await ctx.client.find(JOBS, job.name, namespace=job.namespace, metadata_only=True)
    if found is not None and objects.uid(found) == job.uid and not objects.is_deleting(found):
        return False
    log.info("repeated Job was removed, hook not acknowledged", job=job.name)
    return True


async def _resume(ctx: ReconcileContext, job: str) -> None:
    # From now on a deletion of the plan must not end the Job.
    patch = MergePatch({"metadata": {"ownerReferences": None}, "spec": {"suspend": False}})
    try:
        await ctx.patch(JOBS, job, patch, namespace=HARVESTER_SYSTEM, metadata_only=True)
    except NotFound:
        log.info("Job not found; it is recreated on the next reconcile", job=job)


async def remove_acknowledgements(ctx: ReconcileContext, secrets: Iterable[Object]) -> None:
    """Remove acknowledgements of an earlier upgrade: Rancher sets equal hook values again, and would not wait."""
    await run_all(*(_remove_acknowledgements(ctx, secret) for secret in secrets))


async def _remove_acknowledgements(ctx: ReconcileContext, secret: Object) -> None:
    stale = machine_plan.acknowledgements(secret)
    if stale:
        metadata, event = {"annotations": dict.fromkeys(stale)}, "acknowledgements of an earlier upgrade removed"
        await ctx.mark(SECRETS, objects.name(secret), metadata, namespace=FLEET_LOCAL, event=event)


async def _acknowledge(ctx: ReconcileContext, hook: AcknowledgeHook) -> bool:
    """Acknowledge a hook, unless Rancher has changed or removed the hook, about which the next reconcile decides."""
    requested = machine_plan.REQUESTED[hook.annotation]
    # A Secret that shows another request, such as to an earlier leader, differs in the counter or the acknowledgement.
    before = {requested: hook.value, ANNOTATION_ACKNOWLEDGED: hook.counted or None}
    if hook.number:
        before[hook.annotation] = hook.acknowledged or None
    values = {hook.annotation: hook.value}
    if hook.number:
        values[ANNOTATION_ACKNOWLEDGED] = machine_plan.request_count(ctx.owner.uid, hook.number)
    tests = [{"op": "test", "path": annotation_path(key), "value": value} for key, value in before.items()]
    adds = [{"op": "add", "path": annotation_path(key), "value": value} for key, value in values.items()]
    try:
        patch, event = JsonPatch([*tests, *adds]), "hook acknowledged"
        await ctx.patch(SECRETS, hook.secret, patch, namespace=FLEET_LOCAL, metadata_only=True, event=event)
    except NotFound:
        log.info("Secret not found, hook not acknowledged", secret=hook.secret)
    except Invalid:
        # The Secret is listed, because the manager has no permission to get Secrets.
        selector = f"metadata.name={hook.secret}"
        listed = ctx.client.list(SECRETS, namespace=FLEET_LOCAL, field_selector=selector, metadata_only=True)
        found = [objects.annotations_of(secret) for secret in (await listed).items]
        if any(all(one.get(key) == value for key, value in before.items()) for one in found):
            raise
        log.info("hook has changed, not acknowledged", secret=hook.secret, hook=requested)
    else:
        return True
    return False


async def holder_at_gate(ctx: ReconcileContext) -> Holder | None:
    """Return what holds the cluster before an effect that passes the gate; the rules are cached by object."""
    upgrades, machines, addons = await ctx.watch_all(BUILT_IN_UPGRADES, LOCAL_MACHINES, HARVESTER_ADDONS)
    is_free = (
        all(machines.derive(machine_plan.is_running))
        and not any(upgrades.derive(facts.upgrade))
        and not any(addons.derive(facts.addon))
    )
    return None if is_free else await holders.first(ctx, Place.GATE)
