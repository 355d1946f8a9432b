"""The end of an upgrade: what it changed is put back, what it created is removed. Every step may be repeated.

Objects are removed by their labels, which only we set; an object that merely has one of our names is not touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.api.keys import (
    ANNOTATION_PENDING_OS_IMAGE,
    ANNOTATION_RESTORED,
    CATTLE_SYSTEM,
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    Component,
    suc_node_label,
)
from upgrade_manager.api.names import component_name
from upgrade_manager.api.phases import FAILED, SUCCEEDED, PhaseName, phase_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    JOBS,
    NODES,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)
from upgrade_manager.pipeline import failed_jobs, overrides, rancher
from upgrade_manager.pipeline.absence import where_present
from upgrade_manager.pipeline.selections import MANAGED_NODES
from upgrade_manager.runtime.concurrency import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

    Step: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

#: What of an upgrade may keep evidence of its failure, by the phase that failed.
_EVIDENCE = {
    PhaseName.IMAGE_PRELOAD: Component.IMAGE_PRELOAD,
    PhaseName.CLUSTER_UPGRADE: Component.CLUSTER_UPGRADE,
    PhaseName.NODE_UPGRADE: Component.NODE_UPGRADE,
    PhaseName.IMAGE_CLEANUP: Component.IMAGE_CLEANUP,
}
#: The components that run as Plans of the system-upgrade-controller.
_PLANS = (Component.IMAGE_PRELOAD, Component.IMAGE_CLEANUP)


async def tear_down(ctx: ReconcileContext, *, keep_evidence: bool) -> None:
    """Restore, then remove; `keep_evidence` leaves the failed Jobs and their Pods.

    What does not depend on each other is done at the same time: with a slow API server a dozen requests in a row would
    look like a hang.
    """
    kept = _evidence(ctx) if keep_evidence else None
    restored = _is_restored(ctx)
    # A failure's clean-up is not that of the deletion which may follow it.
    taken = ctx.informers.taken[keep_evidence]
    if not restored:
        restore = {
            "cluster": lambda: where_present(ctx, FLEET_LOCAL, rancher.restore(ctx)),
            "settings": lambda: overrides.restore(ctx),
        }
        await run_all(*_missing(restore, taken))
        if keep_evidence:
            # Before anything that may fail for long: a later try must not undo what the next plan changes.
            await ctx.annotate({ANNOTATION_RESTORED: "true"})
    removal = {
        "deployments": lambda: _remove(ctx, DEPLOYMENTS, HARVESTER_SYSTEM),
        "services": lambda: _remove(ctx, SERVICES, HARVESTER_SYSTEM),
        "images": lambda: _remove_image(ctx),
        "plans": lambda: where_present(ctx, CATTLE_SYSTEM, _remove_plans(ctx, kept)),
        "secrets": lambda: _remove(ctx, SECRETS, CATTLE_SYSTEM),
        "jobs": lambda: where_present(ctx, HARVESTER_SYSTEM, _remove_jobs(ctx, kept)),
    }
    await run_all(*_missing(removal, taken))
    # After the Plans: their controller would put its labels on again.
    await _clear_nodes(ctx, restored=restored)
    for steps in ctx.informers.taken.values():
        steps.clear()


def _missing(steps: Mapping[str, Step], taken: set[str]) -> list[Coroutine[Any, Any, None]]:
    """Those that no earlier try of this process has taken to the end: only what failed is tried again.

    Nobody but us makes what is removed here, and we make nothing any more. Another process takes all of them again.
    """

    async def take(name: str, step: Step) -> None:
        await step()
        taken.add(name)

    return [take(name, step) for name, step in steps.items() if name not in taken]


def _is_restored(ctx: ReconcileContext) -> bool:
    """Whether an end of the plan has restored everything before: what is different now is other people's doing."""
    return ctx.status.phase == SUCCEEDED or objects.annotations_of(ctx.raw).get(ANNOTATION_RESTORED) == "true"


def _evidence(ctx: ReconcileContext) -> Component | None:
    reached = [phase for value in ctx.status.recorded_phases() if (phase := phase_of(value)) is not None]
    return _EVIDENCE.get(reached[-1]) if reached else None


async def _remove_plans(ctx: ReconcileContext, kept: Component | None) -> None:
    """Remove the Plans, and so their Jobs; a failed one may be kept, and then goes with the UpgradePlan."""
    if kept in _PLANS:
        await failed_jobs.take_over(ctx, kept)
    await _remove(ctx, SUC_PLANS, CATTLE_SYSTEM)
    if kept in _PLANS:
        await failed_jobs.make_lasting(ctx, kept)
    elif ctx.status.phase == FAILED:
        await _remove(ctx, JOBS, CATTLE_SYSTEM)


async def _remove_jobs(ctx: ReconcileContext, kept: Component | None) -> None:
    """Remove the manager's own Jobs, less those that are the evidence."""
    if kept in {Component.CLUSTER_UPGRADE, Component.NODE_UPGRADE, Component.IMAGE_CLEANUP}:
        await failed_jobs.keep_own(ctx)
    else:
        await _remove(ctx, JOBS, HARVESTER_SYSTEM)


async def _remove_image(ctx: ReconcileContext) -> None:
    """Remove the ISO's image. One that the plan names is the user's, whatever labels it was copied with."""
    if not ctx.plan.spec.image:
        await _remove(ctx, VIRTUAL_MACHINE_IMAGES, HARVESTER_SYSTEM)


async def _remove(ctx: ReconcileContext, resource: Resource, namespace: str) -> None:
    """Remove the plan's objects of that kind."""
    removal = ctx.client.delete_collection(resource, namespace=namespace, label_selector=ctx.owner.selector())
    await where_present(ctx, namespace, removal)


async def _clear_nodes(ctx: ReconcileContext, *, restored: bool) -> None:
    """Take our marks off the nodes."""
    labels = [suc_node_label(component_name(ctx.owner.name, component)) for component in _PLANS]
    annotations = () if restored else (ANNOTATION_PENDING_OS_IMAGE,)
    # Not what is observed: that may be older than the last label, and nobody looks again.
    found = await ctx.client.list(NODES, label_selector=MANAGED_NODES.label_selector, metadata_only=True)
    nodes = [(node, _marks(node, labels, annotations=annotations)) for node in found.items]
    await run_all(*(ctx.mark(NODES, objects.name(node), marks) for node, marks in nodes if marks))


def _marks(node: Object, labels: Iterable[str], *, annotations: Iterable[str]) -> dict[str, dict[str, None]]:
    present = [label for label in labels if label in objects.labels(node)]
    pending = [annotation for annotation in annotations if annotation in objects.annotations_of(node)]
    marks = {"labels": dict.fromkeys(present), "annotations": dict.fromkeys(pending)}
    return {kind: keys for kind, keys in marks.items() if keys}
