"""The clean-up of an upgrade: removes the created objects. Every step is idempotent.

The reconciler calls it after settings/giving_back.py has given the settings back.

Objects are removed by the label with the plan's uid, never by name. Running Jobs stay, with the objects that they read
(orphaned_jobs.py); leftovers.py removes the objects of plans that are deleted without the clean-up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.attempts import MAX_ATTEMPTS
from upgrade_manager.api.keys import (
    ANNOTATION_PENDING_OS_IMAGE,
    CATTLE_SYSTEM,
    FINALIZER,
    HARVESTER_SYSTEM,
    SUC_NODE_LABEL_PREFIX,
    Component,
    suc_node_label,
)
from upgrade_manager.api.names import FIRST_ATTEMPT, component_name
from upgrade_manager.api.phases import FAILED, SUCCEEDED
from upgrade_manager.facts.job_state import restores_vms
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    JOBS,
    NODES,
    SECRETS,
    SUC_PLANS,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)
from upgrade_manager.pipeline import host_changes, job_ledger
from upgrade_manager.pipeline.ending import failed_jobs, orphaned_jobs, payload, repository_handover
from upgrade_manager.pipeline.node_upgrade import vm_restore
from upgrade_manager.pipeline.plan_objects import skip_missing
from upgrade_manager.resources.repository import REPOSITORY_KINDS
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

#: The components that run as Plans of the system-upgrade-controller.
_PLANS = (
    Component.IMAGE_PRELOAD,
    Component.SURVEY,
    Component.IMAGE_CLEANUP,
    *(plan for change in host_changes.CHANGES for plan in (change.apply, change.undo)),
)
_SUFFIX = re.compile(rf"-({'|'.join(_PLANS)})(-a[0-9]+)?\Z")
#: The steps for the nodes, which run while the removal of other objects fails, and after that removal.
_CLEARED, _CLEARED_AGAIN = "clear the nodes", "clear the nodes again"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the clean-up; skipped if its namespace or kind does not exist."""

    name: str
    namespace: str
    run: Callable[[ReconcileContext, Ending], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The objects that stay after the end of a plan."""

    #: True after a failure: the failed Jobs of all attempts stay.
    keeps_failed_jobs: bool
    #: True after a failure: a new attempt reads the image, the repository and the list of stopped VMs again.
    keeps_payload: bool
    #: The manager's own Jobs; empty after a success, because no Job runs then.
    jobs: list[Object]
    #: True if the plan that was accepted reads the image of the ISO.
    keeps_image: bool = False

    @property
    def running(self) -> list[Object]:
        """The Jobs that stay until they have finished."""
        return list(filter(orphaned_jobs.is_running, self.jobs))

    @property
    def readers(self) -> list[Object]:
        """The running Jobs that read from the upgrade repository."""
        return list(filterfalse(restores_vms, self.running))


async def clean_up(ctx: ReconcileContext, *, keep_failed_jobs: bool) -> None:
    """Remove the objects of the upgrade; the steps run concurrently, for slow API servers.

    A retry skips the steps that have already succeeded in this process.
    """
    # The clean-up after a failure differs from the clean-up before a later deletion.
    done = ctx.informers.cleaned_up[keep_failed_jobs]
    try:
        await _run(ctx, done, keep_failed_jobs=keep_failed_jobs)
    except KubeError:
        # `finally` could hide a cancellation by a failed request. The step runs once: the next plan may use the nodes.
        if _CLEARED not in done:
            await _clear_nodes(ctx)
            done.add(_CLEARED)
        raise
    # The nodes are cleared after the removal of the Plans, until which the system-upgrade-controller sets its labels
    # again. A controller that read the Plan before may set a label even later; `prepare_nodes` removes the label before
    # the next Plan of the name. This step, too, runs once, because the removal of the finalizer may be refused.
    if _CLEARED_AGAIN not in done:
        await _clear_nodes(ctx)
        done.add(_CLEARED_AGAIN)


async def is_finalizing(ctx: ReconcileContext) -> bool:
    """Return True if the plan still has the finalizer on the API server.

    If the response to its removal was lost, a new plan of the same name may own the objects by now.
    """
    selector = f"metadata.name={ctx.owner.name}"
    found = (await ctx.client.list(UPGRADE_PLANS, field_selector=selector, metadata_only=True)).items
    return any(objects.uid(one) == ctx.owner.uid and FINALIZER in objects.finalizers(one) for one in found)


async def _run(ctx: ReconcileContext, done: set[str], *, keep_failed_jobs: bool) -> None:
    steps = [step for step in STEPS if step.name not in done]
    if not steps:
        return
    jobs = [] if ctx.status.phase == SUCCEEDED else await _own_jobs(ctx)
    keeps_payload = keep_failed_jobs and payload.is_kept(ctx)
    ending = Ending(keeps_failed_jobs=keep_failed_jobs, keeps_payload=keeps_payload, jobs=jobs)

    async def run(step: Step) -> None:
        await skip_missing(ctx.client, step.namespace, step.run(ctx, ending))
        if not ending.running:
            # A retry after the end of a running Job removes the objects that it reads.
            done.add(step.name)

    await run_all(*map(run, steps))


async def _remove_plans(ctx: ReconcileContext, ending: Ending) -> None:
    """Remove the Plans with their Secrets and Jobs, except failed Jobs that are kept."""
    if ending.keeps_failed_jobs:
        await failed_jobs.take_over(ctx)
    if ctx.owner.has_unlabeled:
        # Secrets are removed before the Plans: a retry finds out by the Plans that unlabeled objects may be left.
        for resource in (SECRETS, SUC_PLANS):
            await _remove(ctx, resource, CATTLE_SYSTEM, selector=ctx.owner.unlabeled_selector())
    await _remove(ctx, SUC_PLANS, CATTLE_SYSTEM)
    if ending.keeps_failed_jobs:
        await failed_jobs.remove_ttl(ctx)
    elif ctx.status.phase == FAILED or ctx.owner.attempt > FIRST_ATTEMPT:
        await _remove(ctx, JOBS, CATTLE_SYSTEM)
        if ctx.owner.has_unlabeled:
            await _remove(ctx, JOBS, CATTLE_SYSTEM, selector=ctx.owner.unlabeled_selector())


async def _orphan_jobs(ctx: ReconcileContext, ending: Ending) -> None:
    """Let running Jobs finish, and keep the objects that they read."""
    if ending.keeps_payload:
        await run_all(
            job_ledger.release(ctx, ending.running),
            *(orphaned_jobs.orphan(ctx.client, job) for job in ending.running),
        )
        return
    restoring = filter(restores_vms, ending.running)
    selector, readers = ctx.owner.selector(), ending.readers
    kinds = [kind for kind in REPOSITORY_KINDS if not _is_users(ctx, kind)] if readers else []
    await run_all(
        vm_restore.release_list(ctx, restoring),
        job_ledger.release(ctx, ending.running),
        repository_handover.hand_over(ctx.client, selector, readers, kinds=kinds),
        *(orphaned_jobs.orphan(ctx.client, job) for job in ending.running),
    )


async def _own_jobs(ctx: ReconcileContext) -> list[Object]:
    return (await ctx.client.list(JOBS, namespace=HARVESTER_SYSTEM, label_selector=ctx.owner.selector())).items


async def _remove_jobs(ctx: ReconcileContext, ending: Ending) -> None:
    """Remove the manager's own Jobs, except those that run and failed ones that are kept."""
    others = list(filterfalse(orphaned_jobs.is_running, ending.jobs))
    if ending.keeps_failed_jobs:
        await failed_jobs.keep_own(ctx, others)
    elif ending.running:
        names = [(objects.name(job), objects.uid(job)) for job in others]
        await run_all(*(ctx.remove(JOBS, name, namespace=HARVESTER_SYSTEM, uid=uid) for name, uid in names))
    else:
        await _remove(ctx, JOBS, HARVESTER_SYSTEM)


def _is_users(ctx: ReconcileContext, resource: Resource) -> bool:
    """Return True for the image that spec.image names, which belongs to the user with any labels."""
    return resource == VIRTUAL_MACHINE_IMAGES and bool(ctx.plan.spec.image)


async def _remove(ctx: ReconcileContext, resource: Resource, namespace: str, *, selector: str = "") -> None:
    await skip_missing(ctx.client, namespace, ctx.remove_all(resource, namespace=namespace, selector=selector))


async def _clear_nodes(ctx: ReconcileContext) -> None:
    """Remove the pendingOSImage annotations, and the labels of the Plans of this plan and of deleted plans."""
    labels = list(map(suc_node_label, _plan_names(ctx)))
    # Nodes are listed, because a stale cache may lack the last label and no further reconcile would remove the label.
    # The list has no selector, because a node may lack the managed label at this moment.
    found = await ctx.client.list(NODES, metadata_only=True)
    labels += await _abandoned_labels(ctx, {label for node in found.items for label in objects.labels(node)})
    nodes = [(node, _metadata(node, labels, annotations=[ANNOTATION_PENDING_OS_IMAGE])) for node in found.items]
    await run_all(*(ctx.mark(NODES, objects.name(node), metadata) for node, metadata in nodes if metadata))


async def _abandoned_labels(ctx: ReconcileContext, present: Iterable[str]) -> list[str]:
    """Return the labels of Plans of plans that do not exist any more: a webhook has refused their removal."""
    own = set(map(suc_node_label, _plan_names(ctx)))
    left = {one for one in present if one.startswith(SUC_NODE_LABEL_PREFIX) and _SUFFIX.search(one)} - own
    if not left:
        return []
    plans = (await ctx.client.list(UPGRADE_PLANS, metadata_only=True)).items
    existing = await ctx.client.list(SUC_PLANS, namespace=CATTLE_SYSTEM, metadata_only=True)
    names = {*map(objects.name, existing.items), *(name for plan in plans for name in _names(objects.name(plan)))}
    return sorted(left - set(map(suc_node_label, names)))


def _plan_names(ctx: ReconcileContext) -> list[str]:
    return _names(ctx.owner.name, attempts=ctx.owner.attempt)


def _names(plan: str, *, attempts: int = MAX_ATTEMPTS) -> list[str]:
    """Return the names of the Plans of all attempts."""
    numbers = range(FIRST_ATTEMPT, attempts + 1)
    return [component_name(plan, component, attempt=number) for number in numbers for component in _PLANS]


def _metadata(node: Object, labels: Iterable[str], *, annotations: Iterable[str]) -> dict[str, dict[str, None]]:
    """Return a merge patch that removes these keys from the node's metadata; empty if the node lacks the keys."""
    present = [label for label in labels if label in objects.labels(node)]
    pending = [annotation for annotation in annotations if annotation in objects.annotations_of(node)]
    removed = {"labels": dict.fromkeys(present), "annotations": dict.fromkeys(pending)}
    return {kind: keys for kind, keys in removed.items() if keys}


async def _stop_repository(ctx: ReconcileContext, ending: Ending, resource: Resource) -> None:
    """Stop the repository's Pods until the next attempt, unless running Jobs read from them."""
    if resource != DEPLOYMENTS or ending.readers:
        return
    name, patch = component_name(ctx.owner.name, Component.REPO), MergePatch({"spec": {"replicas": 0}})
    found = await ctx.client.find(DEPLOYMENTS, name, namespace=HARVESTER_SYSTEM)
    if found is not None and ctx.owner.owns(found) and objects.spec(found).get("replicas") != 0:
        await ctx.patch(DEPLOYMENTS, name, patch, namespace=HARVESTER_SYSTEM, event="repository stopped")


def _removal(resource: Resource, namespace: str) -> Step:
    async def run(ctx: ReconcileContext, ending: Ending) -> None:
        if ending.keeps_payload and resource in REPOSITORY_KINDS:
            await _stop_repository(ctx, ending, resource)
            return
        is_read = resource in REPOSITORY_KINDS and bool(ending.readers)
        is_kept = ending.keeps_image and resource == VIRTUAL_MACHINE_IMAGES
        if not is_read and not is_kept and not _is_users(ctx, resource):
            await _remove(ctx, resource, namespace)

    return Step(name=f"remove {resource.plural}", namespace=namespace, run=run)


async def remove_payload(ctx: ReconcileContext, *, image: str) -> None:
    """Remove what a failed plan keeps for a new attempt, because a plan with this spec.image was accepted."""
    keeps_image = bool(image) and image.removeprefix(f"{HARVESTER_SYSTEM}/") == ctx.status["isoImageID"]
    jobs = await _own_jobs(ctx)
    ending = Ending(keeps_failed_jobs=True, keeps_payload=False, jobs=jobs, keeps_image=keeps_image)
    await run_all(*(skip_missing(ctx.client, step.namespace, step.run(ctx, ending)) for step in PAYLOAD))


PAYLOAD = (
    Step(name="orphan running Jobs", namespace=HARVESTER_SYSTEM, run=_orphan_jobs),
    *(_removal(resource, HARVESTER_SYSTEM) for resource in REPOSITORY_KINDS),
)
STEPS = (
    *PAYLOAD,
    Step(name="remove Plans", namespace=CATTLE_SYSTEM, run=_remove_plans),
    _removal(SECRETS, CATTLE_SYSTEM),
    Step(name="remove Jobs", namespace=HARVESTER_SYSTEM, run=_remove_jobs),
)
